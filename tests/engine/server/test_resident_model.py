"""The engine with a real architecture in it: random weights, so what it says is noise, but all that it does is real."""

from __future__ import annotations

import pytest

from engine.common.messages import Done, EngineStatus, FillReply, Notice, Warm
from tests.engine.processes import home, running, wait_until


@pytest.fixture(scope="module")
def place(released):
    with home() as place, running(place, "--model", str(released), "--device", "cpu"):
        yield place


@pytest.fixture
def wire(place):
    with place.client() as wire:
        yield wire


def filled(wire, id: int):
    reply = wire.reply(id)
    assert isinstance(reply, FillReply), reply
    return reply.filled


def test_loading_tells_how_far_it_is(wire):
    wire.send(Warm(id=1))
    notices: list[Notice] = []
    while isinstance(message := wire.receive(), Notice):
        notices.append(message)
    assert message == Done(id=1) or notices[-1].state.name == "ready"
    percents = [notice.state.percent for notice in notices if notice.state.percent is not None]
    assert 2 <= len(percents) < 20, "as often as somebody can read it"
    assert percents == sorted(percents)
    assert percents[0] < percents[-1] <= 100
    assert {notice.state.name for notice in notices} <= {"loading", "ready"}


def test_the_first_fill_after_a_load_is_nobodys(wire):
    seen: list[EngineStatus] = []
    for id in (1, 2):
        wire.send(Warm(id=id))
        while isinstance(wire.receive(), Notice):
            pass
        wait_until(lambda: wire.status().context_tokens, "a fill that nobody asked for")
        seen.append(wire.status())
    assert seen[0].context_tokens == seen[1].context_tokens
    assert seen[0].served == 0


def test_typing_on_finds_its_context_in_the_cache(wire):
    prefix = "def first():\n    return 1\n\n\ndef second():\n"
    wire.fill(1, prefix)
    filled(wire, 1)
    before = wire.status()
    wire.fill(2, prefix + "    return ")
    filled(wire, 2)
    after = wire.status()
    asked = after.context_tokens - before.context_tokens
    assert asked > 10
    assert after.cached_tokens - before.cached_tokens > asked / 2


def test_windows_that_meet_get_what_they_would_have_got_alone(place, wire):
    wire.fill(1, "def first():\n    ", n=2)
    alone = filled(wire, 1)
    with place.client() as other:
        before = wire.status().shared_forwards
        wire.fill(2, "def first():\n    ", n=2)
        other.fill(1, "class Second:\n    ")
        together = filled(wire, 2)
        filled(other, 1)
        assert wire.status().shared_forwards > before
    assert [candidate.text for candidate in together.candidates] == [candidate.text for candidate in alone.candidates]
