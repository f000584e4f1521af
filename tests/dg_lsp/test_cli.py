import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from dg_lsp import cli
from dg_lsp.cli import COMMANDS, run

PRESENT = [name for name, (target, _) in COMMANDS.items() if find_spec(target.partition(":")[0])]


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"dg-lsp {version('dg-lsp')}\n"


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]):
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(name in out and told.split(".")[0] in out for name, (_, told) in COMMANDS.items())
    listed = out.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in listed] == list(COMMANDS)


@pytest.mark.parametrize("name", PRESENT)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]):
    assert run([name, "--help"]) == 0
    assert f"Usage: dg-lsp {name}" in capsys.readouterr().out


def test_the_commands_of_a_filling_release_are_there():
    assert {"serve", "fill", "engine", "models", "pull", "doctor"} <= set(PRESENT)


def test_nothing_asked_shows_help_and_is_no_success(capsys: pytest.CaptureFixture[str]):
    assert run([]) == 2
    shown = capsys.readouterr()
    assert shown.out.startswith("Usage: dg-lsp [OPTIONS] COMMAND")
    assert shown.err == ""
    assert run(["engine"]) == 2
    assert capsys.readouterr().out.startswith("Usage: dg-lsp engine [OPTIONS] COMMAND")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "dg-lsp: No such command 'nonsense'. See `dg-lsp --help`.\n"),
        (
            ["fil"],
            "dg-lsp: No such command 'fil'. (Did you mean one of: 'files', 'fill', 'fix'?) See `dg-lsp --help`.\n",
        ),
        (["--nonsense"], "dg-lsp: No such option '--nonsense'. See `dg-lsp --help`.\n"),
        (["pull"], "dg-lsp: Missing argument 'MODEL'. See `dg-lsp pull --help`.\n"),
        (["models", "all"], "dg-lsp: Got unexpected extra argument (all). See `dg-lsp models --help`.\n"),
    ],
)
def test_a_wrong_command_line_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    assert run(arguments) == 2
    assert capsys.readouterr().err == message


def test_a_command_that_is_not_installed_is_its_own_error_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setitem(cli.COMMANDS, "gone", ("dg_lsp.commands.gone:gone", "Not there."))
    assert run(["--version"]) == 0
    assert run(["gone"]) == 1
    message = "dg-lsp: gone can't run here, as dg_lsp.commands.gone is not installed: install dg-lsp again.\n"
    assert capsys.readouterr().err == message


def test_the_console_script_passes_the_exit_code_on():
    command = Path(sys.executable).with_name("dg-lsp")
    assert subprocess.run([command, "nonsense"], capture_output=True, timeout=60, check=False).returncode == 2
    assert subprocess.run([command, "--version"], capture_output=True, timeout=60, check=False).returncode == 0


@pytest.mark.parametrize("said", ["nan", "inf"])
@pytest.mark.parametrize(
    "command",
    [
        ("engine", "run", "--unload-after"),
        ("engine", "restart", "--exit-after"),
        ("engine", "restart", "--stall-after"),
        ("fill", "nowhere.py", "--deadline-ms"),
        ("tune", ".", "--minutes"),
        ("replay", "session.jsonl", "--speed"),
    ],
)
def test_what_is_no_number_to_count_with_is_told_with_its_option(
    command: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
):
    assert run([*command, said]) == 2
    assert command[-1] in capsys.readouterr().err
