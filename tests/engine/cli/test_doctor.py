"""The doctor finds what is broken, says what helps, and is never ill itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dg_lsp.cli import run
from engine.cli.checks import Doctor, Finding
from tests.engine.processes import Home, home

SUBJECTS = ["python", "torch", "model", "device", "memory", "permissions", "socket", "editor", "fill"]
EXTENSION = Path(__file__).parents[3] / "editors" / "vscode" / "package.json"
VS_CODE = json.loads(EXTENSION.read_text())["engines"]["vscode"].removeprefix("^").removesuffix(".0")
"""What the extension asks for."""


@pytest.fixture
def place(monkeypatch):
    with home() as place:
        for name in ("DG_LSP_RUNTIME_DIR", "DG_LSP_STATE_DIR"):
            monkeypatch.setenv(name, place.environment[name])
        yield place


def findings(model: str, device: str = "cpu") -> dict[str, Finding]:
    found: list[Finding] = []
    well = Doctor(model=model, device=device).examine(found.append)
    assert [finding.subject for finding in found] == SUBJECTS
    assert well == all(finding.ok for finding in found)
    assert all(finding.remedy for finding in found if not finding.ok)
    return {finding.subject: finding for finding in found}


def ill(found: dict[str, Finding]) -> set[str]:
    return {subject for subject, finding in found.items() if not finding.ok}


@pytest.fixture
def model(place: Home) -> str:
    return place.oracle("def add(a, b):\n    return ▮a + b▮\n")


def test_all_is_well_with_a_real_checkpoint(place, released):
    found = findings(str(released))
    assert ill(found) <= {"editor"}  # The tests may run without dg-lsp on the PATH.
    assert "parameters" in found["model"].detail
    assert "threads" in found["device"].detail
    assert " ms" in found["fill"].detail


def test_a_fill_says_what_came_and_how_long_it_took(model):
    found = findings(model)
    assert found["fill"].ms > 0
    assert f"'a + b' in {found['fill'].ms:.0f} ms" in found["fill"].detail
    assert {finding.ms for subject, finding in found.items() if subject != "fill"} == {None}


def test_without_the_model_only_what_needs_it_is_put_off(place):
    found = findings("nobody/nothing")
    assert ill(found) - {"editor"} == {"model", "device", "memory", "fill"}
    assert "pull nobody/nothing" in found["model"].remedy
    assert "model" in found["fill"].remedy


def test_a_device_that_is_not_there_is_named(released, place):
    found = findings(str(released), device="tpu")
    assert "tpu" in found["device"].remedy


def test_a_folder_in_the_way_is_named(place, model):
    place.runtime.write_text("")
    found = findings(model)
    assert {"permissions", "socket"} <= ill(found)
    assert str(place.runtime) in found["permissions"].remedy
    place.runtime.unlink()


def test_a_command_that_editors_cannot_find_is_named(model, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert "PATH" in findings(model)["editor"].detail


@pytest.mark.parametrize(
    ("name", "said", "shown"),
    [
        ("nvim", "NVIM v0.12.4", "nvim v0.12.4"),
        ("nvim", "NVIM v0.11.0-dev-1+g2", "nvim v0.11.0-dev-1+g2"),
        ("code", f"{VS_CODE}.0", f"code {VS_CODE}.0"),
        ("emacs", "GNU Emacs 28.1", "emacs 28.1"),
        ("hx", "helix 0.1 (abc)", "hx 0.1"),
        ("nvim", "who knows", "nvim"),
    ],
)
def test_editors_are_found_with_their_versions(place, model, monkeypatch, name, said, shown):
    install(place, monkeypatch, {"dg-lsp": "", name: said})
    found = findings(model)["editor"]
    assert found.ok
    assert f"on this machine: {shown}" in found.detail


@pytest.mark.parametrize(
    ("name", "said", "needed"),
    [
        ("nvim", "NVIM v0.10.4", "nvim to 0.11 or newer"),
        ("nvim", "NVIM v0.9.5", "nvim to 0.11 or newer"),
        ("code", "1.99.3", f"code to {VS_CODE} or newer"),
        ("codium", "1.85.1", f"codium to {VS_CODE} or newer"),
        ("emacs", "GNU Emacs 27.2", "emacs to 28.1 or newer"),
    ],
)
def test_an_editor_that_is_too_old_is_named_with_what_it_needs(place, model, monkeypatch, name, said, needed):
    install(place, monkeypatch, {"dg-lsp": "", name: said})
    found = findings(model)["editor"]
    assert not found.ok
    assert found.detail.startswith(f"{name} ")
    assert f"too old for dg-lsp's client, which needs {needed.partition(' to ')[2]}" in found.detail
    assert found.remedy == f"Update {needed}."


def test_an_editor_that_is_too_old_is_told_but_nothing_is_wrong_beside_one_that_is_not(place, model, monkeypatch):
    install(place, monkeypatch, {"dg-lsp": "", "nvim": "NVIM v0.9.5", "hx": "helix 25.01"})
    found = findings(model)["editor"]
    assert found.ok
    assert "nvim v0.9.5 (too old for dg-lsp's client, which needs 0.11 or newer), hx 25.01" in found.detail


def install(place: Home, monkeypatch: pytest.MonkeyPatch, programs: dict[str, str]) -> None:
    """Programs that say their version, and no others."""
    folder = place.folder / "bin"
    folder.mkdir()
    for name, said in programs.items():
        (folder / name).write_text(f"#!/bin/sh\necho '{said}'\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_the_command_speaks_json_and_its_exit_code_tells(place, capsys):
    assert run(["doctor", "--json", "--model", "nonsense"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] is False
    assert [finding["subject"] for finding in told["findings"]] == SUBJECTS
    assert told["findings"][-1]["ms"] is None


def test_the_command_s_json_has_the_fill_s_time_as_a_number(model, capsys):
    run(["doctor", "--json", "--model", model])
    assert json.loads(capsys.readouterr().out)["findings"][-1]["ms"] > 0


def test_the_command_shows_each_remedy_under_its_finding(place, capsys):
    assert run(["doctor", "--model", "nonsense"]) == 1
    lines = capsys.readouterr().out.splitlines()
    at = next(index for index, line in enumerate(lines) if line.startswith("BAD model"))
    assert "dg-lsp models" in lines[at + 1]
    assert any(line.startswith("ok  python") for line in lines)
