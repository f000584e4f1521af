"""What became of a suggestion shows in the edits that follow."""

from __future__ import annotations

import pytest
from lsprotocol.types import TextDocumentContentChangeWholeDocument, TextDocumentItem

from dg_lsp.documents.documents import Documents
from dg_lsp.suggest.acceptance import Acceptance
from dg_lsp.suggest.suggestions import Suggestion

URI = "file:///a.py"


class Session:
    """A document in which `return a + b` was suggested behind `    `."""

    def __init__(self, before: str = "def f(a, b):\n    ", answer: str = "return a + b\n") -> None:
        self.events = list[tuple[str, int]]()
        self.acceptance = Acceptance(lambda _, event, chars: self.events.append((event, chars)))
        self.documents = Documents()
        self.documents.open(TextDocumentItem(uri=URI, language_id="python", version=1, text=before))
        self.before, self.answer = before, answer
        self.show(answer, id=1)
        self.events.clear()

    def show(self, *answers: str, id: int) -> None:
        """Several count up from `id`."""
        text = self.documents.get(URI).text
        suggestions = [
            Suggestion(id=number, base=text, start=len(text), end=len(text), text=answer, confidence=0.9)
            for number, answer in enumerate(answers, id)
        ]
        self.acceptance.shown(URI, "python", [held.remainder(text, len(text)) for held in suggestions])

    def becomes(self, *typed: str) -> None:
        """The document behind `before`, change by change."""
        for text in typed:
            version = self.documents.get(URI).version + 1
            event = TextDocumentContentChangeWholeDocument(text=self.before + text)
            self.acceptance.changed(self.documents.change(URI, version, [event]))


def test_taking_it_in_one_go_is_acceptance():
    session = Session()
    session.becomes(session.answer)
    assert session.events == [("accepted", len(session.answer))]


def test_taking_it_word_by_word_to_the_end_is_acceptance_too():
    session = Session()
    session.becomes("return", "return a", "return a + b", session.answer)
    assert session.events == [("accepted", len("return a + b"))]


def test_taking_a_word_and_going_another_way_is_partial():
    session = Session()
    session.becomes("return", "returns")
    session.acceptance.closed(URI)
    assert session.events == [("partial", 6)]


def test_typing_it_by_hand_is_neither_acceptance_nor_rejection():
    session = Session(answer="ab\n    c")
    # The editor indents by itself.
    session.becomes("a", "ab", "ab\n    ", "ab\n    c")
    session.acceptance.closed(URI)
    assert session.events == [("typed", 0)]


def test_going_another_way_is_rejection_once_something_else_is_shown():
    session = Session()
    session.becomes("x")
    assert session.events == []
    session.show("yz", id=2)
    assert session.events == [("rejected", 0), ("shown", 2)]


def test_going_another_way_and_coming_back_can_still_be_acceptance():
    session = Session()
    session.becomes("x", "", session.answer)
    assert session.events == [("accepted", len(session.answer))]


@pytest.mark.parametrize("also_seen", [True, False])
def test_the_item_s_command_is_acceptance_and_counts_once(also_seen):
    session = Session()
    session.becomes(session.answer if also_seen else "formatted by the editor")
    session.acceptance.ran(1)
    session.acceptance.ran(1)
    session.acceptance.ran(99)
    session.acceptance.close()
    assert session.events == [("accepted", len(session.answer))]


@pytest.mark.parametrize("chosen", ["red\n", "green\n", "blue\n"])
@pytest.mark.parametrize("by_command", [True, False])
def test_any_of_those_shown_together_can_be_taken(chosen, by_command):
    answers = ["red\n", "green\n", "blue\n"]
    session = Session(answer=answers[0])
    session.show(*answers, id=1)
    if by_command:
        session.acceptance.ran(1 + answers.index(chosen))
    else:
        session.becomes(chosen)
    session.acceptance.close()
    assert session.events == [("accepted", len(chosen))]


def test_a_word_of_another_candidate_is_taken_in_part():
    session = Session()
    session.show(session.answer, "yield from a\n", id=1)
    session.becomes("yield", "yielded")
    session.acceptance.close()
    assert session.events == [("partial", 5)]


def test_one_character_is_taken_if_the_command_says_so():
    session = Session(answer="abc")
    session.becomes("a", "ab", "abc")
    session.acceptance.ran(1)
    session.acceptance.close()
    assert session.events == [("accepted", 1)]


def test_showing_the_rest_of_it_is_not_showing_something_new():
    session = Session()
    session.show(session.answer, id=1)
    assert session.events == []


def test_the_end_of_a_session_is_rejection_of_what_is_still_shown():
    session = Session()
    session.acceptance.close()
    assert session.events == [("rejected", 0)]
