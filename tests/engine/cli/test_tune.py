"""`dg-lsp tune`: what it says, and how it ends."""

import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from dg_lsp.cli import run
from engine.models.adapters.metadata import adapters_dir
from engine.models.checkpoints.catalog import models_dir
from engine.models.checkpoints.choice import Choice
from engine.models.checkpoints.coders import CODERS
from tests.engine.coder import write_coder

ROOT = Path(__file__).parents[3]
TOY = str(ROOT / "tests" / "models" / "toy-experts")


WITHOUT_TORCH = """
import sys
from dg_lsp.cli import run

code = run(sys.argv[1:])
assert "torch" not in sys.modules
sys.exit(code)
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DG_LSP_STATE_DIR", str(tmp_path / "state"))


def test_a_dry_run_says_what_would_be_read_and_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    shutil.copytree(ROOT / "engine" / "common", tmp_path / "code", ignore=shutil.ignore_patterns("__pycache__"))
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


@pytest.mark.parametrize("arguments", [["{}/nowhere"], ["{}", "--model", "nothing"]])
def test_what_can_not_be_tuned_is_said_before_torch_is_there(arguments: list[str], tmp_path: Path):
    asked = [each.format(tmp_path) for each in arguments]
    command = [sys.executable, "-c", WITHOUT_TORCH, "tune", *asked, "--dry-run"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_coder_is_refused_by_what_can_be_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    coder = write_coder(tmp_path / "tiny.gguf")
    assert run(["tune", str(tmp_path), "--model", str(coder), "--no-idle"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert "tiny.gguf can't be tuned: it is a coder, and there is no training for coders yet" in said
    assert all(each in said for each in ("--model bundled", "DreamOn", "diffusiongemma"))


def test_a_dry_run_with_the_coder_that_is_chosen_says_what_tuning_it_would_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    shutil.copytree(ROOT / "engine" / "common", tmp_path / "code", ignore=shutil.ignore_patterns("__pycache__"))
    models_dir().mkdir(parents=True)
    write_coder(models_dir() / CODERS["coder-0.5b"].file)
    monkeypatch.setattr("engine.models.checkpoints.choice.choose", lambda hardware: Choice(name="coder-0.5b", why=""))
    assert run(["tune", str(tmp_path / "code"), "--dry-run", "--no-idle"]) == 0
    read, taken = capsys.readouterr().out.splitlines()
    assert re.match(r".*: [\d,]+ files with [\d,]+ tokens to learn from, .* held out to measure on\.", read)
    assert re.match(
        r"At least \d+ (s|min) to learn from that 4 times .* of memory for the weights; .* free\. But", taken
    )
    assert "But coder-0.5b can't be tuned: it is a coder" in taken


def test_a_terminal_shows_what_takes_a_while(tmp_path: Path):
    shutil.copytree(ROOT / "engine" / "common", tmp_path / "code", ignore=shutil.ignore_patterns("__pycache__"))
    asked = ["tune", str(tmp_path / "code"), "--dry-run", "--model", TOY, "--device", "cpu", "--no-idle"]
    leader, follower = pytest.importorskip("pty").openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "dg_lsp", *asked],
        stdout=subprocess.DEVNULL,
        stderr=follower,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    ) as process:
        os.close(follower)
        shown = b""
        # Linux ends the reading of a terminal that nobody writes to any more with an error.
        with suppress(OSError):
            while read := os.read(leader, 4096):
                shown += read
    os.close(leader)
    assert process.returncode == 0
    # Between them are some that a small model is through with before a terminal is drawn anew.
    assert 0 <= shown.find(b"Loading torch") < shown.find(b"Trying one step")


def test_of_what_is_too_little_it_is_told_what_was_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for name, text in (("a.py", "x = 1\n"), ("b.txt", "b"), ("c.txt", "c"), ("d.py", "y = 1\n" * 3)):
        (tmp_path / name).write_text(text)
    (tmp_path / "e.py").write_bytes(b"\xff")
    assert run(["tune", str(tmp_path), "--no-idle"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert " Left out: " in line
    assert "2 not code" in line
    assert "1 not UTF-8" in line
