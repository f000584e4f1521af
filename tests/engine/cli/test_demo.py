import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from engine import load
from engine.cli.demo import EXAMPLES, DemoExample, main, show
from engine.common.marked import MARKER, gap_at_markers
from tests.engine.cli.picture import draw
from tests.engine.coder import write_coder


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_a_snippet_is_filled_in_front_of_ones_eyes(tmp_path: Path, example: DemoExample):
    known = example.text.replace(MARKER, f"{MARKER}answer{MARKER}")
    (tmp_path / "oracle.json").write_text(json.dumps({"cases": [{"text": known, "reveal": 1}]}))
    shown = io.StringIO()
    show(example, load(f"oracle:{tmp_path / 'oracle.json'}").answer, Console(file=shown, width=100))
    lines = shown.getvalue().splitlines()
    assert example.title in lines[0]
    assert "▒" in lines[1]
    assert any(f"{MARKER}answer{MARKER}" in line for line in lines)
    assert any(" in a gap of " in line for line in lines)


def test_what_is_shown_of_a_coder_is_no_canvas(tmp_path: Path):
    coder = write_coder(tmp_path / "tiny.gguf")
    shown = CliRunner().invoke(main, [str(coder)], catch_exceptions=False)
    assert shown.exit_code == 0
    assert "canvas" not in shown.output
    assert "The answer grows from left to right" in " ".join(shown.output.split())
    assert all(example.title in shown.output for example in EXAMPLES)


def test_each_snippet_has_one_gap():
    assert len(EXAMPLES) == 3
    assert all(gap_at_markers(example.text).old == "" for example in EXAMPLES)


def test_a_picture_shows_canvas_and_result(tmp_path: Path):
    example = EXAMPLES[0]
    known = example.text.replace(MARKER, f"{MARKER}answer{MARKER}")
    (tmp_path / "oracle.json").write_text(json.dumps({"cases": [{"text": known, "reveal": 1}]}))
    draw([example], load(f"oracle:{tmp_path / 'oracle.json'}").answer, tmp_path / "demo.svg")
    drawn = (tmp_path / "demo.svg").read_text()
    assert drawn.startswith("<svg")
    assert all(said in drawn for said in ("step", "answer", "pinned"))
