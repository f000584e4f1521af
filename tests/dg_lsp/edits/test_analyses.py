"""Which lines are mended where somebody points at a problem."""

from __future__ import annotations

import pytest
from lsprotocol.types import TextDocumentItem

from dg_lsp.documents.documents import Documents, Snapshot
from dg_lsp.edits.analyses import error_request, errors_in
from engine.common.analysis import Analysis, SyntaxErrorRegion
from engine.syntax.parsed_text import parse_text
from engine.syntax.syntax_errors import syntax_errors

TWO = "def a(:\n    return 1\n\n\ndef b(:\n    return 2\n"
OPEN = "x = f(1,\ny = 2\n"


def snapshot_of(text: str) -> Snapshot:
    return Documents().open(TextDocumentItem(uri="file:///a.py", language_id="python", version=1, text=text))


@pytest.mark.parametrize(
    ("text", "at", "mended"),
    [
        (TWO, TWO.index("a(:"), "def a(:"),
        (TWO, TWO.index("b(:"), "def b(:"),
        (OPEN, 0, "x = f(1,\ny = 2"),
    ],
)
def test_of_two_problems_the_one_that_is_pointed_at_is_mended(text: str, at: int, mended: str):
    snapshot = snapshot_of(text)
    parsed = parse_text(text, "python")
    assert parsed is not None
    analysis = Analysis(errors=syntax_errors(parsed))
    errors = errors_in(analysis, snapshot.lines.line_start(at), snapshot.lines.line_end(at))
    request = error_request(snapshot, analysis, errors)
    assert text[request.start : request.end] == mended


def test_the_end_of_another_problem_s_line_is_in_that_line():
    snapshot = snapshot_of("f(1\n\ng(2\n")
    first = SyntaxErrorRegion(start=0, end=3, what="", spots=(3,))
    second = SyntaxErrorRegion(start=5, end=8, what="", spots=(8, 3))
    request = error_request(snapshot, Analysis(errors=(first, second)), [second])
    assert (request.start, request.end) == (5, 8)
