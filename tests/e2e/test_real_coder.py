"""Rewrites by instruction with a real coder, where DG_LSP_CODER names its GGUF (coder-0.5b or a better one)."""

from __future__ import annotations

import os
from typing import Any

import pytest
import pytest_asyncio

from tests.e2e.test_edits import applies, ranged, run
from tests.e2e.window import Window, window
from tests.engine.processes import home, running

CODER = os.environ.get("DG_LSP_CODER", "")
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(not CODER, reason="DG_LSP_CODER names no GGUF"),
    pytest.mark.timeout(600),
]

TEXT = """\
class Basket:
    def __init__(self, prices):
        self.prices = prices

    def label(self, name):
        return "%s: %d" % (name, self.total())

    def total(self):
        result = 0
        for price in self.prices:
            result += price
        return result
"""
LABEL = 'def label(self, name):\n        return "%s: %d" % (name, self.total())'
TOTAL = TEXT[TEXT.index("def total") :].strip()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one():
    with home() as place, running(place, "--model", CODER):
        async with window(place, "vscode") as held:
            applies(held)
            yield held


async def test_an_instruction_is_followed(one: Window):
    one.open(TEXT)
    answer = await run(one, "dg.rewriteSelection", range=ranged(one, LABEL), instruction="Use an f-string.")
    assert answer == {"applied": True}
    text = one.editor.buffer.text
    assert 'return f"{name}: {self.total()}"' in text
    assert text.replace(text[text.index("return f") : text.index("\n\n    def total")], "") == TEXT.replace(
        TEXT[TEXT.index('return "%s') : TEXT.index("\n\n    def total")], ""
    )


async def test_several_selections_keep_what_is_between_them(one: Window):
    one.open(TEXT)
    places = [ranged(one, LABEL), ranged(one, TOTAL)]
    asked: dict[str, Any] = {"ranges": places, "instruction": "Add type hints to the methods."}
    answer = await run(one, "dg.rewriteSelection", **asked)
    assert answer["applied"], answer
    text = one.editor.buffer.text
    assert "def label(self, name: str) -> str:" in text
    assert text.startswith(TEXT[: TEXT.index("def label")])
    assert "\n\n    def total(self)" in text


async def test_kept_lines_stay_and_another_proposal_can_be_asked_for(one: Window):
    one.open(TEXT)
    place = ranged(one, TOTAL)
    keep = [place["start"]["line"]]
    answer = await run(one, "dg.rewrite", range=place, instruction="Use sum instead of the loop.", keep=keep)
    (first, *_) = answer["candidates"]
    assert first["text"].startswith("def total(self):\n")
    assert "sum(self.prices)" in first["text"]
    end = len(first["text"].split("\n")) - 1
    line = place["start"]["line"] + end
    struck = [{"start": {"line": line, "character": 8}, "end": {"line": line, "character": len(first["text"])}}]
    more = {"shown": first["text"], "struck": struck, "instruction": "Use sum instead of the loop."}
    answer = await run(one, "dg.rewrite", range=place, **more)
    assert first["text"] not in [each["text"] for each in answer["candidates"]]
