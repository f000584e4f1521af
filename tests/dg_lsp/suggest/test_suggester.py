"""What the engine is asked, and when it is not. The engine is played by a recorder; real ones are in tests/e2e."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from lsprotocol.types import TextDocumentContentChangeWholeDocument, TextDocumentItem

from dg_lsp.config.configuration import Configuration
from dg_lsp.documents.documents import Documents
from dg_lsp.documents.gap import WINDOW_CHARS, gap_at
from dg_lsp.suggest.suggester import (
    EXCLUDED,
    INLINE,
    INVOKED_PATIENCE,
    LATE,
    MENU,
    NOTHING_VALID,
    UNSURE,
    Suggester,
)
from engine.core.request import Candidate, Filled, FillRequest, Timings

pytestmark = pytest.mark.asyncio
URI = "file:///w/app/main.py"


@dataclass
class Recorder:
    """Answers every request with the same texts."""

    answers: tuple[str, ...] = ("answer",)
    confidence: float = 0.9
    took_ms: float = 0.0
    is_ready: bool = True
    deadline_ms: float = 300.0
    asked: list[FillRequest] = field(default_factory=list)
    warmed: int = 0
    loaded: asyncio.Event = field(default_factory=asyncio.Event)

    async def fill(self, request: FillRequest, document: str) -> Filled:
        self.asked.append(request)
        await asyncio.sleep(0)
        sure = self.confidence
        candidates = [Candidate(text=text, tokens=1, confidence=sure, score=0.0) for text in self.answers[: request.n]]
        ms = Timings(total=self.took_ms)
        return Filled(model="", device="", candidates=tuple(candidates), width=1, steps=1, forwards=1, ms=ms)

    def warm(self) -> None:
        self.warmed += 1

    async def wait_until_ready(self) -> bool:
        if not self.is_ready:
            await self.loaded.wait()
        return True


async def _nothing_to_look_at(_: str) -> None:
    pass


class Desk:
    """A suggester with documents."""

    def __init__(self, recorder: Recorder | None = None, settings: object = None, hidden: str = "") -> None:
        self.recorder = recorder or Recorder()
        self.silences = list[str]()
        self.documents = Documents()
        self.configuration = Configuration(lambda problem: pytest.fail(problem))
        self.configuration.initialize(settings)
        self.suggester = Suggester(
            documents=self.documents,
            configuration=self.configuration,
            resident=self.recorder,
            may_show=lambda snapshot: not hidden or hidden not in snapshot.uri,
            look=_nothing_to_look_at,
            silence=self.silences.append,
        )

    def open(self, marked: str, uri: str = URI) -> None:
        self.cursor = max(marked.find("▮"), 0)
        item = TextDocumentItem(uri=uri, language_id="python", version=1, text=marked.replace("▮", ""))
        self.documents.open(item)

    def becomes(self, marked: str) -> None:
        self.cursor = marked.find("▮")
        version = self.documents.get(URI).version + 1
        event = TextDocumentContentChangeWholeDocument(text=marked.replace("▮", ""))
        self.suggester.changed(self.documents.change(URI, version, [event]), now_ms=0)

    async def texts(self, *, invoked: bool = False, lane: str = INLINE) -> list[str]:
        gap = gap_at(self.documents.get(URI), self.cursor)
        return [rest.text for rest in await self.suggester.suggest(gap, invoked=invoked, lane=lane)]

    async def request(self, marked: str, *, invoked: bool = False) -> FillRequest:
        self.open(marked)
        await self.texts(invoked=invoked)
        return self.recorder.asked[-1]


async def test_the_settings_reach_the_request():
    inline = {"deadline_ms": 123, "candidates": 4, "max_tokens": 7}
    desk = Desk(settings={"inline": inline})
    unasked = await desk.request("x = ▮\n")
    assert (unasked.deadline_ms, unasked.n, unasked.max_tokens) == (123, 1, 7)
    invoked = await desk.request("y = ▮\n", invoked=True)
    assert (invoked.deadline_ms, invoked.n) == (123 * INVOKED_PATIENCE, 4)
    assert (await Desk().request("x = ▮\n")).deadline_ms == 300


async def test_the_gap_reaches_the_request():
    desk = Desk()
    request = await desk.request("x = f(▮)\ny")
    assert (request.prefix, request.suffix, request.language) == ("x = f(", ")\ny", "python")
    assert request.single_line
    assert not (await desk.request("x = ▮  \ny")).single_line


async def test_only_a_window_of_a_huge_document_is_sent():
    around = "one = 1\n" * 500_000
    request = await Desk().request(f"{around}▮{around}")
    assert len(request.prefix) + len(request.suffix) < 3 * WINDOW_CHARS


@pytest.mark.parametrize(
    ("settings", "hidden", "expected"),
    [
        (None, "", ["shapes.py"]),
        ({"context": {"enabled": False}}, "", []),
        ({"context": {"max_tokens": 1}}, "", []),
        (None, "shapes", []),
    ],
)
async def test_other_documents_reach_the_request_unless_they_must_not(settings, hidden, expected):
    desk = Desk(settings=settings, hidden=hidden)
    desk.open("class Circle: radius = 1\n", "file:///w/app/shapes.py")
    request = await desk.request("from app import shapes\nx = ▮\n")
    assert [snippet.path for snippet in request.snippets] == expected


async def test_what_typing_diverged_from_is_the_next_guess():
    desk = Desk(Recorder(answers=("compute(first, second)",)))
    desk.open("x = ▮\n")
    await desk.texts()
    desk.becomes("x = calc▮\n")
    await desk.texts()
    assert [request.guess for request in desk.recorder.asked] == ["", "(first, second)"]


async def test_an_unasked_request_does_not_wait_for_the_model_but_wakes_it():
    desk = Desk(Recorder(is_ready=False))
    desk.open("x = ▮\n")
    assert await desk.texts() == []
    assert (desk.recorder.warmed, desk.recorder.asked) == (1, [])


async def test_who_asks_waits_for_the_model_unless_a_newer_request_comes():
    desk = Desk(Recorder(is_ready=False))
    desk.open("x = ▮\n")
    older = asyncio.create_task(desk.texts(invoked=True))
    await asyncio.sleep(0)
    newer = asyncio.create_task(desk.texts(invoked=True))
    await asyncio.sleep(0)
    desk.recorder.loaded.set()
    assert await older == []
    assert await newer == ["answer"]
    assert len(desk.recorder.asked) == 1


@pytest.mark.parametrize("answer", ["", " ", "\n  \n"])
async def test_an_answer_of_nothing_but_space_is_none(answer):
    desk = Desk(Recorder(answers=(answer,)))
    desk.open("x = ▮\n")
    assert await desk.texts() == []


@pytest.mark.parametrize(
    ("document", "answer", "outcome"),
    [
        ("x = f(▮)\n", "y)", "x = f(y)\n"),
        ("x = f(g(▮)\n", "y)", "x = f(g(y))\n"),
        ("x = pri▮\n", "print(y)", "x = print(y)\n"),
        ("x = f(▮, 1)\n", "y\nz", "x = f(y, 1)\n"),
    ],
)
async def test_what_an_answer_makes_redundant_is_replaced(document, answer, outcome):
    desk = Desk(Recorder(answers=(answer,)))
    desk.open(document)
    gap = gap_at(desk.documents.get(URI), desk.cursor)
    (rest,) = await desk.suggester.suggest(gap, invoked=False, lane=INLINE)
    assert gap.text[: rest.cursor] + rest.text + gap.text[rest.end :] == outcome


@pytest.mark.parametrize("lane", [INLINE, MENU])
async def test_after_a_suggestion_was_taken_the_next_one_is_on_its_way(lane):
    desk = Desk()
    desk.open("x = ▮\n")
    await desk.texts(lane=lane)
    desk.becomes("x = answer▮\n")
    await asyncio.sleep(0)
    assert desk.recorder.asked[-1].prefix == "x = answer"
    assert await desk.texts(lane=lane) == ["answer"]
    assert len(desk.recorder.asked) == 2
    desk.open("y = ▮\n")
    other = MENU if lane == INLINE else INLINE
    await desk.texts(lane=other)
    desk.becomes("y = answer▮\n")
    await asyncio.sleep(0)
    assert await desk.texts(lane=other) == ["answer"]
    assert len(desk.recorder.asked) == 4


async def test_after_a_suggestion_was_taken_none_is_asked_for_where_they_are_switched_off():
    desk = Desk()
    desk.open("x = ▮\n")
    await desk.texts()
    desk.configuration.switch(enabled=False)
    before = len(desk.recorder.asked)
    desk.becomes("x = answer▮\n")
    await asyncio.sleep(0)
    assert len(desk.recorder.asked) == before


@pytest.mark.parametrize("invoked", [True, False])
async def test_what_is_under_way_is_not_shown_once_suggestions_are_switched_off(invoked):
    desk = Desk()
    desk.open("x = ▮\n")
    under_way = asyncio.create_task(desk.texts(invoked=invoked))
    while not desk.recorder.asked:
        await asyncio.sleep(0)
    desk.configuration.switch(enabled=False)
    assert await under_way == []
    desk.configuration.switch(enabled=True)
    assert await desk.texts() == ["answer"]
    assert len(desk.recorder.asked) == 1


async def test_who_waits_for_the_model_may_close_the_document():
    desk = Desk(Recorder(is_ready=False))
    desk.open("x = ▮\n")
    waiting = asyncio.create_task(desk.texts(invoked=True))
    await asyncio.sleep(0)
    desk.suggester.closed(URI)
    desk.recorder.loaded.set()
    assert await waiting == []
    assert desk.recorder.asked == []


async def test_the_menu_and_ghost_text_do_not_supersede_each_other():
    desk = Desk()
    desk.open("x = ▮\n")
    both = await asyncio.gather(desk.texts(), desk.texts(lane=MENU))
    assert both == [["answer"], ["answer"]]


async def test_earlier_suggestions_come_first_and_none_twice():
    desk = Desk(Recorder(answers=("one", "two", "three")))
    desk.open("x = ▮\n")
    assert await desk.texts() == ["one"]
    assert await desk.texts(invoked=True) == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("recorder", "hidden", "why"),
    [
        (Recorder(), "", ""),
        (Recorder(confidence=0.1), "", UNSURE),
        (Recorder(answers=()), "", NOTHING_VALID),
        (Recorder(answers=(), took_ms=295), "", LATE),
        (Recorder(), "main.py", EXCLUDED),
    ],
)
async def test_it_is_told_why_nothing_is_shown_unasked(recorder: Recorder, hidden: str, why: str):
    desk = Desk(recorder, hidden=hidden)
    desk.open("x = ▮\n")
    assert bool(await desk.texts()) == (not why)
    assert desk.silences == [why]


async def test_who_asks_is_answered_however_unsure_the_model_is():
    desk = Desk(Recorder(confidence=0.01))
    desk.open("x = ▮\n")
    assert await desk.texts() == []
    assert await desk.texts(invoked=True) == ["answer"]
    assert desk.silences == [UNSURE], "what was asked for says nothing about what is not"
