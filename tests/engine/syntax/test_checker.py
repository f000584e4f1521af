"""The process that checks syntax, with real ones: what it answers, what it survives not, what that costs others."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import psutil
import pytest

from engine.common.analysis import Analysis, SyntaxErrorRegion
from engine.common.errors import MalformedMessage
from engine.syntax.checker import Checker, Ticket, _Watch, rest_s
from engine.syntax.questions import (
    AnalyzeText,
    CallsToChange,
    Diagnose,
    Diagnosis,
    Insertions,
    Question,
    Reply,
    Roles,
    RolesOf,
    SpanEdits,
    SyntaxCheck,
    Tried,
    TryEdits,
    TryInsertions,
    ValidateFills,
    Validations,
    reply_to,
)
from engine.syntax.suspects import ASIDE_S, Suspects
from engine.syntax.wire import framed, unpacked_reply

CRASHES = "- " * 254
"""In YAML: its scanner writes its state behind the end of a buffer."""
NEVER_ENDS = "import sys, time\nsys.stdin.buffer.read(1)\ntime.sleep(600)"
BUSY = "import sys\nsys.stdin.buffer.read(1)\nwhile True: pass"
WAIT_S = 60.0


@asynccontextmanager
async def checking(*command: str, **options: Any) -> AsyncIterator[Checker]:
    checker = Checker(**({"command": command} if command else {}), **options)
    await checker.start()
    try:
        yield checker
    finally:
        await checker.close()


async def asked(checker: Checker, question: Question, budget_ms: float = 20_000.0, urgency: int = 0) -> Reply | None:
    coming: asyncio.Future[Reply | None] = asyncio.get_running_loop().create_future()
    check = SyntaxCheck(question=question, budget_ms=budget_ms)
    checker.submit(Ticket(check=check, urgency=urgency, deliver=coming.set_result))
    return await asyncio.wait_for(coming, WAIT_S)


def call(text: str = "def f(a):\n    return ()\n", *fills: str) -> ValidateFills:
    at = text.index(")\n", text.index("return"))
    return ValidateFills(text=text, start=at, end=at, language="python", fills=fills or ("a",))


def crash(number: int = 0) -> Diagnose:
    return Diagnose(text=CRASHES + f"#{number}\n", language="yaml")


@pytest.mark.asyncio
async def test_questions_are_answered_by_another_process():
    async with checking() as checker:
        reply = await asked(checker, call())
        assert isinstance(reply, Validations)
        assert [each and each.text for each in reply.fills] == ["a"]
        spans = ((0, 1),)
        region = SyntaxErrorRegion(start=0, end=5, what="", spots=(4,))
        before, text = "def f(a, b): pass\nf(1, 2)\n", "def f(a): pass\nf(1, 2)\n"
        others: dict[type[Reply], Question] = {
            Diagnosis: Diagnose(text="x = (", language="python"),
            Analysis: AnalyzeText(text="x = (", language="python", cursor=0),
            Tried: TryEdits(text="x = (", language="python", start=4, end=5, texts=("1",), most=1),
            Insertions: TryInsertions(text="x = (", language="python", region=region, start=0, end=5),
            Roles: RolesOf(text="x = 1", language="python", spans=spans),
            SpanEdits: CallsToChange(before=before, text=text, language="python", start=0),
        }
        assert {Validations, *others} == {*get_args(Reply)}
        for kind, question in others.items():
            assert isinstance(await asked(checker, question), kind)
        assert checker.pid in [child.pid for child in psutil.Process().children()]
    assert checker.pid is None


@pytest.mark.asyncio
async def test_a_text_that_was_edited_is_the_text_that_is_judged():
    async with checking() as checker:
        body = "def f(a):\n    return ()\n" + "y = 'ä😋'\n" * 50
        for number in range(12):
            text = f"x{number} = 1\n" * (number % 3) + body.replace("y", f"z{number}", number)
            reply = await asked(checker, call(text, "a", "a)"))
            assert isinstance(reply, Validations)
            assert [each and (each.text, each.verdict and each.verdict.whole) for each in reply.fills] == [
                ("a", True)
            ] * 2


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
@pytest.mark.asyncio
async def test_the_process_has_limits():
    async with checking() as checker:
        await asked(checker, call())
        process = psutil.Process(checker.pid)
        assert process.rlimit(psutil.RLIMIT_CORE) == (0, 0)
        assert 0 < process.rlimit(psutil.RLIMIT_AS)[1] <= 4 << 30


@pytest.mark.asyncio
async def test_a_crash_costs_its_question_and_the_next_goes_to_another_process(tmp_path: Path):
    async with checking(crashes=tmp_path / "syntax.crash") as checker:
        await asked(checker, call())
        first = checker.pid
        assert await asked(checker, crash()) is None
        assert isinstance(await asked(checker, call()), Validations)
        assert checker.pid != first
        assert checker.restarts == 1
    assert "Segmentation fault" in (tmp_path / "syntax.crash").read_text()


@pytest.mark.asyncio
async def test_a_document_that_ended_two_processes_is_set_aside_whatever_is_typed_in_it():
    async with checking() as checker:
        for number in range(5):
            assert await asked(checker, crash(number)) is None
        assert isinstance(await asked(checker, call()), Validations)
        assert (checker.restarts, checker.aside) == (2, 1)


@pytest.mark.asyncio
async def test_what_never_ends_is_killed_at_its_deadline():
    async with checking(sys.executable, "-c", NEVER_ENDS) as checker:
        assert await asked(checker, call(), budget_ms=50) is None
        assert checker.aside == 0
        assert await asked(checker, call(), budget_ms=50) is None
        assert checker.aside == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell")
@pytest.mark.asyncio
async def test_what_gets_little_of_a_busy_processor_is_not_killed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_Watch, "_spent_s", lambda watch: 0.0)
    async with checking(sys.executable, "-c", BUSY) as checker:
        answer = asyncio.ensure_future(asked(checker, call(), budget_ms=50))
        await asyncio.sleep(2)
        assert not answer.done()
        assert checker.restarts == 0
        psutil.Process(checker.pid).suspend()
        assert await answer is None


@pytest.mark.asyncio
async def test_who_has_a_deadline_waits_no_longer_even_for_a_turn():
    async with checking(sys.executable, "-c", NEVER_ENDS) as checker:
        told: list[str] = []

        def ticket(name: str, question: Question, left_ms: float) -> Ticket:
            check = SyntaxCheck(question=question, budget_ms=30_000, left_ms=left_ms)
            return Ticket(check=check, urgency=0, deliver=lambda reply: told.append(f"{name} {reply}"))

        checker.submit(ticket("long", call(), 30_000))
        checker.submit(ticket("short", Diagnose(text="x", language="python"), 20))
        while not told:
            await asyncio.sleep(0.01)
        assert told == ["short None"]


@pytest.mark.asyncio
async def test_what_is_urgent_goes_first_and_what_nobody_wants_is_not_asked():
    async with checking() as checker:
        order: list[str] = []

        def submit(name: str, urgency: int, *, wanted: bool = True) -> None:
            check = SyntaxCheck(question=Diagnose(text=f"{name} = (", language="python"), budget_ms=20_000)
            checker.submit(
                Ticket(check=check, urgency=urgency, deliver=lambda _: order.append(name), wanted=lambda: wanted)
            )

        submit("survey", 2)
        submit("cancelled", 0, wanted=False)
        submit("background", 1)
        submit("key", 0)
        while len(order) < 3:
            await asyncio.sleep(0.01)
        assert order == ["key", "background", "survey"]


@pytest.mark.asyncio
async def test_what_nobody_wants_is_not_held_until_its_deadline():
    async with checking() as checker:
        check = SyntaxCheck(question=Diagnose(text="a = 0", language="python"), budget_ms=20_000, left_ms=1e9)
        ticket = Ticket(check=check, urgency=0, deliver=lambda _: None, wanted=lambda: False)
        checker.submit(ticket)
        await asked(checker, Diagnose(text="a = 1", language="python"), urgency=1)
        assert ticket.timer
        assert ticket.timer.cancelled()


@pytest.mark.asyncio
async def test_more_and_more_deaths_mean_rest_in_which_nobody_waits():
    async with checking(sys.executable, "-c", "") as checker:
        async with asyncio.timeout(WAIT_S):
            while not checker._resting:
                await asyncio.sleep(0.01)
        told = list[Reply | None]()
        check = SyntaxCheck(question=call(), budget_ms=20_000.0)
        checker.submit(Ticket(check=check, urgency=0, deliver=told.append))
        # The answer is there before the question is left.
        assert told == [None]


@pytest.mark.parametrize(("deaths", "rests_s"), [(2, 0), (3, 0.1), (5, 0.4), (8, 2), (5000, 2)])
def test_only_repeated_deaths_cost_a_rest_and_never_a_long_one(deaths: int, rests_s: float):
    assert rest_s(deaths) == rests_s


def test_a_check_may_take_what_is_left_of_the_time():
    check = next(reply_to(call(), 500.0, 20.0))
    assert (check.budget_ms, check.left_ms) == (20.0, 20.0)


@pytest.mark.parametrize("left_ms", [0.0, -30.0])
def test_nothing_is_asked_where_no_time_is_left(left_ms: float):
    with pytest.raises(StopIteration) as done:
        next(reply_to(call(), 500.0, left_ms))
    assert done.value.value is None


@pytest.mark.parametrize(
    "said",
    [
        {"reply": {"fills": []}},
        {"reply": {"fills": [{"text": "rm -rf", "verdict": None}]}},
        {
            "reply": {
                "fills": [{"text": "a", "verdict": {"problems": [{"start": 0, "end": 9, "what": ""}], "whole": 0}}]
            }
        },
        {"reply": {"severity": [0, 0], "errors": []}},
        {"reply": 7},
    ],
    ids=str,
)
def test_a_reply_that_does_not_answer_the_question_is_not_taken(said: dict[str, Any]):
    with pytest.raises(MalformedMessage, match="no answer"):
        unpacked_reply(framed({**said, "out_of_time": False})[4:], call())


@pytest.mark.parametrize(
    "edit",
    [{"start": 2, "end": 1, "new": ""}, {"start": 0, "end": 99, "new": ""}, {"start": 0, "end": 0, "new": "x" * 99}],
)
def test_calls_outside_of_the_document_are_not_taken(edit: dict[str, Any]):
    question = CallsToChange(before="f(1)", text="f(2)", language="python", start=0)
    with pytest.raises(MalformedMessage, match="no answer"):
        unpacked_reply(framed({"reply": {"edits": [edit]}, "out_of_time": False})[4:], question)


def test_a_document_that_uses_up_its_time_gets_less_and_less_until_it_does_not():
    suspects = Suspects(lambda: 0.0)
    for typed in range(3):
        suspects.took("slow text " * 20 + "x" * typed, "python", out_of_time=True)
    assert suspects.budget_ms("slow text " * 20, "python", 400) == 50
    assert suspects.budget_ms("another one", "python", 400) == 400
    suspects.took("slow text " * 20, "python", out_of_time=False)
    assert suspects.budget_ms("slow text " * 20, "python", 400) == 100


def test_a_document_is_not_set_aside_for_ever():
    now = 0.0
    suspects = Suspects(lambda: now)
    assert not suspects.accuse("- - -", "yaml")
    assert suspects.accuse("- - - ", "yaml")
    assert suspects.is_aside("- - -  ", "yaml")
    assert not suspects.is_aside("- - -  ", "python")
    now = ASIDE_S + 1
    assert not suspects.is_aside("- - -  ", "yaml")
    assert suspects.aside == 0
    assert suspects.accuse("- - -", "yaml")
