"""A document that ends or stalls whoever parses it, beside an innocent one, in a real engine."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

import psutil
import pytest

from engine.common.messages import Analyze, AnalyzeReply, Cancel, Failed, Fill, FillReply
from engine.common.request import FillRequest
from tests.engine.processes import Home, Wire, home, running, wait_until

INNOCENT = "total = max(▮first, second▮)\n"
CRASHES = "- " * 254
STALLS = {"c": "%w(" * 20_000, "javascript": "x=/[[" * 40_000, "python": "a)\n" * 8000}
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets")


@pytest.fixture
def place():
    with home() as place:
        yield place


@pytest.fixture(scope="module")
def served():
    """A place with an engine that several tests share."""
    with home() as place, running(place, "--model", oracle(place)):
        yield place


def filled(wire: Wire, number: int, prefix: str, suffix: str, language: str) -> FillReply:
    request = FillRequest(prefix=prefix, suffix=suffix, language=language, max_tokens=8)
    wire.send(Fill(id=number, request=request))
    reply = wire.reply(number)
    assert isinstance(reply, FillReply), reply
    return reply


def innocent(wire: Wire, number: int) -> None:
    answer = filled(wire, number, "total = max(", ")\n", "python")
    assert [(each.text, each.syntax) for each in answer.filled.candidates] == [("first, second", "ok")]


def innocent_again(wire: Wire) -> None:
    """After some deaths there is no process for a while, and answers are unchecked."""
    numbers = count(1000)

    def checked() -> bool:
        answer = filled(wire, next(numbers), "total = max(", ")\n", "python")
        return [(each.text, each.syntax) for each in answer.filled.candidates] == [("first, second", "ok")]

    wait_until(checked, "an answer that is checked")


def oracle(place: Home) -> str:
    return place.oracle(INNOCENT, f"{CRASHES}▮x▮\n", *(f"{text}▮x▮\n" for text in STALLS.values()))


def test_a_document_that_crashes_a_parser_does_not_take_the_engine_along(place):
    with running(place, "--model", oracle(place)) as engine, place.client() as good, place.client() as bad:
        innocent(good, 1)
        for number in range(1, 5):
            answer = filled(bad, number, CRASHES, "\n", "yaml")
            assert [each.syntax for each in answer.filled.candidates] == ["unchecked"]
        innocent(good, 2)
        status = good.status()
        assert (status.pid, status.set_aside, status.checker_restarts) == (engine.pid, 1, 2)
        told = "failed twice. For 10 minutes its suggestions are shown unchecked."
        wait_until(lambda: told in good.status().state.message, "the state to say so")
        assert "restarted 2 times, 1 document not checked for now" in place.command("status").stdout
        assert "Segmentation fault" in (place.logs / "syntax.crash").read_text()


@pytest.mark.parametrize("language", STALLS)
def test_a_document_that_stalls_a_check_stalls_no_other_window(served, language):
    with served.client() as good, served.client() as bad:
        innocent_again(good)
        text = STALLS[language]
        bad.send(Analyze(id=1, text=text, cursor=len(text), language=language))
        bad.send(Fill(id=2, request=FillRequest(prefix=text, suffix="\n", language=language, max_tokens=8)))
        filled(good, 2, "total = max(", ")\n", "python")
        assert isinstance(bad.reply(2), FillReply)
        for number in (3, 4):
            filled(bad, number, text, "\n", language)
        innocent_again(good)


def test_surveys_are_given_up_when_newer_ones_come_or_their_client_says_so(served):
    with served.client() as wire:
        innocent_again(wire)
        texts = [f"x{number} = (\n" + "y = (1\n" * 20_000 for number in range(12)]
        for number, text in enumerate(texts):
            wire.send(Analyze(id=number, text=text, cursor=0, language="python"))
        wire.send(Cancel(id=11))
        codes: dict[int | None, str] = {}
        while len(codes) < 12:
            reply = wire.receive()
            assert isinstance(reply, Failed | AnalyzeReply)
            codes[reply.id] = reply.code if isinstance(reply, Failed) else "surveyed"
        assert list(codes.values()).count("superseded") == 8
        assert codes[11] == "cancelled"
        numbers = count(50)

        def surveyed() -> bool:
            number = next(numbers)
            wire.send(Analyze(id=number, text="x = (\n", cursor=0, language="python"))
            reply = wire.reply(number)
            return isinstance(reply, AnalyzeReply) and len(reply.analysis.errors) == 1

        wait_until(surveyed, "a survey that is answered")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_engine_itself_parses_nothing(place):
    with running(place, "--model", oracle(place)) as engine, place.client() as wire:
        innocent(wire, 1)
        wire.send(Analyze(id=2, text="x = (\n", cursor=0, language="python"))
        assert isinstance(wire.reply(2), AnalyzeReply)
        wire.send(Fill(id=3, request=FillRequest(task="fix", prefix="", old="x = (1\n", suffix="", language="python")))
        assert isinstance(wire.reply(3), FillReply)
        assert "tree_sitter_python" not in Path(f"/proc/{engine.pid}/maps").read_text()
        (child,) = psutil.Process(engine.pid).children()
        maps = Path(f"/proc/{child.pid}/maps").read_text()
        assert "tree_sitter_python" in maps
        assert "libtorch" not in maps


def test_the_process_that_checks_ends_with_its_engine_however_that_ends(place):
    with running(place, "--model", oracle(place)) as engine:
        (child,) = psutil.Process(engine.pid).children()
        engine.kill()
        child.wait(60)
