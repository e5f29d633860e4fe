"""The command line starts fast: what is heavy is imported where it is used."""

import subprocess
import sys
from importlib.metadata import version

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


def test_the_version_is_that_of_the_package_and_costs_no_heavy_import():
    code = (
        "import sys\n"
        "sys.argv = ['agent', '--version']\n"
        "from agent.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    print('code:', end.code)\n"
        "print('heavy:', sorted({'torch', 'openai', 'pydantic', 'jinja2', 'numpy'} & set(sys.modules)))\n"
    )
    done = run("-c", code)
    assert done.stdout.splitlines() == [f"kernel-agent {version('kernel-agent')}", "code: 0", "heavy: []"]


def test_every_option_says_what_it_does_and_what_holds_where_it_is_left_out():
    import typer.main

    from agent.cli.app import app

    # One of them must be given: there is no default to tell.
    sources = {"model", "recorded", "mailbox"}
    unclear: list[str] = []
    commands = dict(typer.main.get_command(app).commands)
    commands |= commands.pop("problems").commands
    for name, command in commands.items():
        for parameter in command.params:
            said = parameter.help or ""
            optional = not parameter.required and parameter.default is None and parameter.name not in sources
            if not said or (optional and not any(words in said for words in ("left out", "else"))):
                unclear.append(f"{name} {parameter.name}: {said}")
    assert "solve" in commands
    assert not unclear


def test_no_command_prints_the_help():
    done = run("-m", "agent")
    assert "Commands" in done.stdout + done.stderr
