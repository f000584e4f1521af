"""Models of every family are evaluated by the same command, in every way that they can fill."""

import json
from pathlib import Path

import pytest

from dg_lsp.cli import run

TOYS = Path(__file__).parents[3] / "models"
CODE = "".join(f"def f{n}(a, b):\n    c = add(a, b)\n    d = mul(c, {n})\n    return d\n\n\n" for n in range(12))
ALWAYS = {
    "adaptive",
    "oracle width",
    "width 8",
    "width 16",
    "width 32",
    "without repair",
    "without mending",
    "without ranking",
}


@pytest.mark.parametrize(("toy", "more"), [("toy-masked", set[str]()), ("toy-uniform", {"left to right", "generate"})])
def test_every_row_that_a_model_can_fill(toy: str, more: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    code = tmp_path / "code"
    code.mkdir()
    (code / "first.py").write_text(CODE)
    wanted = ["eval", "--holes", str(code), "--limit", "1", "--max-tokens", "8", "--model", str(TOYS / toy)]
    out = ["--all", "--json", "--out", str(tmp_path / "out")]
    assert run([*wanted, *out]) == 0
    said = capsys.readouterr()
    rows = {row["row"] for row in json.loads(said.out)["rows"]}
    assert rows == ALWAYS | more
    assert ("'left to right' is left out" in said.err) == (not more)
    assert "'causal' is left out" in said.err, "neither toy learnt where a gap ends"
    assert run([*wanted, *out]) == 0
    again = {row["row"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert again == rows


@pytest.mark.parametrize("asked", ["left to right", "causal", "generate"])
def test_a_row_asked_for_by_name_is_refused_in_a_sentence(
    asked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "first.py").write_text(CODE)
    model = str(TOYS / "toy-masked")
    assert run(["eval", "--holes", str(tmp_path), "--limit", "1", "--model", model, "--row", asked]) == 2
    assert "leave it out" in capsys.readouterr().err
