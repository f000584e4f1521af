"""`dg-lsp rewrite` and `dg-lsp fix`: differences, writing, exit codes."""

import io
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dg_lsp.cli import run
from engine.cli import fix
from engine.cli.answers import Answer
from engine.cli.source import difference, folder_of, span_in
from engine.common.request import Candidate, Filled, FillRequest
from engine.common.textfile import read_text

HEAD, TAIL = "# A file.\n", "print(grow(1))\n"
OLD = "def grow(size):\n    size = size + 1\n    return size\n"
NEW = "def grow(size):\n    size += 1\n    return size\n"
BROKEN = HEAD + NEW + "print(grow(1)\n"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a model that knows the better file."""
    monkeypatch.chdir(tmp_path)
    Path("oracle.json").write_text(json.dumps({"cases": [{"text": f"▮{HEAD}{NEW}{TAIL}▮"}]}))
    Path("a.py").write_text(HEAD + OLD + TAIL)
    Path("broken.py").write_text(BROKEN)
    return tmp_path


def call(*arguments: str) -> int:
    return run([*arguments, "--model", "oracle:oracle.json", "--no-engine"])


def rewrite(*arguments: str, span: str = "2:1-5:1") -> int:
    return call("rewrite", "a.py", "--range", span, "--strength", "1", *arguments)


def test_the_difference_is_printed_and_patch_takes_it(work: Path, capsys: pytest.CaptureFixture[str]):
    assert rewrite() == 0
    shown = capsys.readouterr().out
    assert "-    size = size + 1\n+    size += 1\n" in shown
    assert Path("a.py").read_text() == HEAD + OLD + TAIL
    if shutil.which("patch") is None:
        pytest.skip("there is no patch")
    subprocess.run(["patch", "-p1"], input=shown, text=True, check=True, capture_output=True)
    assert Path("a.py").read_text() == HEAD + NEW + TAIL


def test_an_instruction_that_is_too_long_is_told(work: Path, capsys: pytest.CaptureFixture[str]):
    assert rewrite("-m", "x" * 60_000) == 2
    assert "60,000 characters; up to 4,000 are read: say it shorter" in capsys.readouterr().err


def test_a_range_may_be_whole_lines(work: Path):
    assert rewrite("--write", span="2-4") == 0
    assert Path("a.py").read_text() == HEAD + NEW + TAIL
    for text, span, old in (("a\r\nb\r\nc", "1-2", "a\r\nb"), ("a\nb", "2-2", "b"), ("a\n", "1-2", "a\n")):
        assert span_in(text, span).old == old


def test_a_removal_is_shown_and_written(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def emptying(request: FillRequest, *_: object, **__: object) -> Answer:
        candidate = Candidate(text="", tokens=1, confidence=1.0, score=0.0, syntax="ok")
        filled = Filled(model="m", device="cpu", candidates=(candidate,), width=1, steps=1, forwards=1)
        return Answer(filled=filled, source="a test", instructed=True)

    monkeypatch.setattr("engine.cli.rewrite.answer", emptying)
    assert rewrite("-m", "Remove it.") == 0
    assert "-def grow(size):\n-    size = size + 1\n-    return size\n" in capsys.readouterr().out
    assert rewrite("--write", "-m", "Remove it.") == 0
    assert Path("a.py").read_text() == HEAD + TAIL


def test_nothing_is_written_where_an_instruction_is_ignored(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def ignoring(request: FillRequest, *_: object, **__: object) -> Answer:
        candidate = Candidate(text=NEW, tokens=1, confidence=1.0, score=0.0, syntax="ok")
        filled = Filled(model="m", device="cpu", candidates=(candidate,), width=1, steps=1, forwards=1)
        return Answer(filled=filled, source="a test", instructed=False)

    monkeypatch.setattr("engine.cli.rewrite.answer", ignoring)
    assert rewrite("--write", "-m", "Sort it.") == 1
    assert "follows no instructions: a.py is unchanged." in capsys.readouterr().err
    assert Path("a.py").read_text() == HEAD + OLD + TAIL
    assert rewrite("-m", "Sort it.") == 0
    assert "follows no instructions: yours was ignored." in capsys.readouterr().err


def gnu_patch() -> bool:
    told = subprocess.run(["patch", "--version"], capture_output=True, check=False) if shutil.which("patch") else None
    return told is not None and b"GNU patch" in told.stdout


@pytest.mark.skipif(sys.platform == "win32" or not gnu_patch(), reason="others know no quoted names")
@pytest.mark.parametrize("name", ["a b.py", 'say "a".py', "line\nbreak.py", "tab\t.py"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_patch_takes_a_file_of_any_name_with_a_byte_order_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, mark: bytes
):
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(mark + OLD.encode())
    shown = difference(read_text(name), NEW)
    subprocess.run(["patch", "-p1"], input=shown, text=True, check=True, capture_output=True)
    assert Path(name).read_bytes() == mark + NEW.encode()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name is text")
def test_the_difference_has_the_bytes_of_a_name_and_a_text(work: Path, capsysbinary: pytest.CaptureFixture[bytes]):
    Path("oracle.json").write_text(json.dumps({"cases": [{"text": f"▮# é\n{NEW}▮"}]}))
    name = os.fsdecode(b"\xe9.py")
    Path(name).write_text(f"# é\n{OLD}", encoding="utf-8")
    assert call("rewrite", name, "--range", "2:1-5:1", "--strength", "1") == 0
    shown = capsysbinary.readouterr().out
    assert shown.startswith(b"--- a/\xe9.py\n+++ b/\xe9.py\n@@ -1,4 +1,4 @@\n # \xc3\xa9\n")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name is text")
def test_no_folder_is_sent_whose_name_is_no_text(work: Path):
    assert folder_of(read_text("a.py")) == str(work)
    odd = work / os.fsdecode(b"\xe9")
    odd.mkdir()
    shutil.copy("a.py", odd)
    assert folder_of(read_text(str(odd / "a.py"))) == ""


def test_for_a_difference_only_a_line_feed_ends_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    old, new = "a\rb\r\nc\rd\r", "a\rB\r\nc\rd\r"
    Path("a.py").write_bytes(old.encode())
    shown = difference(read_text("a.py"), new)
    assert shown == (
        "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n-a\rb\r\n+a\rB\r\n c\rd\r\n\\ No newline at end of file\n"
    )
    if shutil.which("patch") is None:
        pytest.skip("there is no patch")
    subprocess.run(["patch", "-p1", "--binary"], input=shown.encode(), check=True, capture_output=True)
    assert Path("a.py").read_bytes() == new.encode()


def test_writing_prints_nothing_unless_told_to(work: Path, capsys: pytest.CaptureFixture[str]):
    assert rewrite("--write") == 0
    assert Path("a.py").read_text() == HEAD + NEW + TAIL
    assert capsys.readouterr().out == ""
    Path("a.py").write_text(HEAD + OLD + TAIL)
    assert rewrite("--write", "--diff") == 0
    assert capsys.readouterr().out.startswith("--- a/a.py\n")


def test_json_has_all_candidates(work: Path, capsys: pytest.CaptureFixture[str]):
    assert rewrite("--json", "-n", "2") == 0
    found = json.loads(capsys.readouterr().out)
    assert [candidate["text"] for candidate in found["candidates"]] == [NEW]
    assert Path("a.py").read_text() == HEAD + OLD + TAIL


def test_nothing_better_is_exit_code_1(work: Path, capsys: pytest.CaptureFixture[str]):
    assert rewrite("--write") == 0
    assert rewrite("--write", span="2:1-4:16") == 1
    assert "No rewrite was found for this range: a.py is unchanged." in capsys.readouterr().err
    assert Path("a.py").read_text() == HEAD + NEW + TAIL


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rewrite", "a.py"), "Missing option '--range'"),
        (("rewrite", "a.py", "--range", "2:1"), "'2:1' is not a range: give LINE:COL-LINE:COL or LINE-LINE"),
        (("rewrite", "a.py", "--range", "2-1:3"), "'2' is not a position"),
        (("rewrite", "a.py", "--range", "4-2"), "before it starts at 4:1"),
        (("rewrite", "a.py", "--range", "2-99"), "Line 99 is outside the text"),
        (("rewrite", "a.py", "--range", "a-b"), "'a:1' is not a position"),
        (("rewrite", "a.py", "--range", "3:1-2:1"), "ends at 2:1, before it starts at 3:1"),
        (("rewrite", "a.py", "--range", "2:1-99:1"), "Line 99 is outside the text"),
        (("rewrite", "a.py", "--range", "2:1-5:1", "--strength", "0"), "Invalid value for '--strength'"),
        (("rewrite", "a.py", "--range", "2:1-5:1", "--strength", "1.5"), "1.5 is not in the range 0<x<=1."),
        (("rewrite", "a.py", "--range", "2:1-2:1"), "There is nothing to rewrite at 2:1-2:1"),
        (("rewrite", "a.py", "--range", "3:1-3:5"), "There is nothing to rewrite at 3:1-3:5"),
        (("rewrite", "-", "--range", "1:1-1:2", "--write"), "There is no file to write to"),
        (("fix", "none.py"), "There is no file none.py"),
        (
            ("fix", "notes.klingon"),
            "The language of notes.klingon is unknown, so its syntax can't be checked: "
            "give it its usual ending, or a first line such as #!/usr/bin/env python3.",
        ),
        (
            ("fix", "-"),
            "The language of standard input is unknown, so its syntax can't be checked: "
            "begin it with a first line such as #!/usr/bin/env python3.",
        ),
    ],
)
def test_bad_input_is_one_line(
    work: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
):
    Path("notes.klingon").write_text("qo' (")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x = (")))
    assert call(*arguments) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [("2:1-5:1", "--strength", "nan"), ("2:1-2:1",)])
def test_what_can_not_be_rewritten_is_told_before_a_model_is_loaded(
    work: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
):
    assert run(["rewrite", "a.py", "--range", *arguments, "--model", "no/such-model"]) == 2
    assert "no/such-model" not in capsys.readouterr().err


def test_fix_mends_a_file(work: Path, capsys: pytest.CaptureFixture[str]):
    assert call("fix", "broken.py") == 0
    assert "-print(grow(1)\n+print(grow(1))\n" in capsys.readouterr().out
    assert Path("broken.py").read_text() == BROKEN
    assert call("fix", "broken.py", "--write") == 0
    assert Path("broken.py").read_text() == HEAD + NEW + TAIL


def test_a_sound_file_needs_no_model(work: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["fix", "a.py", "--model", "no/such-model"]) == 0
    assert capsys.readouterr().err == "a.py has no syntax problem.\n"


def test_what_can_not_be_mended_is_exit_code_1(work: Path, capsys: pytest.CaptureFixture[str]):
    hopeless = "x = ((((((\n" * 30
    Path("broken.py").write_text(hopeless)
    assert call("fix", "broken.py", "--write") == 1
    assert "No fix was found" in capsys.readouterr().err
    assert Path("broken.py").read_text() == hopeless


@pytest.mark.parametrize("engine", ["--engine", "--no-engine"])
def test_what_takes_too_long_to_parse_is_a_sentence(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, engine: str
):
    monkeypatch.setattr(fix, "_PARSE_MS", 100.0, raising=False)
    Path("deep.html").write_text("<a>" * 100_000)
    began = time.thread_time()
    assert run(["fix", "deep.html", "--model", "no/such-model", engine]) == 1
    assert time.thread_time() - began < 5
    assert "The syntax of deep.html can't be checked within 0.1 s: give a smaller text." in capsys.readouterr().err


def test_a_rewrite_that_changes_nothing_is_told_as_such(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def unchanged(request: FillRequest, *_: object, **__: object) -> Answer:
        candidate = Candidate(text=request.old, tokens=1, confidence=1.0, score=0.0, syntax="ok")
        filled = Filled(model="m", device="cpu", candidates=(candidate,), width=1, steps=1, forwards=1)
        return Answer(filled=filled, source="a test", instructed=True)

    monkeypatch.setattr("engine.cli.rewrite.answer", unchanged)
    assert rewrite("--write", "-m", "Leave it.") == 1
    assert "as it is: say more exactly what to change" in capsys.readouterr().err
