"""The command line. Each command is a thin layer over `agent`, `problems` and `transcripts`.

Nothing heavy is imported before a command runs: `agent --help` must answer at once.
"""

from agent.cli.app import main

__all__ = ["main"]
