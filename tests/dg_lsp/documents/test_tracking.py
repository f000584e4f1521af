"""A span that is worked on moves with edits outside of it and is lost with one inside."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import TextDocumentContentChangeWholeDocument, TextDocumentItem

from dg_lsp.documents.documents import Documents, Edit, Snapshot
from dg_lsp.documents.positions import Lines
from dg_lsp.documents.tracking import Followed, Tracking

TEXT = "one\ntwo\nthree\n"


def span_after(edit: Edit, start: int = 4, end: int = 7) -> tuple[int, int] | None:
    snapshot = Snapshot(uri="a", language="python", version=1, lines=Lines(TEXT))
    return Followed(snapshot=snapshot, edits=[edit]).span_now(start, end)


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
    assert span_after(edit) == span


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
    assert span_after(edit) is None


@pytest.mark.parametrize(("at", "span"), [(3, (5, 5)), (4, None), (5, (4, 4))])
def test_a_place_is_lost_when_somebody_types_there(at: int, span: tuple[int, int] | None):
    assert span_after(Edit(start=at, removed="", inserted="x"), 4, 4) == span


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5), st.text(st.sampled_from("ab\n"), max_size=4))),
    st.integers(0, 14),
    st.integers(0, 14),
)
def test_where_a_span_is_now_stands_what_stood_in_it(edits, one: int, other: int):
    start, end = sorted((one, other))
    documents, tracking = Documents(), Tracking()
    snapshot = documents.open(TextDocumentItem(uri="a", language_id="python", version=1, text=TEXT))
    with tracking.follow(snapshot) as followed:
        for at, removed, inserted in edits:
            text = documents.get("a").text
            text = text[:at] + inserted + text[at + removed :]
            tracking.changed(documents.change("a", 2, [TextDocumentContentChangeWholeDocument(text=text)]))
        now = followed.span_now(start, end)
    if now:
        assert documents.get("a").text[now[0] : now[1]] == TEXT[start:end]


def test_only_the_own_document_matters_and_only_as_long_as_it_is_followed():
    documents, tracking = Documents(), Tracking()
    for uri in ("a", "b"):
        documents.open(TextDocumentItem(uri=uri, language_id="python", version=1, text=TEXT))

    def change(uri: str, text: str) -> None:
        tracking.changed(documents.change(uri, 2, [TextDocumentContentChangeWholeDocument(text=text)]))

    with tracking.follow(documents.get("a")) as followed:
        change("b", "")
        change("a", "zero\n" + TEXT)
        assert followed.span_now(4, 7) == (9, 12)
        tracking.forget("b")
        assert not followed.lost
        tracking.forget("a")
        assert followed.span_now(4, 7) is None
    change("a", "")
    assert len(followed.edits) == 1
