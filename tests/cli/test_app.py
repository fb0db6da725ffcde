"""The application: every command answers, and ``--help`` does so at once."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from commands import Cli

from perfport.cli import app

COMMANDS = [*app.COMMANDS, "history"]
HEAVY = ("pyopencl", "cupy", "matplotlib", "pandas", "sklearn", "torch", "numpy")


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help(main: Cli, command: str | None) -> None:
    code, out, _ = main(*filter(None, [command]), "--help", discover=False)
    assert code == 0 and "--help" in out
    if command is None:
        assert all(re.search(rf"^\s+{name}\b", out, re.M) for name in COMMANDS)


def test_no_command_shows_help_and_an_unknown_one_is_named(main: Cli) -> None:
    code, out, err = main(discover=False)
    assert "Usage" in out + err
    code, _, err = main("rnu", discover=False)
    assert code == 2 and "rnu" in err


def test_version(main: Cli) -> None:
    code, out, _ = main("--version", discover=False)
    assert code == 0 and re.fullmatch(r"perfport \d+\.\d+\S*\n", out)


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from perfport import cli; sys.argv = ['perfport', '--help']\n"
        "try: cli.main()\nexcept SystemExit: pass\n"
        "print('LOADED', *sorted({name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert loaded[0] == "LOADED" and "typer" in loaded
    assert not set(loaded) & set(HEAVY)
