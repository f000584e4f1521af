"""A slice of the torture: a few seconds of each part, judged by what must never happen, not by times."""

from __future__ import annotations

import asyncio

import pytest

from engine.syntax.languages import GRAMMARS
from tests.torture.hostile import documents, hostile
from tests.torture.http import http
from tests.torture.keystrokes import keystrokes
from tests.torture.kills import kills


@pytest.mark.timeout(300)
def test_a_fast_typist_in_two_windows():
    told = asyncio.run(keystrokes(100_000, 5.0))
    assert told["passed"], told
    assert told["keys"] > 100
    assert told["compared"] > 0


@pytest.mark.timeout(300)
def test_an_engine_that_is_killed_and_stopped():
    told = asyncio.run(kills(2, 1, 60.0))
    assert told["passed"], told
    assert told["killed"] > 0


@pytest.mark.timeout(300)
def test_hostile_documents_beside_an_innocent_window():
    told = asyncio.run(hostile(10.0, 20_000))
    assert told["documents"] > 0, told
    assert not told["errors"], told
    assert not told["wrong_documents"], told
    assert not told["logged"], told
    assert told["suggestions_afterwards"] > 0, told


@pytest.mark.timeout(300)
def test_many_http_clients_of_whom_a_third_hangs_up():
    told = asyncio.run(http(400, 50, 120.0))
    assert told["passed"], told
    assert (told["requests"], told["hung_up"] > 80) == (400, True)


def test_there_are_hostile_documents_in_every_language():
    made = list(documents())
    assert len(made) >= 200
    assert {language for _, language, _ in made} == set(GRAMMARS)
