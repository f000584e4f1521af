"""What somebody edited lately, as they would tell it."""

from __future__ import annotations

from dataclasses import replace

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

from dg_lsp.config.settings import ContextSettings, Settings
from dg_lsp.documents.documents import Documents, Policy
from dg_lsp.workspace.context import ContextSelector
from dg_lsp.workspace.history import KEPT_CHARS, KEPT_PLACES, EditHistory
from engine.common.request import RecentEdit

HERE, THERE = "file:///w/here.py", "file:///w/there.py"


class Editor:
    def __init__(self, **texts: str) -> None:
        self.documents = Documents()
        self.history = EditHistory(self.documents)
        for name, text in texts.items():
            self.open(f"file:///w/{name}.py", text)

    def open(self, uri: str, text: str) -> None:
        self.documents.open(TextDocumentItem(uri=uri, language_id="python", version=1, text=text))

    def text(self, uri: str) -> str:
        return self.documents.get(uri).text

    def replace(self, uri: str, old: str, new: str) -> None:
        """As a person does who types: character by character, from the first difference on."""
        at = self.text(uri).index(old)
        self.put(uri, at, at + len(old), "")
        for offset, character in enumerate(new):
            self.put(uri, at + offset, at + offset, character)

    def put(self, uri: str, start: int, end: int, new: str) -> None:
        self.send(uri, [(start, end, new)])

    def send(self, uri: str, edits: list[tuple[int, int, str]]) -> None:
        """Offsets count in the text as it was before each."""
        events, lines = list[TextDocumentContentChangePartial](), self.documents.get(uri).lines
        for start, end, new in edits:
            first, last = (Position(line=lines.line_of(at), character=at - lines.line_start(at)) for at in (start, end))
            events.append(TextDocumentContentChangePartial(range=Range(start=first, end=last), text=new))
            lines = lines.replace(start, end, new)
        self.history.changed(self.documents.change(uri, self.documents.get(uri).version + 1, events))

    def whole(self, uri: str, text: str) -> None:
        event = TextDocumentContentChangeWholeDocument(text=text)
        self.history.changed(self.documents.change(uri, 99, [event]))

    def recent(self, uri: str = HERE, cursor: int = 0) -> list[tuple[str, str]]:
        return [(edit.old, edit.new) for edit in self.history.recent(self.documents.get(uri), cursor)]


def test_what_is_typed_at_one_place_is_one_edit():
    editor = Editor(here="first\n\nsize = length(a)\nlast\n")
    editor.replace(HERE, "length", "width")
    editor.replace(HERE, "(a)", "(a, b)")
    assert editor.recent() == [("size = length(a)", "size = width(a, b)")]
    assert editor.history.recent(editor.documents.get(HERE), 0)[0].path == "here.py"


def test_edits_at_several_places_come_in_their_order_from_all_documents():
    editor = Editor(here="a = 1\nb = 2\nc = 3\nd = 4\n", there="e = 5\n")
    editor.replace(HERE, "3", "33")
    editor.replace(THERE, "5", "55")
    editor.replace(HERE, "2", "22")
    editor.replace(HERE, "33", "333")
    assert editor.recent() == [("e = 5", "e = 55"), ("b = 2", "b = 22"), ("c = 3", "c = 333")]


def test_lines_that_come_and_go_are_told_alone():
    editor = Editor(here="a\nb\nc\nd\n")
    editor.put(HERE, 2, 2, "new\n")
    assert editor.recent() == [("", "new")]
    editor = Editor(here="a\nb\nc\nd\n")
    editor.put(HERE, 2, 4, "")
    assert editor.recent() == [("b", "")]


def test_what_was_taken_back_was_never_there():
    editor = Editor(here="first\nsize = 1\n")
    editor.replace(HERE, "1", "12")
    editor.replace(HERE, "12", "1")
    assert editor.recent() == []


def test_the_line_of_the_cursor_is_left_out():
    editor = Editor(here="a = 1\nb = 2\nc = 3\n")
    editor.replace(HERE, "1", "11")
    editor.replace(HERE, "3", "33")
    assert editor.recent(cursor=editor.text(HERE).index("33")) == [("a = 1", "a = 11")]
    assert editor.recent(cursor=editor.text(HERE).index("b")) == [("a = 1", "a = 11"), ("c = 3", "c = 33")]


