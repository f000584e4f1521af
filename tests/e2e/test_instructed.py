"""Rewriting by instruction in a real window, with a coder that answers: what is told, kept, refused, and in what
order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import pytest_asyncio

from dg_lsp.edits.edits import UNCHANGED
from tests.e2e.test_edits import applies, put, ranged, run
from tests.e2e.window import Window, window
from tests.engine.processes import home
from tests.engine.server.test_server import serving
from tests.engine.talking import Talking, loads

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = """\
import math


class Shelf:
    def depth(self, value):
        return self.value + value

    def width(self):
        return 1


print(Shelf().depth(value=2))
"""
METHOD = "def depth(self, value):\n        return self.value + value"
BOTH = f"{METHOD}\n\n    def width(self):\n        return 1"
BETTER = "def depth(self, value):\n    return self.value * value"


@pytest.fixture(scope="module")
def talking() -> Talking:
    return Talking(says="")


@pytest.fixture(scope="module")
def place(talking: Talking) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch, home() as place:
        for name in ("DG_LSP_RUNTIME_DIR", "DG_LSP_STATE_DIR"):
            patch.setenv(name, place.environment[name])
        with serving(place, loads(talking)):
            yield place


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one(place: Any):
    async with window(place, "vscode") as held:
        applies(held)
        yield held


def says(model: Talking, text: str, **more: Any) -> None:
    model.says, model.instead, model.sure = f"{text}\n```", more.get("instead", (0, "")), more.get("sure", 0.8)
    model.heard.clear()


def indented(text: str) -> str:
    return text.replace("\n", "\n    ")


async def test_an_instruction_is_followed_and_undone_in_one_step(one: Window, talking: Talking):
    says(talking, BETTER)
    one.open(TEXT)
    answer = await run(one, "dg.rewriteSelection", range=ranged(one, METHOD), instruction="Multiply.")
    assert answer == {"applied": True}
    assert one.editor.buffer.text == TEXT.replace(METHOD, indented(BETTER))
    assert "Multiply." in talking.heard[0][-1]["content"]
    assert "class Shelf:" in talking.heard[0][1]["content"]


async def test_up_to_three_are_proposed_the_likeliest_first(one: Window, talking: Talking):
    says(talking, BETTER, instead=(len(BETTER), " + 1\n```"), sure=0.6)
    one.open(TEXT)
    answer = await run(one, "dg.rewrite", range=ranged(one, METHOD), instruction="Multiply.")
    assert [each["text"].rpartition("* ")[2] for each in answer["candidates"]] == ["value", "value + 1"]
    put(one, answer["candidates"][1]["edit"])
    assert one.editor.buffer.text == TEXT.replace(METHOD, f"{indented(BETTER)} + 1")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (METHOD.replace("\n    ", "\n"), UNCHANGED),
        ("I'm sorry, but I can't do that.", "no rewrite"),
        ("def depth(self, number):\n    return self.value * number", "no rewrite"),
        ("def height(self, value):\n    return self.value * value", "no rewrite"),
        ("def depth(self, value:\n    return", "no rewrite"),
    ],
    ids=["the old text", "a refusal", "a parameter is lost that a call names", "a name is lost", "broken"],
)
async def test_what_is_no_rewrite_is_told_as_such(one: Window, talking: Talking, said: str, message: str):
    says(talking, said)
    one.open(TEXT)
    answer = await run(one, "dg.rewriteSelection", range=ranged(one, METHOD), instruction="Multiply.")
    assert not answer["applied"]
    assert message in answer["message"]
    assert one.editor.buffer.text == TEXT


async def test_a_name_may_go_where_the_instruction_says_so(one: Window, talking: Talking):
    says(talking, "def height(self, value):\n    return self.value + value")
    one.open(TEXT)
    answer = await run(one, "dg.rewriteSelection", range=ranged(one, METHOD), instruction="rename depth to height")
    assert answer == {"applied": True}


async def test_what_is_between_several_selections_and_what_is_kept_stays(one: Window, talking: Talking):
    new = "def depth(self, value):\n    return value\n\ndef width(self):\n    return 2"
    for given in ({"ranges": ("self.value + value", "return 1")}, {"range": BOTH, "keep": "def width(self):"}):
        one.open(TEXT)
        asked: dict[str, Any] = {"instruction": "Do less."}
        if "ranges" in given:
            asked["ranges"] = [ranged(one, each) for each in given["ranges"]]
        else:
            asked |= {"range": ranged(one, BOTH), "keep": [ranged(one, given["keep"])]}
        says(talking, new if "keep" in given else "value\n\n    def width(self):\n        return 2")
        assert (await run(one, "dg.rewriteSelection", **asked))["applied"]
        assert one.editor.buffer.text == TEXT.replace("self.value + value", "value").replace("return 1", "return 2")


@pytest.mark.parametrize("instruction", ["Delete the method width.", "remove this"])
async def test_an_answer_that_leaves_nothing_takes_the_lines_out(one: Window, talking: Talking, instruction: str):
    selected = "    def width(self):\n        return 1\n\n"
    for command in ("dg.rewriteSelection", "dg.rewrite"):
        says(talking, "")
        one.open(TEXT)
        answer = await run(one, command, range=ranged(one, selected), instruction=instruction)
        if command == "dg.rewrite":
            assert [each["text"] for each in answer["candidates"]] == [""]
            put(one, answer["candidates"][0]["edit"])
        else:
            assert answer == {"applied": True}
        assert one.editor.buffer.text == TEXT.replace(selected, "")


async def test_several_selections_are_taken_out_and_what_is_between_them_stays(one: Window, talking: Talking):
    says(talking, "")
    one.open(TEXT.replace("return 1", "a()\n        return 1\n        b()"))
    ranges = [ranged(one, "        a()\n"), ranged(one, "        b()\n")]
    answer = await run(one, "dg.rewriteSelection", ranges=ranges, instruction="delete these lines")
    assert answer == {"applied": True}
    assert one.editor.buffer.text == TEXT


async def test_an_empty_answer_is_none_where_no_removal_is_asked_for(one: Window, talking: Talking):
    says(talking, "")
    one.open(TEXT)
    answer = await run(one, "dg.rewriteSelection", range=ranged(one, METHOD), instruction="Multiply.")
    assert not answer["applied"]
    assert "no rewrite" in answer["message"]
    assert one.editor.buffer.text == TEXT


async def test_not_this_has_another_proposal(one: Window, talking: Talking):
    says(talking, BETTER, instead=(len(BETTER), " + 1\n```"), sure=0.6)
    one.open(TEXT)
    place = ranged(one, METHOD)
    shown = indented(BETTER)
    line = place["end"]["line"]
    struck = {"start": {"line": line, "character": 8}, "end": {"line": line, "character": 34}}
    answer = await run(one, "dg.rewrite", range=place, instruction="Multiply.", shown=shown, struck=[struck])
    assert [each["text"] for each in answer["candidates"]] == [f"{shown} + 1"]
