"""The command line starts fast: what is heavy is imported where it is used."""

import subprocess
import sys

import pytest


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "sys.argv = ['agent', '--help']\n"
        "from agent.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'openai', 'pydantic', 'jinja2', 'numpy'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy))\n"
    )
    done = run("-c", code)
    assert "solve" in done.stdout
    assert done.stdout.splitlines()[-1] == "heavy: []"


@pytest.mark.parametrize("command", ["solve", "batch", "evaluate", "replay", "problems", "doctor"])
def test_each_command_explains_itself(command: str):
    done = run("-m", "agent", command, "--help")
    assert done.returncode == 0
    assert "Usage" in done.stdout


def test_no_command_prints_the_help():
    done = run("-m", "agent")
    assert "Commands" in done.stdout + done.stderr