def test_edits_of_excluded_files_are_never_told():
    editor = Editor(here="a = 1\n", there="key = 1\n")
    editor.documents._policy = lambda uri, language: Policy(may_show=uri != THERE)
    editor.replace(THERE, "1", "2")
    assert editor.recent() == [("key = 1", "key = 2")]
    editor.documents.renew()
    assert editor.recent() == []
    editor.replace(THERE, "2", "3")
    assert editor.recent() == []


def test_a_document_that_is_closed_is_remembered_one_that_is_opened_anew_is_not():
    editor = Editor(here="a = 1\n", there="b = 1\n")
    editor.replace(THERE, "1", "2")
    editor.documents.close(THERE)
    assert editor.recent() == [("b = 1", "b = 2")]
    editor.open(THERE, "something else\n")
    assert editor.recent() == []


def test_a_document_that_was_lost_says_nothing_until_it_is_known_again():
    editor = Editor(here="a = 1\n", there="b = 1\n")
    editor.replace(THERE, "1", "2")
    editor.documents.forget(THERE)
    assert editor.recent() == []
    editor.whole(THERE, "b = 3\n")
    assert editor.recent() == [("b = 1", "b = 3")]


def test_what_is_kept_is_bounded():
    editor = Editor(here="".join(f"a{n} = {n}\n" for n in range(40)))
    for n in range(40):
        editor.replace(HERE, f"a{n} = ", f"b{n} = ")
    recent = editor.recent(cursor=len(editor.text(HERE)))
    assert [new for _, new in recent] == [f"b{n} = {n}" for n in range(40 - KEPT_PLACES, 40)]
    editor.put(HERE, 0, 0, "x" * (KEPT_CHARS + 1))
    assert len(editor.recent(cursor=len(editor.text(HERE)))) == KEPT_PLACES
    for n in range(40):
        editor.open(f"file:///w/other{n}.py", "a = 1\n")
        editor.replace(f"file:///w/other{n}.py", "1", "2")
    assert len(editor.history._edited) == KEPT_PLACES
    editor.replace("file:///w/other39.py", "2", "1")
    assert len(editor.history._edited) == KEPT_PLACES - 1


def test_settings_switch_it_off():
    documents = Documents()
    history = EditHistory(documents)
    selector = ContextSelector(documents, history)
    documents.open(TextDocumentItem(uri=HERE, language_id="python", version=1, text="a = 1\n\n"))
    event = TextDocumentContentChangeWholeDocument(text="a = 2\n\n")
    history.changed(documents.change(HERE, 2, [event]))
    snapshot = documents.get(HERE)
    assert selector.edits(snapshot, 6) == (RecentEdit(path="here.py", old="a = 1", new="a = 2"),)
    off = Policy(settings=Settings(context=ContextSettings(enabled=False)))
    assert selector.edits(replace(snapshot, policy=off), 6) == ()


def test_other_documents_edits_are_none_of_it_where_their_text_is_not_wanted():
    editor = Editor(here="a = 1\n", there="b = 1\n")
    editor.replace(THERE, "1", "2")
    editor.replace(HERE, "1", "2")
    snapshot = editor.documents.get(HERE)
    assert [edit.path for edit in editor.history.recent(snapshot, None)] == ["there.py", "here.py"]
    off = Policy(settings=Settings(context=ContextSettings(enabled=False)))
    assert [edit.path for edit in editor.history.recent(replace(snapshot, policy=off), None)] == ["here.py"]


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
@given(
    st.lists(
        st.lists(
            st.tuples(st.integers(0, 40), st.integers(0, 6), st.text(st.sampled_from("ab\r\n"), max_size=4)),
            min_size=1,
            max_size=3,
        ),
        max_size=8,
    )
)
def test_put_back_place_by_place_the_old_text_returns(line_break: str, batches):
    """The places are apart, and together they hold all that was changed."""
    text = line_break.join(("one", "two", "", "three", "four", ""))
    editor = Editor(here=text)
    for batch in batches:
        length, edits = len(editor.text(HERE)), []
        for at, size, new in batch:
            start = min(at, length)
            end = min(start + size, length)
            edits.append((start, end, new))
            length += len(new) - (end - start)
        editor.send(HERE, edits)
    held = editor.history._edited.get(HERE)
    now = editor.text(HERE)
    for place in sorted(held.places if held else [], key=lambda place: -place.start):
        now = now[: place.start] + place.old + now[place.end :]
    assert now == text
