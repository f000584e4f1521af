"""Lists of actions of one client: every number gets the answer to its own text, once."""

from __future__ import annotations

import asyncio

import pytest

from engine.common.messages import Analyze, AnalyzeReply, EngineMessage, Failed
from engine.server.analyzer import Analyzer
from engine.syntax.checker import Checker
from tests.engine.syntax.test_checker import checking

BROKEN = "x = (\n" + "y = (1\n" * 2_000
SOUND = "x = 1\n"


class Client:
    """Keeps what is delivered to it."""

    def __init__(self, checker: Checker) -> None:
        self.analyzer = Analyzer(checker)
        self.came: asyncio.Queue[EngineMessage] = asyncio.Queue()

    def analyze(self, text: str) -> None:
        self.analyzer.analyze(
            1, Analyze(id=7, text=text, cursor=0, language="python"), lambda m: self.came.put_nowait(m)
        )

    async def next(self) -> EngineMessage:
        return await asyncio.wait_for(self.came.get(), 60)


@pytest.mark.asyncio
async def test_a_number_in_use_is_refused_and_the_first_is_answered():
    async with checking() as checker:
        client = Client(checker)
        client.analyze(BROKEN)
        client.analyze(SOUND)
        refusal, answer = await client.next(), await client.next()
    assert isinstance(refusal, Failed)
    assert refusal.code == "bad_request"
    assert isinstance(answer, AnalyzeReply)
    assert answer.analysis.errors


@pytest.mark.asyncio
async def test_a_number_used_again_gets_the_answer_to_its_own_text():
    async with checking() as checker:
        client = Client(checker)
        client.analyze(BROKEN)
        # The checker has begun with it.
        await asyncio.sleep(0.05)
        client.analyzer.cancel(1, 7)
        client.analyze(SOUND)
        cancelled, answer = await client.next(), await client.next()
    assert isinstance(cancelled, Failed)
    assert isinstance(answer, AnalyzeReply)
    assert not answer.analysis.errors
