"""Looks at disks that may not answer."""

from __future__ import annotations

import asyncio
import threading

import pytest

from dg_lsp.config import looking
from dg_lsp.config.exclusion import Seen
from dg_lsp.config.looking import AT_ONCE, LOOK_AGAIN_S, LOOK_S, Looking

pytestmark = pytest.mark.asyncio


async def test_it_looks_once_a_second_at_most_however_many_ask():
    now_s, looks = 0.0, list[str]()
    held = Looking(lambda uri, _: looks.append(uri), clock_s=lambda: now_s)
    await asyncio.gather(*(held.at("a") for _ in range(5)))
    await held.at("a")
    assert (looks, held.is_fresh("a")) == (["a"], True)
    now_s += LOOK_AGAIN_S
    assert not held.is_fresh("a")
    await held.at("a")
    held.forget("a")
    await held.at("a")
    assert looks == ["a", "a", "a"]


async def test_a_disk_that_does_not_answer_holds_up_nobody_for_long(monkeypatch):
    monkeypatch.setattr(looking, "LOOK_S", 0.05)
    answers, looks = threading.Event(), list[str]()

    def look(uri: str, seen: Seen) -> None:
        looks.append(uri)
        if uri == "hung":
            answers.wait()

    held = Looking(look)
    for _ in range(3):
        await held.at("hung")
    await held.at("b")
    assert looks == ["hung", "b"]
    assert not held.is_fresh("hung")
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "look at files")
    answers.set()
    async with asyncio.timeout(10):
        while not held.is_fresh("hung"):
            await asyncio.sleep(0.01)


async def test_what_hangs_keeps_nobody_waiting_for_ever(monkeypatch):
    monkeypatch.setattr(looking, "LOOK_S", 0.05)
    answers, looks = threading.Event(), list[str]()

    def look(uri: str, seen: Seen) -> None:
        looks.append(uri)
        if "hung" in uri:
            answers.wait()

    held = Looking(look)
    uris = [*(f"hung{number}" for number in range(2 * AT_ONCE)), "behind them"]
    together = [asyncio.create_task(held.at(*uris)), *(asyncio.create_task(held.at(f"hung alone{at}")) for at in "ab")]
    async with asyncio.timeout(10):
        while not held.is_fresh("behind them"):
            await asyncio.sleep(0.01)
        await asyncio.gather(*together)
        answers.set()
        while any(thread.name == "look at files" for thread in threading.enumerate()):
            await asyncio.sleep(0.01)
        while not all(map(held.is_fresh, uris)):
            await asyncio.sleep(0.01)
    assert sorted(looks) == sorted([*uris, "hung alonea", "hung aloneb"])


async def test_files_asked_for_together_share_what_was_seen_until_something_is_forgotten(monkeypatch):
    goes_on, seen_at = threading.Event(), dict[str, Seen]()

    def look(uri: str, seen: Seen) -> None:
        goes_on.wait(10)
        seen_at[uri] = seen
        if uri == "d":
            held.forget("another")

    monkeypatch.setattr(looking, "AT_ONCE", 1)
    held = Looking(look)
    looks = [asyncio.create_task(held.at(*uris)) for uris in ("ab", "cde")]
    await asyncio.sleep(0)
    goes_on.set()
    await asyncio.gather(*looks)
    assert seen_at["a"] is seen_at["b"] is not seen_at["c"] is seen_at["d"] is not seen_at["e"]


async def test_the_loop_is_told_of_many_looks_at_once(monkeypatch):
    told = list[str]()
    monkeypatch.setattr(looking, "TELL_AGAIN_S", 0.2)
    held = Looking(lambda *_: None, told.append)
    loop = asyncio.get_running_loop()
    calls = list[object]()
    real = loop.call_soon_threadsafe
    monkeypatch.setattr(loop, "call_soon_threadsafe", lambda *given: (calls.append(given), real(*given)))
    await held.at(*map(str, range(200)))
    assert (len(told), len(calls)) == (200, 1)


async def test_a_look_that_was_under_way_when_files_changed_does_not_count():
    goes_on, looks = threading.Event(), list[str]()

    def look(uri: str, seen: Seen) -> None:
        looks.append(uri)
        if len(looks) == 1:
            goes_on.wait(10)

    held = Looking(look)
    first = asyncio.create_task(held.at("a"))
    while not looks:
        await asyncio.sleep(0.01)
    held.forget("a")
    goes_on.set()
    await first
    assert not held.is_fresh("a")
    await held.at("a")
    assert looks == ["a", "a"]


async def test_a_look_that_fails_is_in_the_log(caplog):
    held = Looking(lambda *_: 1 / 0)
    await held.at("a")
    assert held.is_fresh("a")
    assert "ZeroDivisionError" in caplog.text


async def test_what_goes_wrong_with_what_was_found_keeps_nobody_waiting(caplog):
    held = Looking(lambda *_: None, lambda _: 1 / 0)
    async with asyncio.timeout(LOOK_S / 2):
        await held.at("a")
    assert "ZeroDivisionError" in caplog.text
