"""Ghost text in a real server, exact to the character, for clients of all three position encodings."""

from __future__ import annotations

import asyncio

import pytest
import pytest_asyncio

from tests.e2e.cases import (
    ADD,
    ASTRAL,
    BODY,
    CALL,
    CHAIN,
    COLUMN_0,
    CRLF,
    EMPTY,
    END,
    INSIDE,
    LONE_CR,
    NAME,
    SEVERAL,
    SLOW,
    UNSURE,
    UNSURE_AND_SLOW,
    text_of,
)
from tests.e2e.window import CLIENTS, Window, until, window

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=CLIENTS)
async def each(request, shared):
    """A window of each client."""
    async with window(shared, request.param, options={"inline": {"deadline_ms": 20_000}}) as held:
        yield held


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one(shared):
    """A window for what does not depend on the client."""
    # On a loaded machine the usual deadline would cut answers short; and what one test wrote would answer another.
    options = {"inline": {"deadline_ms": 20_000}, "context": {"workspace": False}}
    async with window(shared, "neovim", options=options) as held:
        yield held


@pytest.mark.parametrize("case", [ADD, BODY, ASTRAL, CRLF, LONE_CR, COLUMN_0, END, EMPTY], ids=str)
async def test_a_gap_is_filled_and_the_rest_stays_as_it_was(each: Window, case):
    text = text_of(case)
    each.open(text)
    (ghost,) = await each.ghosts()
    before, answer, after = text.split("▮")
    assert ghost.text == answer.replace("\r\n", "\n").replace("\r", "\n")
    each.editor.replace(ghost.start, ghost.end, answer)
    assert each.editor.buffer.text == before + answer + after


async def test_positions_are_counted_in_the_client_s_own_units(each: Window):
    each.open(ASTRAL)
    asked = each.editor.ask()
    (item,) = (await asked.answer)["items"]
    character = {"utf-8": 16, "utf-16": 14, "utf-32": 13}[each.encoding]
    assert item["range"]["start"] == item["range"]["end"] == {"line": 0, "character": character}


async def test_typing_along_needs_no_model_and_undo_brings_all_of_it_back(each: Window):
    each.open(BODY)
    whole = await each.ghost()
    before = await each.counts()
    typed = "result = 0\n    for"
    for at, character in enumerate(typed, 1):
        each.editor.type(character)
        assert await each.ghost() == whole[at:]
    for at in reversed(range(len(typed))):
        each.editor.undo()
        assert await each.ghost() == whole[at:]
    after = await each.counts()
    assert after["without_model"] - before["without_model"] == 2 * len(typed)
    assert after["sent"] == before["sent"]


async def test_the_range_begins_where_the_suggestion_did_and_stays_on_the_line(one: Window):
    one.open(BODY)
    start = one.editor.buffer.cursor
    await one.ghost()
    one.editor.type("result")
    (ghost,) = await one.ghosts()
    assert (ghost.start, ghost.end) == (start, one.editor.buffer.cursor)
    one.editor.type(" = 0\n    for")
    (ghost,) = await one.ghosts()
    assert one.editor.buffer.text[ghost.start : ghost.end] == "    for"
    assert ghost.text.startswith("    for item in items:\n")


async def test_brackets_that_the_editor_closed_are_replaced(one: Window):
    one.open(CALL)
    assert await one.ghost() == "compute(first, second)"
    for character in "compute(":
        one.editor.type(character)
    one.editor.replace(one.editor.buffer.cursor, one.editor.buffer.cursor, ")")
    one.editor.buffer.cursor -= 1
    (ghost,) = await one.ghosts()
    assert one.shown(ghost) == "first, second)"
    one.editor.accept(ghost)
    assert one.editor.buffer.text == CALL.replace("▮", "")


async def test_inside_a_line_only_what_belongs_there_is_filled_in(one: Window):
    one.open(INSIDE)
    assert await one.ghost() == "left"


async def test_the_selected_completion_is_extended_in_its_own_range(each: Window):
    each.open(NAME)
    each.editor.type("pre")
    await check_extended(each, "pre", "pressure", "pressure * volume")


async def test_the_selected_completion_is_extended_up_to_a_bracket_that_the_editor_closed(each: Window):
    each.open(CALL)
    await each.ghost()
    each.editor.type("compute()")
    each.editor.buffer.cursor -= 1
    each.editor.type("fi")
    await check_extended(each, "fi", "first", "first, second")


async def check_extended(held: Window, typed: str, selected: str, expected: str) -> None:
    """`typed`, before the cursor, is what the selected completion would replace."""
    buffer = held.editor.buffer
    end = {"line": 0, "character": buffer.cursor}
    info = {"range": {"start": {"line": 0, "character": buffer.cursor - len(typed)}, "end": end}, "text": selected}
    params = {
        "textDocument": {"uri": buffer.uri},
        "position": end,
        "context": {"triggerKind": 2, "selectedCompletionInfo": info},
    }
    (item,) = (await held.request("textDocument/inlineCompletion", params))["items"]
    assert item["range"] == info["range"]
    assert item["insertText"] == item["filterText"] == expected


