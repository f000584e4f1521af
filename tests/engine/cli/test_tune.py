"""`dg-lsp tune`: what it says, and how it ends."""

import shutil
from pathlib import Path

import pytest

from dg_lsp.cli import run
from engine.models.adapters.metadata import adapters_dir

ROOT = Path(__file__).parents[3]
TOY = str(ROOT / "tests" / "models" / "toy-experts")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DG_LSP_STATE_DIR", str(tmp_path / "state"))


def test_a_dry_run_says_what_would_be_read_and_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    shutil.copytree(ROOT / "engine" / "core", tmp_path / "code", ignore=shutil.ignore_patterns("__pycache__"))
    assert run(["tune", str(tmp_path / "code"), "--dry-run", "--model", TOY, "--device", "cpu", "--no-idle"]) == 0
    read, taken = capsys.readouterr().out.splitlines()
    assert read.startswith(f"{tmp_path / 'code'}: ")
    assert "tokens held out to measure on" in read
    assert " steps, about " in taken
    assert "of memory" in taken
    assert not adapters_dir().exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{}/nowhere"], "is no folder: name one with code in it"),
        (["{}/../loop"], "is no folder: name one with code in it"),
        (["{}"], "There is too little to learn from: 0 tokens in 0 files of code, and 5,000"),
        (["{}", "--model", "nothing"], "There is no model 'nothing'"),
    ],
)
def test_what_can_not_be_tuned_is_one_line(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "empty").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    asked = [each.format(tmp_path / "empty") for each in arguments]
    assert run(["tune", *asked, "--no-idle"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
