"""The doctor finds what is broken, says what helps, and is never ill itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dg_lsp.cli import run
from engine.cli.doctor import Finding, examine
from tests.engine.coder import write_coder
from tests.engine.models.remote.fake_server import KEY, fake_server
from tests.engine.processes import Home, home

SUBJECTS = [
    *("python", "torch", "model", "device", "numbers", "4 bit", "memory"),
    *("adapters", "permissions", "socket", "editor", "fill"),
]


@pytest.fixture
def place(monkeypatch):
    with home() as place:
        for name in ("DG_LSP_RUNTIME_DIR", "DG_LSP_STATE_DIR"):
            monkeypatch.setenv(name, place.environment[name])
        yield place


def findings(model: str, device: str = "cpu") -> dict[str, Finding]:
    found = list(examine(model, device))
    assert [finding.subject for finding in found] == SUBJECTS
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
    assert "thread" in found["device"].detail
    assert found["4 bit"].detail == "int4 by torch's int4 operator; NVFP4 decoded part by part, four numbers at a time"
    assert " ms" in found["fill"].detail


def test_it_says_whether_a_coder_has_a_canvas(place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    coder = str(write_coder(tmp_path / "coder.gguf"))
    assert "canvas" not in findings(coder)["model"].detail
    monkeypatch.setattr("engine.models.causal.pairs.fits", lambda path: path.name == "coder.gguf")
    assert "with a canvas (`fill --canvas`)" in findings(coder)["model"].detail


@pytest.mark.parametrize("said", ["on", "off"])
def test_it_says_which_numbers_are_multiplied(said: str, model: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DG_LSP_BFLOAT16", said)
    wanted = f"on the processor {'bfloat16' if said == 'on' else 'float32'}: DG_LSP_BFLOAT16={said}"
    assert findings(model)["numbers"].detail.startswith(wanted)


def test_an_overruled_format_that_is_none_is_named(model: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DG_LSP_BFLOAT16", "1")
    assert "set it to on or off" in findings(model)["numbers"].remedy


def test_it_says_where_text_goes_and_what_is_wrong_there(place, monkeypatch):
    monkeypatch.setenv("DG_LSP_SERVER_KEY", KEY)
    with fake_server() as server:
        found = findings(server.model, "auto")
        assert ill(found) <= {"editor"}
        assert found["device"].detail == (
            f"a server's; Text around the cursor is sent to http://127.0.0.1:{server.port}."
        )
    found = findings(server.model, "auto")
    assert "can't be reached" in found["fill"].remedy
    found = findings("vllm+http://gpu.example/m", "auto")
    assert "allow_insecure = true" in found["model"].remedy


def test_a_fill_says_what_came_and_how_long_it_took(model):
    found = findings(model)
    assert found["fill"].ms > 0
    assert f"'a + b' in {found['fill'].ms:.0f} ms" in found["fill"].detail
    assert {finding.ms for subject, finding in found.items() if subject != "fill"} == {None}


def test_without_the_model_only_what_needs_it_is_put_off(place):
    found = findings("nobody/nothing")
    assert ill(found) - {"editor"} == {"model", "device", "4 bit", "memory", "fill"}
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


def test_a_command_that_editors_find_is_named(place, model, monkeypatch):
    command = place.folder / "dg-lsp"
    command.write_text("")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(place.folder))
    found = findings(model)["editor"]
    assert (found.ok, found.detail) == (True, f"they start {command}")


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
    until = next(index for index, line in enumerate(lines) if index > at and line[:3] in ("ok ", "BAD"))
    assert "dg-lsp models" in " ".join(line.strip() for line in lines[at + 1 : until])
    assert all(len(line) <= 80 or len(line.split()) == 1 for line in lines)
    assert any(line.startswith("ok  python") for line in lines)