async def test_who_asks_gets_several(one: Window):
    one.open(text_of(SEVERAL))
    assert len(await one.ghosts()) == 1
    ghosts = await one.ghosts(invoked=True)
    assert ghosts[0].text == "red"
    assert len({ghost.text for ghost in ghosts}) == len(ghosts) == 3
    assert {ghost.text for ghost in ghosts} <= {"red", "green", "blue", "grey"}


async def test_an_unsure_model_is_silent_until_asked(one: Window):
    one.open(text_of(UNSURE))
    before = await one.counts()
    assert await one.ghost() is None
    assert (await one.counts())["unsure"] == before["unsure"] + 1
    assert await one.ghost(invoked=True) == "maybe"


async def test_where_nothing_is_known_nothing_is_shown(one: Window):
    one.open("unknown = ▮\n")
    assert await one.ghost() is None


async def test_a_newer_request_supersedes_though_the_client_cancels_nothing(one: Window):
    one.open(text_of(SLOW))
    older = one.editor.ask()
    await asyncio.sleep(0.1)
    one.open(ADD)
    elsewhere = one.editor.ask()
    one.editor.path = next(path for path, held in one.editor.buffers.items() if held.uri == older.buffer.uri)
    one.editor.type("a")
    newer = one.editor.ask()
    assert await older.answer is None
    assert not newer.answer.done()
    assert await elsewhere.answer is not None
    assert (await newer.answer)["items"][0]["insertText"] == "+b+c+d+e+f+g+h+i+j"


async def test_an_answer_for_an_old_version_is_dropped(one: Window):
    one.open(text_of(SLOW))
    before = await one.counts()
    asked = one.editor.ask()
    # While its project is looked at, a change would end the request before anything was asked for.
    await until(lambda: _asked_since(one, before), "the work begun")
    one.editor.type("z")
    assert await asked.answer is None
    assert (await one.counts())["stale"] == before["stale"] + 1


async def test_a_cancelled_request_is_answered_as_cancelled_and_its_work_ends(one: Window):
    one.open(text_of(SLOW))
    asked = one.editor.ask()
    await asyncio.sleep(0.1)
    one.editor.cancel(asked)
    with pytest.raises(Exception, match="cancel"):
        await asked.answer
    engine = (await one.status(engine=True))["engine"]
    assert engine["failed"]["cancelled"] >= 1


async def test_nothing_inside_a_token_that_is_being_deleted(one: Window):
    one.open("value = compute(first▮\nprint(value)\n")
    assert await one.ghost() == ", second)"
    one.editor.delete(1)
    assert await one.ghost() is None
    assert await one.ghost(invoked=True) == "t, second)"
    one.editor.type("t")
    assert await one.ghost() == ", second)"
    one.editor.delete(len("first"))
    assert await one.ghost() is not None


async def test_after_an_accept_the_next_suggestion_is_on_its_way(one: Window):
    one.open(CHAIN)
    (ghost,) = await one.ghosts()
    before = await one.counts()
    one.editor.accept(ghost)
    await until(lambda: _asked_since(one, before), "the work begun ahead")
    accepted = await one.counts()
    assert accepted["requests"] == before["requests"]
    await one.ghost()
    asked = await one.counts()
    assert (asked["sent"], asked["requests"]) == (accepted["sent"], accepted["requests"] + 1)


async def _asked_since(held: Window, before: dict[str, int]) -> bool:
    return (await held.counts())["sent"] == before["sent"] + 1


async def test_the_same_question_again_costs_nothing(one: Window):
    one.open("unknown = ▮\n", "same.py")
    await one.ghost()
    before = await one.counts()
    assert await one.ghost() is None
    assert (await one.counts())["sent"] == before["sent"]


async def test_at_the_deadline_the_best_so_far_is_the_answer(shared):
    async with window(shared, "neovim", options={"inline": {"deadline_ms": 400, "threshold": 0}}) as held:
        held.open(text_of(SLOW))
        shown = await held.ghost()
        assert shown
        assert "a+b+c+d+e+f+g+h+i+j".startswith(shown)
        assert shown != "a+b+c+d+e+f+g+h+i+j"


async def test_at_the_deadline_nothing_is_the_answer_if_the_best_so_far_is_not_good_enough(shared):
    async with window(shared, "neovim", options={"inline": {"deadline_ms": 400}}) as held:
        held.open(text_of(UNSURE_AND_SLOW))
        before = await held.counts()
        assert await held.ghost() is None
        assert (await held.counts())["unsure"] == before["unsure"] + 1
        assert await held.ghost(invoked=True)
