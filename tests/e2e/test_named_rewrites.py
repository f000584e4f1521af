"""Code actions that tell the model what to do, in a real server."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types

from dg_lsp.edits.rewrites import IMPROVE, REWRITES, fix_instruction
from tests.e2e.test_edits import actions, applies, at, plain, ranged
from tests.e2e.window import window
from tests.engine.processes import home, running

NAMED = "Use an f-string"

pytestmark = pytest.mark.asyncio(loop_scope="module")

OLD = 'def label(name: str) -> str:\n    """A label."""\n    return "%s:" % name\n'
NEW = 'def label(name: str) -> str:\n    """A label."""\n    return f"{name}:"\n'
LOGGED = OLD.replace("return", "print(name)\n    return")
REPORTED = "use f-strings\nUP031"
BETTER = OLD.replace("A label", "The label")
FIXED = OLD.replace('"%s:" % name', 'name + ":"')
CASES: tuple[Any, ...] = (
    {"text": f"▮{NEW.strip()}▮\n", "instruction": REWRITES["fstring"][1]},
    {"text": f"▮{LOGGED.strip()}▮\n", "instruction": "Log the name."},
    {"text": f"▮{BETTER.strip()}▮\n", "instruction": ""},
    {
        "text": OLD.replace('return "%s:" % name', '▮return name + ":"▮'),
        "instruction": fix_instruction(REPORTED),
    },
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one():
    options = {"inline": {"deadline_ms": 20_000}, "rewrites": {"Log it": "Log the name."}}
    with home() as place, running(place, "--model", place.oracle(*CASES)):
        async with window(place, "vscode", options=options) as held:
            applies(held)
            # Whether the model follows instructions is known once it is loaded.
            held.open("warm = 1\n")
            await held.request(
                "workspace/executeCommand",
                {
                    "command": "dg.rewrite",
                    "arguments": [{"uri": held.editor.buffer.uri, "range": ranged(held, "warm")}],
                },
            )
            yield held


async def chosen(held: Any, title: str, place: dict[str, Any], **context: Any) -> str:
    """The text after an action of that title was run."""
    (action,) = [each for each in await actions(held, place, [title], **context) if each["title"] == title]
    answer = await held.request("workspace/executeCommand", plain(action["command"]))
    assert answer["applied"], answer
    return held.editor.buffer.text


async def test_what_the_grammar_says_is_offered_and_done(one):
    one.open(OLD)
    titles = [each["title"] for each in await actions(one, ranged(one, OLD.strip()), [NAMED])]
    assert titles == ["Rewrite selection", "Log it", NAMED]
    assert await chosen(one, NAMED, ranged(one, OLD.strip())) == NEW


async def test_the_function_in_whose_first_line_the_cursor_is_is_meant_without_a_selection(one):
    one.open(OLD)
    assert await chosen(one, NAMED, at(0, 6)) == NEW
    one.open(OLD)
    assert NAMED not in [each["title"] for each in await actions(one, at(1, 6))]


async def test_the_users_own_rewrites_are_offered(one):
    one.open(OLD)
    assert await chosen(one, "Log it", ranged(one, OLD.strip())) == LOGGED


async def test_what_other_servers_report_is_fixed_in_its_lines(one):
    one.open(OLD)
    place = ranged(one, '"%s:"')
    reported = [{"range": place, "message": REPORTED, "source": "ruff"}, {"range": place, "message": " "}]
    assert [each["kind"] for each in await actions(one, place, diagnostics=reported, only=["quickfix"])] == ["quickfix"]
    assert await chosen(one, "Fix: use f-strings", place, diagnostics=reported) == FIXED


@pytest.mark.parametrize(
    ("title", "text"), [("Use an f-string", NEW), ("Log it", LOGGED), (IMPROVE, BETTER), (None, OLD)]
)
async def test_who_can_type_no_instruction_chooses_one(one, title: str | None, text: str):
    asked: list[list[str]] = []

    def answer(params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
        asked.append([each.title for each in params.actions or ()])
        return types.MessageActionItem(title=title) if title else None

    one.client.protocol.fm.features.pop("window/showMessageRequest", None)
    one.client.feature("window/showMessageRequest")(answer)
    one.open(OLD)
    (action,) = [each for each in await actions(one, ranged(one, OLD.strip())) if each["title"] == "Rewrite selection"]
    answer_ = await one.request("workspace/executeCommand", plain(action["command"]))
    assert asked == [["Use an f-string", "Log it", IMPROVE]]
    assert one.editor.buffer.text == text
    assert answer_ == {"applied": title is not None}
