"""A span that is worked on moves with edits outside of it and is lost with one inside. `▮` marks span and edit."""

from __future__ import annotations

import pytest
from lsprotocol.types import TextDocumentContentChangeWholeDocument, TextDocumentItem

from dg_lsp.documents.documents import Documents, Edit
from dg_lsp.documents.tracking import Tracked, Tracking

TEXT = "one\ntwo\nthree\n"


def followed(edit: Edit, start: int = 4, end: int = 7) -> Tracked:
    tracked = Tracked(uri="a", start=start, end=end)
    tracked.follow(edit)
    return tracked


@pytest.mark.parametrize(
    ("edit", "span"),
    [
        (Edit(start=0, removed="one", inserted="1"), (2, 5)),
        (Edit(start=0, removed="", inserted="zero\n"), (9, 12)),
        (Edit(start=4, removed="", inserted="x"), (5, 8)),
        (Edit(start=7, removed="", inserted="x"), (4, 7)),
        (Edit(start=8, removed="three", inserted=""), (4, 7)),
    ],
)
def test_edits_outside_move_it(edit: Edit, span: tuple[int, int]):
    tracked = followed(edit)
    assert (tracked.start, tracked.end, tracked.lost) == (*span, False)


@pytest.mark.parametrize(
    "edit",
    [
        Edit(start=5, removed="", inserted="x"),
        Edit(start=4, removed="t", inserted="T"),
        Edit(start=3, removed="\nt", inserted=""),
        Edit(start=6, removed="o\n", inserted=""),
        Edit(start=0, removed=TEXT, inserted=""),
    ],
)
def test_edits_inside_lose_it(edit: Edit):
    assert followed(edit).lost


@pytest.mark.parametrize(("at", "lost"), [(3, False), (4, True), (5, False)])
def test_a_place_is_lost_when_somebody_types_there(at: int, lost: bool):
    tracked = followed(Edit(start=at, removed="", inserted="x"), 4, 4)
    assert (tracked.lost, tracked.start) == (lost, 5 if at == 3 else 4)


def test_only_the_own_document_matters_and_only_as_long_as_it_is_tracked():
    documents, tracking = Documents(), Tracking()
    for uri in ("a", "b"):
        documents.open(TextDocumentItem(uri=uri, language_id="python", version=1, text=TEXT))

    def change(uri: str, text: str) -> None:
        tracking.changed(documents.change(uri, 2, [TextDocumentContentChangeWholeDocument(text=text)]))

    with tracking.track("a", 4, 7) as tracked:
        change("b", "")
        change("a", "zero\n" + TEXT)
        assert (tracked.start, tracked.lost) == (9, False)
        tracking.forget("b")
        assert not tracked.lost
        tracking.forget("a")
        assert tracked.lost
    change("a", "")
    assert tracked.start == 9
