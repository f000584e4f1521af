"""Snapshots follow what an editor sends, in every encoding, and survive what it should not send."""

from __future__ import annotations

import time

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

from dg_lsp.documents.documents import (
    MOST_EDITS,
    NO_POLICY,
    REMEMBERED_AFTER_CLOSING,
    Documents,
    Edit,
    Policy,
    smallest_edit,
)
from dg_lsp.documents.positions import Lines, range_of

URI = "file:///a.py"
texts = st.text(st.sampled_from("ab\r\n字😋"), max_size=20)


def opened(text: str, encoding="utf-16", uri=URI) -> Documents:
    documents = Documents(encoding)
    documents.open(TextDocumentItem(uri=uri, language_id="python", version=1, text=text))
    return documents


def partial(start: tuple[int, int], end: tuple[int, int], text: str) -> TextDocumentContentChangePartial:
    return TextDocumentContentChangePartial(range=Range(start=Position(*start), end=Position(*end)), text=text)


@pytest.mark.parametrize("most", [4, 0])
@given(texts, st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), texts), max_size=4), st.data())
def test_incremental_changes_in_one_notification_apply_one_after_the_other(most, text, changes, data):
    """Whether they are told one by one, or are so many that they are told as one."""
    encoding = data.draw(st.sampled_from(["utf-8", "utf-16", "utf-32"]))
    documents, events, now = opened(text, encoding), [], text
    for one, other, new in changes:
        start, end = sorted((min(one, len(now)), min(other, len(now))))
        # An editor can't point between CR and LF.
        start -= now[start - 1 : start + 1] == "\r\n" and start > 0
        end -= now[end - 1 : end + 1] == "\r\n" and end > start
        events.append(TextDocumentContentChangePartial(range=range_of(Lines(now), start, end, encoding), text=new))
        now = now[:start] + new + now[end:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dg_lsp.documents.documents.MOST_EDITS", most)
        change = documents.change(URI, 2, events)
    assert change is not None
    assert change.before.text == text
    assert len(change.edits) == (len(events) if most else min(len(events), 1))
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


def test_ranges_outside_of_the_text_are_mapped_alike_however_many_there_are():
    events = [partial((7, 0), (9, 3), "c"), partial((0, 99), (0, 2), ""), partial((0, 1), (0, 0), "x\r")]
    few, many = opened("a\nb"), opened("a\nb")
    few.change(URI, 2, events)
    many.change(URI, 2, [*events, *[partial((0, 0), (0, 0), "")] * MOST_EDITS])
    assert many.get(URI).text == few.get(URI).text == "x\r\nbc"


def test_replacing_everywhere_takes_time_that_grows_as_the_text_does():
    documents, count = opened("value = old_name + 1\n" * 40_000), 5_000
    events = [partial((8 * line, 8), (8 * line, 16), "name") for line in range(count)]
    began = time.process_time()
    change = documents.change(URI, 2, events)
    assert time.process_time() - began < 2
    assert change.after.text.count(" name ") == count
    assert len(change.edits) == 1


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
