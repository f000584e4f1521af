"""Snapshots follow what an editor sends, in every encoding, and survive what it should not send."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import (
    Position,
    Range,
    TextDocumentContentChangePartial,
    TextDocumentContentChangeWholeDocument,
    TextDocumentItem,
)

from dg_lsp.documents.documents import NO_POLICY, REMEMBERED_AFTER_CLOSING, Documents, Edit, Policy, smallest_edit
from dg_lsp.documents.positions import Lines, range_of

URI = "file:///a.py"
texts = st.text(st.sampled_from("ab\r\n字😋"), max_size=20)


def opened(text: str, encoding="utf-16", uri=URI) -> Documents:
    documents = Documents(encoding)
    documents.open(TextDocumentItem(uri=uri, language_id="python", version=1, text=text))
    return documents


def partial(start: tuple[int, int], end: tuple[int, int], text: str) -> TextDocumentContentChangePartial:
    return TextDocumentContentChangePartial(range=Range(start=Position(*start), end=Position(*end)), text=text)


@given(texts, st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), texts), max_size=4), st.data())
def test_incremental_changes_in_one_notification_apply_one_after_the_other(text, changes, data):
    encoding = data.draw(st.sampled_from(["utf-8", "utf-16", "utf-32"]))
    documents, events, now = opened(text, encoding), [], text
    for one, other, new in changes:
        start, end = sorted((min(one, len(now)), min(other, len(now))))
        # An editor can't point between CR and LF.
        start -= now[start - 1 : start + 1] == "\r\n" and start > 0
        end -= now[end - 1 : end + 1] == "\r\n" and end > start
        events.append(TextDocumentContentChangePartial(range=range_of(Lines(now), start, end, encoding), text=new))
        now = now[:start] + new + now[end:]
    change = documents.change(URI, 2, events)
    assert change is not None
    assert change.before.text == text
    assert documents.get(URI) == change.after
    assert change.after.text == now
    assert change.after.version == 2
    for edit in change.edits:
        text = text[: edit.start] + edit.inserted + text[edit.start + len(edit.removed) :]
    assert text == now


def test_a_whole_new_text_is_seen_as_the_smallest_edit():
    change = opened("one two three").change(URI, 2, [TextDocumentContentChangeWholeDocument(text="one twelve three")])
    assert change is not None
    assert change.edits == (Edit(start=6, removed="o", inserted="elve"),)


@given(texts, texts)
def test_the_smallest_edit_leads_to_the_new_text(old, new):
    edit = smallest_edit(old, new)
    assert old[: edit.start] + edit.inserted + old[edit.start + len(edit.removed) :] == new
    assert old[edit.start : edit.start + len(edit.removed)] == edit.removed


def test_a_change_to_an_unknown_document_is_refused():
    assert Documents().change(URI, 1, [TextDocumentContentChangeWholeDocument(text="x")]) is None


def test_a_range_outside_of_the_text_is_mapped_into_it():
    documents = opened("ab")
    documents.change(URI, 2, [partial((7, 0), (9, 3), "c")])
    assert documents.get(URI).text == "abc"
    documents.change(URI, 3, [partial((0, 2), (0, 99), "")])
    assert documents.get(URI).text == "ab"


def test_a_forgotten_document_is_unknown_until_all_of_its_text_comes():
    documents = opened("ab")
    documents.forget(URI)
    assert documents.get(URI) is None
    assert documents.others("file:///b.py") == []
    assert documents.change(URI, 2, [partial((0, 0), (0, 0), "x")]) is None
    events = [
        partial((0, 0), (0, 9), ""),
        TextDocumentContentChangeWholeDocument(text="abc"),
        partial((0, 3), (0, 3), "d"),
    ]
    change = documents.change(URI, 3, events)
    assert change is not None
    assert documents.get(URI) == change.after
    assert (change.after.text, change.after.version, change.after.language) == ("abcd", 3, "python")


def test_a_forgotten_document_that_was_closed_stays_unknown():
    documents = opened("ab")
    documents.forget(URI)
    documents.close(URI)
    assert documents.change(URI, 2, [TextDocumentContentChangeWholeDocument(text="abc")]) is None


@pytest.mark.parametrize("edited", [True, False])
def test_a_closed_document_is_remembered_only_if_it_was_edited(edited):
    documents = opened("ab")
    if edited:
        documents.change(URI, 2, [partial((0, 0), (0, 0), "x")])
    documents.close(URI)
    assert documents.get(URI) is None
    assert [held.text for held in documents.others("file:///b.py")] == (["xab"] if edited else [])


def test_only_the_last_few_closed_documents_are_remembered():
    documents = Documents()
    for number in range(REMEMBERED_AFTER_CLOSING + 3):
        uri = f"file:///{number}.py"
        documents.open(TextDocumentItem(uri=uri, language_id="python", version=1, text=""))
        documents.change(uri, 2, [partial((0, 0), (0, 0), "x")])
        documents.close(uri)
    remembered = [held.uri for held in documents.others(URI)]
    assert len(remembered) == REMEMBERED_AFTER_CLOSING
    assert remembered[-1] == uri


def test_other_documents_are_all_but_the_one():
    documents = opened("a")
    documents.open(TextDocumentItem(uri="untitled:1", language_id="go", version=1, text="b"))
    assert [held.uri for held in documents.others(URI)] == ["untitled:1"]
    documents.change("untitled:1", 2, [partial((0, 0), (0, 0), "x")])
    assert documents.edited("untitled:1")
    assert not documents.edited(URI)
    assert len(documents.others("file:///c.py")) == 2


def test_a_document_of_which_nobody_can_say_what_holds_is_off_and_no_other(caplog):
    off = ""

    def policy(uri: str, language: str) -> Policy:
        if uri == URI:
            raise ValueError("what nobody thought of")
        return Policy(off=off)

    documents = Documents(policy=policy)
    for uri in (URI, "untitled:1"):
        documents.open(TextDocumentItem(uri=uri, language_id="python", version=1, text=""))
    off = "Suggestions are switched off."
    documents.renew()
    assert documents.get(URI).policy == Policy(off=NO_POLICY, may_show=False)
    assert documents.get("untitled:1").policy.off == off
    assert "what nobody thought of" in caplog.text
