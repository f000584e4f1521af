import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.cli import run
from engine.cli import answers
from engine.common.processes import python_module
from engine.models.checkpoints.catalog import find
from engine.models.oracle.model import Oracle

CODE = "def add(a, b):\n    return ▮a + b▮\n\n\ndef sub(a, b):\n    return a - b\n"
GAP = CODE.replace("▮a + b▮", "▮")
DONE = CODE.replace("▮", "")
OPEN = GAP.replace("▮", "")

Fill = Callable[..., int]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a model that knows CODE."""
    monkeypatch.chdir(tmp_path)
    know(CODE)
    return tmp_path


def know(*texts: str, **case: object) -> None:
    Path("oracle.json").write_text(json.dumps({"cases": [{"text": text, **case} for text in texts]}))


def fill(*arguments: str, code: int = 0) -> None:
    assert run(["fill", *arguments, "--model", "oracle:oracle.json", "--no-engine"]) == code


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    fill(*arguments, "--json")
    return json.loads(capsys.readouterr().out)


def test_the_lines_around_the_gap_and_one_line_of_figures_are_shown(work: Path, capsys: pytest.CaptureFixture[str]):
    Path("a.py").write_text(OPEN)
    fill("a.py", "--at", "2:12")
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == ["1   def add(a, b):", "2 ▌     return ▮a + b▮", "3   ", "4   ", "5   def sub(a, b):"]
    assert lines[5].startswith("oracle:oracle.json · cpu in this process · 5 tokens in a gap of ")
    assert Path("a.py").read_text() == OPEN


@pytest.mark.skipif(os.name == "nt", reason="where somebody stands can't be removed there")
def test_where_this_folder_is_gone_a_file_elsewhere_and_standard_input_are_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    know(CODE)
    (tmp_path / "a.py").write_text(GAP)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    model = ("--model", f"oracle:{tmp_path}/oracle.json", "--no-engine", "--json")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(GAP.encode())))
    for source in (str(tmp_path / "a.py"), "-"):
        assert run(["fill", source, *model]) == 0
        assert json.loads(capsys.readouterr().out)["candidates"][0]["text"] == "a + b"


@pytest.mark.parametrize("where", ["terminal", "pipe", "other model"])
def test_what_a_coder_would_bring_is_told_once_where_people_see_it(
    work: Path, where: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("DG_LSP_STATE_DIR", str(work / "state"))
    Path("a.py").write_text(GAP)
    # Whatever is named, the oracle answers.
    answered = partial(answers.answer, model="oracle:oracle.json", device="cpu")
    monkeypatch.setattr("engine.cli.fill.answer", lambda request, model, device, **given: answered(request, **given))
    if where != "pipe":
        monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    named = ["--model", "oracle:oracle.json"] if where == "other model" else []
    told = list[bool]()
    for _ in range(2):
        assert run(["fill", "a.py", "--no-engine", *named]) == 0
        told.append("dg-lsp: `dg-lsp pull coder-1.5b` (1.1 GB, once) brings" in capsys.readouterr().err)
    assert told == [where == "terminal", False]


def test_json_has_the_promised_form(work: Path, capsys: pytest.CaptureFixture[str]):
    Path("a.py").write_text(GAP)
    found = answer(capsys, "a.py")
    figures = ["width", "steps", "forwards", "context_tokens", "threshold", "adapter", "ms"]
    assert list(found) == ["model", "device", "candidates", *figures]
    named = ["text", "tokens", "confidence", "score", "syntax", "token_confidence", "origin", "token_ends", "swallowed"]
    assert list(found["candidates"][0]) == named
    assert list(found["ms"]) == ["load", "encode", "denoise", "total"]
    assert found["candidates"][0]["text"] == "a + b"
    assert found["candidates"][0]["syntax"] == "ok"
    ms = found["ms"]
    assert ms["load"] > 0
    assert ms["total"] >= ms["load"] + ms["encode"] + ms["denoise"]


def test_standard_input_is_a_file(work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GAP.encode())))
    assert answer(capsys, "-")["candidates"][0]["text"] == "a + b"


def test_the_text_between_two_markers_is_replaced(work: Path):
    Path("a.py").write_text(GAP.replace("▮", "▮None▮"))
    fill("a.py", "--write")
    assert Path("a.py").read_text() == DONE


def test_a_span_of_several_lines_is_replaced(work: Path):
    Path("a.py").write_text(OPEN.replace("return \n", "return (\n        None\n    )\n"))
    fill("a.py", "--at", "2:12", "--to", "4:6", "--write")
    assert Path("a.py").read_text() == DONE


def test_a_span_is_replaced(work: Path, capsys: pytest.CaptureFixture[str]):
    Path("a.py").write_text(OPEN.replace("return \n", "return None\n"))
    capsys.readouterr()
    fill("a.py", "--at", "2:12", "--to", "2:16", "--write")
    assert capsys.readouterr().err == "a.py: wrote 5 characters instead of 4 characters, line 2.\n"
    assert Path("a.py").read_text() == DONE


def test_markers_are_text_where_a_position_is_given(work: Path, capsys: pytest.CaptureFixture[str]):
    know("# ▮1▮ ")
    Path("a.py").write_text("# ▮▮▮ ")
    found = answer(capsys, "a.py", "--at", "1:3")
    assert found["candidates"] == [] or "▮" not in found["candidates"][0]["text"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize(
    "text",
    [
        "▮x = 1▮",
        "▮x = 1▮\n",
        "x = 1\n▮y = 2▮",
        "a = 1\r\nif a:\r\n\t▮b = 2\r\n\tc = 3▮\r\n",
        "a = 1\rb = ▮2▮\r",
        "x = '😋' + ▮y▮\n",
        "'e\u0301\u2028' + ▮y▮\x0c\n",
        "val▮u▮e = 1\n",
        "mixed\r\nends\n▮here▮\rand\n",
    ],
)
def test_everything_outside_the_gap_stays_byte_for_byte(work: Path, encoding: str, text: str):
    know(text)
    before, old, after = text.split("▮")
    Path("a.py").write_bytes(f"{before}▮{after}".encode(encoding))
    fill("a.py", "--write")
    assert Path("a.py").read_bytes() == f"{before}{old}{after}".encode(encoding)


def test_a_file_of_five_megabytes_is_filled(work: Path):
    line = "value = compute(value)\r\n"
    know(line * 20 + CODE + line * 20)
    text = line * 120_000 + GAP + line * 120_000
    assert len(text) > 5_000_000
    Path("a.py").write_bytes(text.encode())
    fill("a.py", "--write")
    assert Path("a.py").read_bytes() == text.replace("▮", "a + b").encode()


def test_several_candidates_are_listed(work: Path, capsys: pytest.CaptureFixture[str]):
    know(CODE, alternatives=["a - b", "b + a"])
    Path("a.py").write_text(GAP)
    assert len(answer(capsys, "a.py", "-n", "3")["candidates"]) == 3
    fill("a.py", "-n", "3")
    out = capsys.readouterr().out
    assert "1 of 3 · confidence" in out
    assert all(f"return ▮{text}▮" in out for text in ("a + b", "a - b", "b + a"))


def test_width_and_longest_answer_are_kept(work: Path, capsys: pytest.CaptureFixture[str]):
    Path("a.py").write_text(GAP)
    assert answer(capsys, "a.py", "--width", "5")["width"] == 5
    assert answer(capsys, "a.py", "--max-tokens", "8")["width"] <= 8


def test_a_deadline_ends_the_denoising(work: Path, capsys: pytest.CaptureFixture[str]):
    know(CODE, reveal=1, delay_ms=30)
    Path("a.py").write_text(GAP)
    patient = answer(capsys, "a.py")
    hasty = answer(capsys, "a.py", "--deadline-ms", "50")
    assert hasty["steps"] < patient["steps"]


def test_watching_goes_to_standard_error(work: Path, capsys: pytest.CaptureFixture[str]):
    know(CODE, reveal=2)
    Path("a.py").write_text(GAP)
    fill("a.py", "--watch", "--json")
    shown = capsys.readouterr()
    assert json.loads(shown.out)["candidates"][0]["text"] == "a + b"
    frames = [line for line in shown.err.splitlines() if line.startswith("step")]
    assert "▒" in frames[0]
    assert "a + b" in frames[-1]


def test_the_language_is_told_by_name_or_first_line(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    seen: list[str] = []
    prompt = Oracle.prompt
    monkeypatch.setattr(Oracle, "prompt", lambda self, request: seen.append(request.language) or prompt(self, request))
    for name, text in (
        ("a.ts", GAP),
        ("a.tsx", GAP),
        ("script", f"#!/usr/bin/env python3\n{GAP}"),
        ("notes.unknown", GAP),
    ):
        Path(name).write_text(text)
        fill(name)
    assert seen == ["typescript", "typescriptreact", "python", ""]


def test_a_model_without_an_answer_changes_nothing(work: Path, capsys: pytest.CaptureFixture[str]):
    know("x = 1\n▮y = 2\n▮y = 2\n")  # what only repeats the next line is no answer
    Path("a.py").write_text("x = 1\n▮y = 2\n")
    assert answer(capsys, "a.py")["candidates"] == []
    fill("a.py")
    assert "no answer: nothing that the model wrote fits" in capsys.readouterr().out
    fill("a.py", "--write", code=1)
    why = "nothing that the model wrote fits"
    assert f"The model found no answer for this gap ({why}): a.py is unchanged." in capsys.readouterr().err
    assert Path("a.py").read_text() == "x = 1\n▮y = 2\n"


def check_refused(capsys: pytest.CaptureFixture[str], code: int, message: str, *arguments: str) -> None:
    before = {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    assert run(["fill", *arguments, "--no-engine"]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert shown.err.startswith("dg-lsp: ")
    assert shown.err.count("\n") == 1
    assert {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.py",), "There is no file none.py: check the path."),
        ((".",), ". is a directory: name a file in it."),
        (("binary",), "binary is a binary file: dg-lsp fills gaps in text."),
        (("latin",), "latin is not UTF-8 text"),
        (("a.py", "--at", "99:1"), "Line 99 is outside the text, whose last line is 7."),
        (("a.py", "--at", "1:99"), "Column 99 is outside line 1, whose end is column 15."),
        (("a.py", "--at", "here"), "'here' is not a position"),
        (("a.py", "--at", "2:2", "--to", "1:1"), "The span ends at 1:1, before it starts at 2:2"),
        (("a.py", "--to", "1:1"), "--to needs --at: give both ends of the span."),
        (("done.py",), "The text has no ▮ that marks the gap"),
        (("four.py",), "The text has 4 ▮ markers"),
        (("two.py",), "The two ▮ markers stand on lines 2 and 6: leave one at the gap, or give the lines to replace"),
        (("two.py", "--write"), "The two ▮ markers stand on lines 2 and 6"),
        (("a.py", "--model", "nonsense"), "There is no model 'nonsense'"),
        (("a.py", "--model", "no-one/nothing"), "run `dg-lsp pull no-one/nothing` first"),
        (("a.py", "--model", "folder"), "folder has no config.json"),
        (("a.py", "--model", "unweighted"), "unweighted has no weights"),
        (
            ("a.py", "--model", "pickled"),
            "pickled holds its weights as pickle (pytorch_model.bin), a format that can run",
        ),
        (("a.py", "--device", "tpu", "--model", "tiny"), "There is no device 'tpu': use auto, cpu or cuda."),
        (("-", "--write"), "There is no file to write to: --write needs a FILE, not standard input."),
        (("a.py", "-n", "0"), "Invalid value for '-n'"),
        (("a.py", "--width", "-3"), "Invalid value for '--width'"),
        (("a.py", "--width", "50", "--max-tokens", "3"), "--width 50 is more than --max-tokens 3"),
        (("a.py", "--deadline-ms", "1e300"), "Invalid value for '--deadline-ms'"),
        (("a.py", "--nonsense"), "No such option '--nonsense'"),
        ((), "Missing argument 'FILE'. See `dg-lsp fill --help`."),
    ],
)
def test_bad_input_is_one_line(
    work: Path,
    changeable: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GAP.encode())))
    Path("a.py").write_text(GAP)
    Path("done.py").write_text(DONE)
    Path("four.py").write_text("▮▮▮▮")
    Path("two.py").write_bytes(GAP.replace("a - b", "▮").replace("\n", "\r\n").encode())
    Path("binary").write_bytes(b"\x7fELF\0\0\0")
    Path("latin").write_bytes("café ▮".encode().replace(b"\xc3\xa9", b"\xe9"))
    Path("folder").mkdir()
    for name in ("unweighted", "pickled"):
        Path(name).mkdir()
        (Path(name) / "config.json").write_bytes((changeable / "config.json").read_bytes())
    (Path("pickled") / "pytorch_model.bin").write_bytes(b"\x80\x04")
    changeable.rename(work / "tiny")
    check_refused(capsys, 2, message, *arguments)


def test_a_gpu_that_is_not_there_is_refused(work: Path, changeable: Path, capsys: pytest.CaptureFixture[str]):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("needs a machine without a GPU")
    Path("a.py").write_text(GAP)
    arguments = ("a.py", "--model", str(changeable), "--device", "cuda")
    check_refused(capsys, 2, "CUDA was asked for, but torch finds no GPU here", *arguments)


def test_memory_that_runs_out_is_a_failure_at_work(work: Path, capsys: pytest.CaptureFixture[str]):
    know(CODE, fault="out_of_memory")
    Path("a.py").write_text(GAP)
    check_refused(capsys, 1, "Filling this gap ran out of memory", "a.py", "--model", "oracle:oracle.json", "--write")


def test_a_model_too_big_for_the_machine_is_refused_with_the_numbers(
    work: Path, changeable: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    import psutil

    free = psutil.virtual_memory()._replace(available=1000)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
    Path("a.py").write_text(GAP)
    arguments = ("a.py", "--model", str(changeable), "--device", "cpu")
    check_refused(capsys, 2, "needs 0.1 MiB, but 0.0 MiB of main memory are free", *arguments)


def test_a_file_that_changed_while_it_was_filled_is_left_alone(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    Path("a.py").write_text(GAP)
    step = Oracle.step

    def edit_meanwhile(self: Oracle, rows: Any) -> Any:
        Path("a.py").write_text("somebody else's work")
        return step(self, rows)

    monkeypatch.setattr(Oracle, "step", edit_meanwhile)
    fill("a.py", "--write", code=1)
    assert "a.py changed while its gap was being filled: run the command again." in capsys.readouterr().err
    assert Path("a.py").read_text() == "somebody else's work"


def test_the_installed_command_fails_without_a_traceback(work: Path):
    command = Path(sys.executable).with_name("dg-lsp")
    result = subprocess.run(
        [command, "fill", "none.py"], capture_output=True, text=True, timeout=60, env={**os.environ, "COLUMNS": "80"}
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "dg-lsp: There is no file none.py: check the path.\n"


def test_what_a_terminal_can_not_encode_is_escaped(work: Path):
    Path("a.py").write_text(GAP, encoding="utf-8")
    result = subprocess.run(
        [*python_module("dg_lsp"), "fill", "a.py", "--model", "oracle:oracle.json", "--no-engine", "--watch"],
        capture_output=True,
        timeout=120,
        env={**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"},
    )
    assert (result.returncode, b"Traceback" in result.stderr) == (0, False)
    assert rb"2 \u258c     return " in result.stdout
    assert b" \xb7 5 tokens in a gap of " in result.stdout


@pytest.mark.parametrize(
    ("document", "says"), [("README.md", "answers: height"), ("docs/command-line.md", "here: height")]
)
def test_the_example_of_the_documents_is_filled_as_they_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], document: str, says: str
):
    text = (Path(__file__).parents[3] / document).read_text()
    (example,) = [block for block in text.split("```python\n")[1:] if "▮" in block.partition("```")[0]]
    file = tmp_path / "box.py"
    file.write_text(example.partition("```")[0])
    assert run(["fill", str(file), "--write", "--no-engine"]) == 0
    assert file.read_text() == example.partition("```")[0].replace("▮", "height")
    assert says in text
    assert example.splitlines()[3][23 - 1] == "▮"


def test_documents_agree_how_large_the_bundled_model_is():
    size = f"{find('bundled').parameters / 1e6:.1f} M parameters"
    for document in ("README.md", "docs/models.md"):
        text = (Path(__file__).parents[3] / document).read_text()
        assert size in text
        assert not re.search(r"12\.\d M parameters", text)
