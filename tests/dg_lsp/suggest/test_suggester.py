"""What the engine is asked, and when it is not. The engine is played by a recorder; real ones are in tests/e2e."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from lsprotocol.types import TextDocumentContentChangeWholeDocument, TextDocumentItem

from dg_lsp.config.configuration import Configuration
from dg_lsp.documents.documents import Documents, Policy
from dg_lsp.documents.gap import WINDOW_CHARS, gap_at
from dg_lsp.suggest.suggester import (
    INLINE,
    INVOKED_DEADLINE_FACTOR,
    LATE,
    MENU,
    NOTHING_VALID,
    UNSURE,
)
from dg_lsp.workspace.context import ContextSelector
from dg_lsp.workspace.history import EditHistory
from dg_lsp.workspace.index import WorkspaceIndex
from engine.common.request import Candidate, Filled, FillRequest, Timings
from tests.accepting import suggester_of

pytestmark = pytest.mark.asyncio
URI = "file:///w/app/main.py"


@dataclass
class Recorder:
    """Answers every request with the same texts."""

    answers: tuple[str, ...] = ("answer",)
    confidence: float = 0.9
    threshold: float | None = None
    took_ms: float = 0.0
    origin: str = ""
    swallowed: int = 0
    is_ready: bool = True
    deadline_ms: float = 300.0
    asked: list[FillRequest] = field(default_factory=list)
    warmed: int = 0
    loaded: asyncio.Event = field(default_factory=asyncio.Event)

    async def fill(self, request: FillRequest, document: str) -> Filled:
        self.asked.append(request)
        await asyncio.sleep(0)
        sure = self.confidence
        candidates = [
            Candidate(text=text, tokens=1, confidence=sure, score=0.0, origin=self.origin, swallowed=self.swallowed)
            for text in self.answers[: request.n]
        ]
        ms = Timings(total=self.took_ms)
        return Filled(
            model="",
            device="",
            candidates=tuple(candidates),
            width=1,
            steps=1,
            forwards=1,
            threshold=self.threshold,
            ms=ms,
        )

    def warm(self) -> None:
        self.warmed += 1

    async def wait_until_ready(self) -> bool:
        if not self.is_ready:
            await self.loaded.wait()
        return True


class Window:
    """A suggester with documents."""

    def __init__(self, recorder: Recorder | None = None, settings: object = None, hidden: str = "") -> None:
        self.recorder = recorder or Recorder()
        self.silences = list[str]()
        self.origins = list[str]()
        self.hidden = hidden
        self.documents = Documents(policy=self.policy)
        self.configuration = Configuration(lambda problem: pytest.fail(problem))
        self.configuration.initialize(settings)
        self.history = EditHistory(self.documents)
        self.index = WorkspaceIndex(self.documents)
        context = ContextSelector(self.documents, self.history)
        siblings = {"context": context, "index": self.index, "on_outcome": self.told}
        self.suggester = suggester_of(self.documents, self.recorder, **siblings)

    def told(self, why: str, origin: str) -> None:
        self.silences.append(why)
        self.origins.append(origin)

    def policy(self, uri: str, language: str) -> Policy:
        may_show = not self.hidden or self.hidden not in uri
        off = self.configuration.why_off(uri, language) or ("" if may_show else "It is hidden.")
        return Policy(settings=self.configuration.settings_of(uri), off=off, may_show=may_show)

    def switch(self, *, enabled: bool) -> None:
        self.configuration.switch(enabled=enabled)
        self.documents.renew()

    def open(self, marked: str, uri: str = URI) -> None:
        self.cursor = max(marked.find("▮"), 0)
        item = TextDocumentItem(uri=uri, language_id="python", version=1, text=marked.replace("▮", ""))
        self.documents.open(item)

    def becomes(self, marked: str) -> None:
        self.cursor = marked.find("▮")
        version = self.documents.get(URI).version + 1
        event = TextDocumentContentChangeWholeDocument(text=marked.replace("▮", ""))
        change = self.documents.change(URI, version, [event])
        self.history.changed(change)
        self.suggester.changed(change)

    async def texts(self, *, invoked: bool = False, lane: str = INLINE) -> list[str]:
        gap = gap_at(self.documents.get(URI), self.cursor)
        return [remainder.text for remainder in await self.suggester.suggest(gap, invoked=invoked, lane=lane)]

    async def request(self, marked: str, *, invoked: bool = False) -> FillRequest:
        self.open(marked)
        await self.texts(invoked=invoked)
        return self.recorder.asked[-1]


async def test_the_settings_reach_the_request():
    inline = {"deadline_ms": 123, "candidates": 4, "max_tokens": 7}
    window = Window(settings={"inline": inline})
    unasked = await window.request("x = ▮\n")
    assert (unasked.deadline_ms, unasked.n, unasked.max_tokens) == (123, 1, 7)
    invoked = await window.request("y = ▮\n", invoked=True)
    assert (invoked.deadline_ms, invoked.n) == (123 * INVOKED_DEADLINE_FACTOR, 4)
    assert (await Window().request("x = ▮\n")).deadline_ms == 300


async def test_the_gap_reaches_the_request():
    window = Window()
    request = await window.request("x = f(▮)\ny")
    assert (request.prefix, request.suffix, request.language) == ("x = f(", ")\ny", "python")
    assert request.single_line
    assert not (await window.request("x = ▮  \ny")).single_line


async def test_the_folder_of_the_file_reaches_the_request(tmp_path: Path):
    window = Window()
    window.open("x = ▮\n", uri := (tmp_path / "a b" / "é.py").as_uri())
    await window.suggester.suggest(gap_at(window.documents.get(uri), window.cursor), invoked=False, lane=INLINE)
    assert window.recorder.asked[-1].folder == str(tmp_path / "a b")
    window.open("x = ▮\n", "untitled:Untitled-1")
    gap = gap_at(window.documents.get("untitled:Untitled-1"), window.cursor)
    await window.suggester.suggest(gap, invoked=False, lane=INLINE)
    assert window.recorder.asked[-1].folder == ""


async def test_only_a_window_of_a_huge_document_is_sent():
    around = "one = 1\n" * 500_000
    request = await Window().request(f"{around}▮{around}")
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
    window = Window(settings=settings, hidden=hidden)
    window.open("class Circle: radius = 1\n", "file:///w/app/shapes.py")
    request = await window.request("from app import shapes\nx = ▮\n")
    assert [snippet.path for snippet in request.snippets] == expected


async def test_what_typing_diverged_from_is_the_next_guess():
    window = Window(Recorder(answers=("compute(first, second)",)))
    window.open("x = ▮\n")
    await window.texts()
    window.becomes("x = calc▮\n")
    await window.texts()
    assert [request.guess for request in window.recorder.asked] == ["", "(first, second)"]


async def test_an_unasked_request_does_not_wait_for_the_model_but_wakes_it():
    window = Window(Recorder(is_ready=False))
    window.open("x = ▮\n")
    assert await window.texts() == []
    assert (window.recorder.warmed, window.recorder.asked) == (1, [])


async def test_who_asks_waits_for_the_model_unless_a_newer_request_comes():
    window = Window(Recorder(is_ready=False))
    window.open("x = ▮\n")
    older = asyncio.create_task(window.texts(invoked=True))
    await asyncio.sleep(0)
    window.cursor -= 1
    newer = asyncio.create_task(window.texts(invoked=True))
    await asyncio.sleep(0)
    window.recorder.loaded.set()
    assert await older == []
    assert await newer == ["answer"]
    assert len(window.recorder.asked) == 1


@pytest.mark.parametrize("answer", ["", " ", "\n  \n"])
async def test_an_answer_of_nothing_but_space_is_none(answer):
    window = Window(Recorder(answers=(answer,)))
    window.open("x = ▮\n")
    assert await window.texts() == []


@pytest.mark.parametrize(
    ("document", "answer", "swallowed", "outcome"),
    [
        ("x = f(▮)\n", "y).z", 1, "x = f(y).z\n"),
        ("x = f(▮)\n", "y", 0, "x = f(y)\n"),
        ("x = pri▮\n", "print(y)", 0, "x = print(y)\n"),
        ("x = f(▮, 1)\n", "y\nz", 0, "x = f(y, 1)\n"),
    ],
)
async def test_what_an_answer_takes_the_place_of_is_replaced(document, answer, swallowed, outcome):
    window = Window(Recorder(answers=(answer,), swallowed=swallowed))
    window.open(document)
    gap = gap_at(window.documents.get(URI), window.cursor)
    (remainder,) = await window.suggester.suggest(gap, invoked=False, lane=INLINE)
    assert window.recorder.asked[-1].may_swallow
    assert gap.text[: remainder.cursor] + remainder.text + gap.text[remainder.end :] == outcome


@pytest.mark.parametrize("lane", [INLINE, MENU])
async def test_after_a_suggestion_was_taken_the_next_one_is_on_its_way(lane):
    window = Window()
    window.open("x = ▮\n")
    await window.texts(lane=lane)
    window.becomes("x = answer▮\n")
    await asyncio.sleep(0.001)
    assert window.recorder.asked[-1].prefix == "x = answer"
    assert await window.texts(lane=lane) == ["answer"]
    assert len(window.recorder.asked) == 2
    window.open("y = ▮\n")
    other = MENU if lane == INLINE else INLINE
    await window.texts(lane=other)
    window.becomes("y = answer▮\n")
    await asyncio.sleep(0.001)
    assert await window.texts(lane=other) == ["answer"]
    assert len(window.recorder.asked) == 4


async def test_after_a_suggestion_was_taken_none_is_asked_for_where_they_are_switched_off():
    window = Window()
    window.open("x = ▮\n")
    await window.texts()
    window.switch(enabled=False)
    before = len(window.recorder.asked)
    window.becomes("x = answer▮\n")
    await asyncio.sleep(0.001)
    assert len(window.recorder.asked) == before


@pytest.mark.parametrize(("invoked", "silences"), [(True, []), (False, ["Suggestions are switched off."])])
async def test_who_asks_where_suggestions_are_switched_off_says_nothing_of_those_that_come_unasked(invoked, silences):
    window = Window()
    window.switch(enabled=False)
    window.open("x = ▮\n")
    assert await window.texts(invoked=invoked) == []
    assert window.silences == silences


@pytest.mark.parametrize("invoked", [True, False])
async def test_what_is_under_way_is_not_shown_once_suggestions_are_switched_off(invoked):
    window = Window()
    window.open("x = ▮\n")
    under_way = asyncio.create_task(window.texts(invoked=invoked))
    while not window.recorder.asked:
        await asyncio.sleep(0)
    window.switch(enabled=False)
    assert await under_way == []
    window.switch(enabled=True)
    assert await window.texts() == ["answer"]
    assert len(window.recorder.asked) == 1


async def test_who_waits_for_the_model_may_close_the_document():
    window = Window(Recorder(is_ready=False))
    window.open("x = ▮\n")
    waiting = asyncio.create_task(window.texts(invoked=True))
    await asyncio.sleep(0)
    window.suggester.closed(URI)
    window.recorder.loaded.set()
    assert await waiting == []
    assert window.recorder.asked == []


async def test_of_a_document_that_was_closed_nothing_is_remembered():
    window = Window(Recorder(is_ready=False))
    window.open("x = ▮\n")
    waiting = asyncio.create_task(window.texts(invoked=True))
    while not window.recorder.warmed and not window.suggester._caches:
        await asyncio.sleep(0)
    window.suggester.closed(URI)
    window.documents.close(URI)
    window.recorder.loaded.set()
    assert await waiting == []
    assert not window.suggester._caches


async def test_the_menu_and_ghost_text_do_not_supersede_each_other():
    window = Window()
    window.open("x = ▮\n")
    both = await asyncio.gather(window.texts(), window.texts(lane=MENU))
    assert both == [["answer"], ["answer"]]


async def test_earlier_suggestions_come_first_and_none_twice():
    window = Window(Recorder(answers=("one", "two", "three")))
    window.open("x = ▮\n")
    assert await window.texts() == ["one"]
    assert await window.texts(invoked=True) == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("recorder", "hidden", "why"),
    [
        (Recorder(), "", ""),
        (Recorder(confidence=0.1), "", UNSURE),
        (Recorder(answers=()), "", NOTHING_VALID),
        (Recorder(answers=(), took_ms=295), "", LATE),
        (Recorder(), "main.py", "It is hidden."),
    ],
)
async def test_it_is_told_why_nothing_is_shown_unasked(recorder: Recorder, hidden: str, why: str):
    window = Window(recorder, hidden=hidden)
    window.open("x = ▮\n")
    assert bool(await window.texts()) == (not why)
    assert window.silences == [why]


@pytest.mark.parametrize(
    ("fitted", "setting", "shown"),
    [(None, "auto", True), (0.6, "auto", False), (0.3, "auto", True), (0.6, 0.4, True), (0.3, 0.6, False)],
)
async def test_a_model_says_how_sure_it_has_to_be_unless_the_user_does(
    fitted: float | None, setting: str | float, shown: bool
):
    window = Window(Recorder(confidence=0.5, threshold=fitted), {"inline": {"threshold": setting}})
    window.open("x = ▮\n")
    assert bool(await window.texts()) == shown
    assert window.silences == ["" if shown else UNSURE]
    assert bool(await window.texts()) == shown, "what is held since the first answer is no surer"


async def test_who_asks_is_answered_however_unsure_the_model_is():
    window = Window(Recorder(confidence=0.01))
    window.open("x = ▮\n")
    assert await window.texts() == []
    assert await window.texts(invoked=True) == ["answer"]
    assert window.silences == [UNSURE], "what was asked for says nothing about what is not"


async def test_what_stands_elsewhere_reaches_the_request_and_where_it_stands_the_editor(monkeypatch):
    monkeypatch.setattr("dg_lsp.workspace.index.IDLE_S", 0.0)
    window = Window(Recorder(answers=("raise ValueError(y)",), origin="other.py:2"))
    window.open("if x is None:\n    raise ValueError(x)\n", "file:///w/app/other.py")
    window.open("if y is None:\n    ▮\n")
    for uri in window.documents.uris():
        window.index.opened(uri)
    while not window.index.is_complete:
        await asyncio.sleep(0.005)
    assert await window.texts() == ["raise ValueError(y)"]
    (match,) = window.recorder.asked[-1].workspace_matches
    assert (match.text, match.origin) == ("raise ValueError(y)", "other.py:2")
    assert match.likeness > 4
    assert window.origins == ["from other.py:2"]
    window.index.close()


TAKEN_BACK = [
    ("def f():\n    a = load()\n    b = a + 1\n    ▮", "def f():\n▮"),
    ("def f():\n    password = 'hunter2'\n    return ▮", "def f():\n    ▮"),
    ("x = foo(bar, ▮", "x = foo(▮"),
    ("x = foo(bar, ▮", "▮"),
]


@pytest.mark.asyncio
@pytest.mark.parametrize(("before", "after"), TAKEN_BACK)
async def test_what_was_just_deleted_is_not_offered_again(before: str, after: str):
    window = Window()
    await window.request(before)
    window.becomes(after)
    window.recorder.answers = ("another",)
    assert await window.texts() == ["another"]
    assert len(window.recorder.asked) == 2


@pytest.mark.asyncio
async def test_what_is_typed_again_leads_to_what_was_suggested_behind_it():
    window = Window()
    await window.request("x = foo(bar, ▮")
    window.becomes("x = foo(▮")
    window.becomes("x = foo(b▮")
    assert await window.texts() == ["ar, answer"]
    assert len(window.recorder.asked) == 1
