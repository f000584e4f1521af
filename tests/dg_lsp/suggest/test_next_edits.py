"""What is offered as the next edit once others are decided about. The engine is played by a recorder; real ones are in
tests/e2e."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from lsprotocol.types import TextDocumentContentChangeWholeDocument, TextDocumentItem

from dg_lsp.config.configuration import Configuration
from dg_lsp.documents.documents import Documents, Policy
from dg_lsp.suggest.next_edits import NextEdits
from dg_lsp.workspace.history import EditHistory
from engine.common.request import Candidate, Filled, FillRequest

pytestmark = pytest.mark.asyncio
URI = "file:///w/a.py"
TEXT = "def f(size):\n    a = size\n    b = size\n    return size\n"


@dataclass
class Engine:
    """Finds each `size` that is left, the first time that it is asked."""

    asked: list[str] = field(default_factory=list)
    deadline_ms: float = 300.0

    async def fill(self, request: FillRequest, document: str) -> Filled:
        text = request.prefix + request.suffix
        starts = [at for at in range(len(text)) if text.startswith("size", at)]
        places = [(at, at + 4) for at in starts] if not self.asked else []
        self.asked.append(text)
        candidates = tuple(
            Candidate(text="width", tokens=1, confidence=0.9, score=0.0, replaces=place) for place in places
        )
        return Filled(model="", device="", candidates=candidates, width=1, steps=1, forwards=1)


class Window:
    def __init__(self) -> None:
        configuration = Configuration(pytest.fail)
        configuration.initialize(None)
        settings = configuration.settings_of(URI)
        self.documents = Documents(policy=lambda uri, language: Policy(settings=settings, off="", may_show=True))
        self.history = EditHistory(self.documents)
        self.engine = Engine()
        self.next_edits = NextEdits(documents=self.documents, resident=self.engine, history=self.history)
        self.documents.open(TextDocumentItem(uri=URI, language_id="python", version=1, text=TEXT))
        self.becomes(TEXT.replace("size", "width", 1))

    @property
    def text(self) -> str:
        return self.documents.get(URI).text

    def becomes(self, text: str) -> None:
        version = self.documents.get(URI).version + 1
        event = TextDocumentContentChangeWholeDocument(text=text)
        change = self.documents.change(URI, version, [event])
        self.history.changed(change)
        self.next_edits.changed(change)

    async def offered(self) -> list[int]:
        """The lines of what is offered."""
        found = await self.next_edits.at(self.documents.get(URI), 0)
        return [self.text.count("\n", 0, place.start) for place in found.places] if found else []


async def test_who_takes_one_place_after_the_other_is_offered_all_that_was_promised():
    window = Window()
    assert await window.offered() == [1, 2, 3]
    window.becomes(window.text.replace("size", "width", 1))
    assert await window.offered() == await window.offered() == [2, 3]
    window.becomes(window.text.replace("size", "width", 1))
    assert await window.offered() == [3]
    window.becomes(window.text.replace("size", "width", 1))
    assert await window.offered() == []
    assert window.text == TEXT.replace("size", "width")


async def test_what_was_promised_is_looked_for_anew_once_the_text_changes_elsewhere():
    window = Window()
    await window.offered()
    window.becomes(window.text.replace("size", "width", 1))
    window.becomes(window.text + "\nimport os\n")
    assert await window.offered() == []
    assert len(window.engine.asked) == 2


async def test_of_what_was_promised_nothing_comes_again_that_was_dismissed_or_typed_against():
    window = Window()
    await window.offered()
    window.becomes(window.text.replace("size", "width", 1))
    found = await window.next_edits.at(window.documents.get(URI), 0)
    assert found
    window.next_edits.dismiss(found.id)
    assert await window.offered() == []
    window = Window()
    await window.offered()
    window.becomes(window.text.replace("size", "width", 1))
    window.becomes(window.text.replace("size", "depth", 1))
    assert await window.offered() == []
