"""The newest request wins, whoever asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from dg_lsp.suggest.in_flight import Debounce, InFlight
from engine.common.request import Filled, FillRequest


def request(prefix: str) -> tuple[Callable[[], Awaitable[str]], Callable[[str], FillRequest]]:
    """How it is looked for, and made of what is found."""

    async def look() -> str:
        return prefix

    return look, lambda found: FillRequest(prefix=found, suffix="")


class Slow:
    """Answers when told to; notes what was asked and what was cancelled."""

    def __init__(self) -> None:
        self.asked = list[str]()
        self.cancelled = list[str]()
        self.go = asyncio.Event()

    is_ready = True

    async def fill(self, request: FillRequest, document: str) -> Filled:
        self.asked.append(request.prefix)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled.append(request.prefix)
            raise
        if request.prefix == "bad":
            raise ValueError(request.prefix)
        return Filled(model=request.prefix, device="", candidates=(), width=0, steps=0, forwards=0)


async def begun(in_flight: InFlight, prefix: str, document: str = "a") -> asyncio.Task[Filled | None]:
    task = asyncio.create_task(in_flight.fill(document, *request(prefix)))
    await asyncio.sleep(0.001)
    return task


@pytest.mark.asyncio
async def test_a_newer_request_supersedes_the_one_before_and_only_in_its_document():
    slow = Slow()
    in_flight = InFlight(slow, Debounce(0))
    older, elsewhere, newer = await begun(in_flight, "1"), await begun(in_flight, "2", "b"), await begun(in_flight, "3")
    assert await older is None
    slow.go.set()
    assert (await newer).model == "3"
    assert (await elsewhere).model == "2"
    assert (slow.cancelled, in_flight.superseded, in_flight.sent) == (["1"], 1, 3)


@pytest.mark.asyncio
async def test_a_request_that_takes_long_to_make_does_not_supersede_a_newer_one():
    slow, found = Slow(), asyncio.Event()
    in_flight = InFlight(slow, Debounce(0))
    slow.go.set()

    async def late() -> str:
        await found.wait()
        return "1"

    def never(found: str) -> FillRequest:
        raise AssertionError("The request of a look-up that came too late is not made.")

    older = asyncio.create_task(in_flight.fill("a", late, never))
    await asyncio.sleep(0.001)
    newer = await begun(in_flight, "2")
    found.set()
    assert await older is None
    assert (await newer).model == "2"
    assert slow.asked == ["2"]


@pytest.mark.asyncio
async def test_the_same_request_shares_one_answer_under_way_or_there():
    slow = Slow()
    in_flight = InFlight(slow, Debounce(0))
    one, other = await begun(in_flight, "1"), await begun(in_flight, "1")
    slow.go.set()
    assert (await one) is (await other)
    assert (await in_flight.fill("a", *request("1"))) is (await one)
    assert slow.asked == ["1"]


@pytest.mark.asyncio
async def test_work_nobody_waits_for_is_cancelled():
    slow = Slow()
    in_flight = InFlight(slow, Debounce(0))
    one, other = await begun(in_flight, "1"), await begun(in_flight, "1")
    one.cancel()
    await asyncio.wait({one})
    assert slow.cancelled == []
    other.cancel()
    await asyncio.wait({other})
    await asyncio.sleep(0.001)
    assert slow.cancelled == ["1"]


@pytest.mark.asyncio
async def test_work_begun_ahead_goes_on_without_anybody_and_is_shared():
    slow = Slow()
    in_flight = InFlight(slow, Debounce(0))
    ahead = asyncio.create_task(in_flight.fill("a", *request("1")))
    waiting = await begun(in_flight, "1")
    waiting.cancel()
    await asyncio.wait({waiting})
    slow.go.set()
    assert (await in_flight.fill("a", *request("1"))).model == "1"
    assert (await ahead).model == "1"
    assert (slow.asked, slow.cancelled) == (["1"], [])


@pytest.mark.asyncio
async def test_a_failure_reaches_who_waits_and_is_not_shared_later():
    slow = Slow()
    slow.go.set()
    in_flight = InFlight(slow, Debounce(0))
    for _ in range(3):
        with pytest.raises(ValueError, match="bad"):
            await in_flight.fill("a", *request("bad"))
    assert slow.asked == ["bad"] * 3


@pytest.mark.asyncio
async def test_a_burst_is_waited_out_before_the_model_is_asked():
    slow, debounce = Slow(), Debounce(max_delay_ms=40)
    in_flight = InFlight(slow, debounce)
    debounce.answered(500)
    now_ms = asyncio.get_running_loop().time() * 1000
    for at in range(3):
        debounce.key(now_ms - 200 + 100 * at)
    for prefix in ("1", "2", "3"):
        last = await begun(in_flight, prefix)
    assert slow.asked == []
    slow.go.set()
    assert (await last).model == "3"
    assert (slow.asked, in_flight.superseded) == (["3"], 2)


@pytest.mark.asyncio
async def test_what_had_no_answer_is_asked_again():
    answers: list[Filled | None] = [None, Filled(model="1", device="", candidates=(), width=0, steps=0, forwards=0)]

    class Forgetful(Slow):
        async def fill(self, request: FillRequest, document: str) -> Filled | None:
            return answers.pop(0)

    in_flight = InFlight(Forgetful(), Debounce(0))
    assert await in_flight.fill("a", *request("1")) is None
    assert (await in_flight.fill("a", *request("1"))).model == "1"
    assert (await in_flight.fill("a", *request("1"))).model == "1"
