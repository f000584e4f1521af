"""Edits in a real server: actions, commands, what reaches the document, and what is withheld."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.protocol import JsonRPCResponseMessage

from dg_lsp.documents.positions import range_of, span_of
from dg_lsp.edits.edits import CHANGED
from tests.e2e.window import CLIENTS, Window, recorded, until, window
from tests.engine.processes import WAIT_S, home, running

pytestmark = pytest.mark.asyncio(loop_scope="module")

LINES = "# Growth.\ndef grow(size):\n    size = size + 1\n    total = size * 2\n    return total\n"
BETTER = "# Growth.\ndef grow(size):\n    size += 1\n    total = size * 2\n    return total\n"
ASTRAL = "# Moods.\r\nface = '😋'; mood = 'sad'\r\nprint(face)\r\n"
HAPPY = "# Moods.\r\nface = '😋'; mood = 'glad'\r\nprint(face)\r\n"
BROKEN = "def area(width, height):\n    return max(width * height, 1\n\n\nprint(area(2, 3))\n"
WHOLE = BROKEN.replace(", 1\n", ", 1)\n")
EMPTY_BODY = "# Twice.\ndef double(value):\n\n\nprint(double(2))\n"
FULL_BODY = "# Twice.\ndef double(value):\n    return value * 2\n\n\nprint(double(2))\n"
PASSES = "# Pair.\ndef left():\n    pass\n\n\ndef right():\n    pass\n"
PAIR = "# Pair.\ndef left():\n    return 1\n\n\ndef right():\n    return 2\n"
LATE = "def later():\n    pass\n\n\n" + "a)\n" * 100_000
SLOW_OLD = "slowly = [one, two, three]\n"
SLOW_NEW = "slowly = [1, 2, 3, 4, 5, 6, 7, 8, 9]\n"
CASES: tuple[Any, ...] = (
    "def add(a, b):\n    return ▮a + b▮\n",
    {"text": f"▮{BETTER}▮", "instruction": ""},
    {"text": f"▮{BETTER.replace('total', 'sum_')}▮", "instruction": "rename"},
    f"▮{HAPPY}▮",
    f"▮{WHOLE}▮",
    f"▮{FULL_BODY}▮",
    PAIR.replace("return 2", "▮return 2▮"),
    PASSES.replace("pass", "▮return 1▮", 1),
    {"text": f"▮before = 0\n{SLOW_NEW}after = 1\n▮", "reveal": 1, "delay_ms": 60},
)


@pytest.fixture(scope="module")
def engine():
    with home() as place, running(place, "--model", place.oracle(*CASES)):
        yield place


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one(engine):
    async with window(engine, "vscode", options={"inline": {"deadline_ms": 20_000}}) as held:
        applies(held)
        yield held


def applies(held: Window) -> None:
    """The window applies the edits that the server asks for, as an editor does."""
    held.client.protocol.fm.features.pop(types.WORKSPACE_APPLY_EDIT, None)

    @held.client.feature(types.WORKSPACE_APPLY_EDIT)
    def apply(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        put(held, plain(params.edit))
        return types.ApplyWorkspaceEditResult(applied=True)


def plain(value: Any) -> Any:
    from tests.e2e.window import _converter

    return _converter.unstructure(value)


def put(held: Window, edit: dict[str, Any]) -> None:
    """Apply an edit to the document that has the focus."""
    buffer = held.editor.buffer
    if "documentChanges" in edit:
        (change,) = edit["documentChanges"]
        assert change["textDocument"] == {"uri": buffer.uri, "version": buffer.version}
        edits = change["edits"]
    else:
        edits = edit["changes"][buffer.uri]
    ranges = [(msgspec.convert(each["range"], types.Range), each["newText"]) for each in edits]
    spans = [(*span_of(buffer.lines, where, held.encoding), new) for where, new in ranges]
    for start, end, text in sorted(spans, reverse=True):
        held.editor.replace(start, end, text)


def body(text: str) -> str:
    """All but the comment that tells a text from others, and the last line break."""
    return text.partition("\n")[2].rstrip()


def ranged(held: Window, part: str) -> dict[str, Any]:
    """The range of a part of the document."""
    start = held.editor.buffer.text.index(part)
    return plain(range_of(held.editor.buffer.lines, start, start + len(part), held.encoding))


async def run(held: Window, command: str, **given: Any) -> Any:
    arguments = [{"uri": held.editor.buffer.uri, **given}]
    return await held.request("workspace/executeCommand", {"command": command, "arguments": arguments})


async def actions(
    held: Window, place: dict[str, Any], titles: Sequence[str] = (), **context: Any
) -> list[dict[str, Any]]:
    """What is listed at a place; asked again until all `titles`, or what they begin with, are among it: on a busy
    machine a text may not be looked at in time, and what it offers is left out then."""

    async def listed() -> tuple[list[dict[str, Any]]] | None:
        found = await _actions(held, place, **context)
        named = all(any(each["title"].startswith(title) for each in found) for title in titles)
        return (found,) if named else None

    (found,) = await until(listed, f"{titles} among the actions")
    return found


async def _actions(held: Window, place: dict[str, Any], **context: Any) -> list[dict[str, Any]]:
    params = {
        "textDocument": {"uri": held.editor.buffer.uri},
        "range": place,
        "context": {"diagnostics": [], **context},
    }
    number, answer = held.ask("textDocument/codeAction", params)
    # The client's library takes every action with a command for a command.
    held.client.protocol._result_types[number] = JsonRPCResponseMessage
    async with asyncio.timeout(WAIT_S):
        return await answer


def at(line: int, character: int) -> dict[str, Any]:
    """An empty range."""
    return {side: {"line": line, "character": character} for side in ("start", "end")}


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_selection_is_rewritten_in_one_minimal_edit(engine, client: str):
    async with window(engine, client) as held:
        for old, new in ((LINES, BETTER), (ASTRAL, HAPPY)):
            held.open(old)
            answer = await run(held, "dg.rewrite", range=ranged(held, body(old)), strength=1)
            assert answer["version"] == 1
            candidate = answer["candidates"][0]
            assert (candidate["text"], candidate["syntax"]) == (body(new), "ok")
            assert candidate["confidence"] > 0.9
            (change,) = candidate["edit"].get("documentChanges") or [{"edits": []}]
            assert len(change["edits"]) <= 1
            put(held, candidate["edit"])
            assert held.editor.buffer.text == new


async def test_the_edit_says_that_a_model_made_it(one: Window):
    one.open(LINES)
    answer = await run(one, "dg.rewrite", range=ranged(one, body(LINES)), strength=1)
    edit = answer["candidates"][0]["edit"]
    (change,) = edit["documentChanges"]
    (only,) = change["edits"]
    (annotation,) = edit["changeAnnotations"].values()
    assert edit["changeAnnotations"].keys() == {only["annotationId"]}
    assert annotation["description"] == "Made by a model: review it."
    assert "size + 1" not in only["newText"]
    assert only["range"]["start"]["line"] == only["range"]["end"]["line"] == 2


async def test_a_client_without_document_changes_gets_plain_ones(engine):
    given = recorded("vscode")
    given["workspace"] |= {"workspaceEdit": {}}
    async with window(engine, given) as held:
        held.open(LINES)
        answer = await run(held, "dg.rewrite", range=ranged(held, body(LINES)), strength=1)
        edit = answer["candidates"][0]["edit"]
        assert edit.keys() == {"changes"}
        put(held, edit)
        assert held.editor.buffer.text == BETTER


async def test_an_instruction_reaches_the_model(one: Window):
    one.open(LINES)
    answer = await run(one, "dg.rewrite", range=ranged(one, body(LINES)), strength=1, instruction="rename")
    assert "sum_" in answer["candidates"][0]["text"]
    assert "message" not in answer


async def test_what_is_to_be_kept_is_kept(one: Window):
    one.open(LINES)
    keep = [ranged(one, "    size = size + 1\n")]
    answer = await run(one, "dg.rewrite", range=ranged(one, body(LINES)), strength=1, keep=keep)
    assert all("    size = size + 1\n" in each["text"] for each in answer["candidates"])


async def test_a_line_is_kept_by_its_number(one: Window):
    one.open(LINES)
    answer = await run(one, "dg.rewrite", range=ranged(one, body(LINES)), strength=1, keep=[2])
    assert answer["candidates"]
    assert all("    size = size + 1\n" in each["text"] for each in answer["candidates"])


async def test_several_selections_are_rewritten_together_and_what_is_between_stays(one: Window):
    one.open(LINES)
    ranges = [ranged(one, "return total"), ranged(one, "size = size + 1")]
    assert await run(one, "dg.rewriteSelection", ranges=ranges, strength=1) == {"applied": True}
    assert one.editor.buffer.text == BETTER
    one.open(LINES)
    answer = await run(one, "dg.rewrite", ranges=ranges, strength=1)
    assert answer["candidates"]
    assert all("\n    total = size * 2\n" in each["text"] for each in answer["candidates"])


async def test_what_is_struck_out_of_a_proposal_is_written_anew_and_the_rest_of_it_stays(one: Window):
    one.open(LINES)
    place = ranged(one, body(LINES).partition("\n")[2])
    right = body(BETTER).partition("\n")[2]
    struck = [{"start": {"line": 2, "character": 9}, "end": {"line": 2, "character": 10}}]
    answer = await run(one, "dg.rewrite", range=place, shown=right.replace("+=", "-="), struck=struck)
    assert [each["text"] for each in answer["candidates"]] == [right]
    put(one, answer["candidates"][0]["edit"])
    assert one.editor.buffer.text == BETTER


async def test_what_was_struck_out_does_not_come_again(one: Window):
    one.open(LINES)
    place, right = ranged(one, body(LINES).partition("\n")[2]), body(BETTER).partition("\n")[2]
    struck = [{"start": {"line": 2, "character": 9}, "end": {"line": 2, "character": 10}}]
    answer = await run(one, "dg.rewrite", range=place, shown=right, struck=struck)
    assert answer["message"] == "The model found no other rewrite without new syntax problems."
    assert answer["candidates"] == []
    for half in ({"shown": right}, {"struck": struck}):
        with pytest.raises(Exception, match="give `shown` and `struck` together"):
            await run(one, "dg.rewrite", range=place, **half)


async def test_the_selection_is_rewritten_in_place_and_the_answer_says_so(one: Window):
    one.open(LINES)
    assert await run(one, "dg.rewriteSelection", range=ranged(one, body(LINES)), strength=1) == {"applied": True}
    assert one.editor.buffer.text == BETTER


async def test_what_can_not_be_done_is_said_in_a_sentence(one: Window):
    one.open(BETTER)
    answer = await run(one, "dg.rewriteSelection", range=ranged(one, body(BETTER)), strength=1)
    assert answer["applied"] is False
    assert answer["message"].startswith("The model found no rewrite of the selection")
    answer = await run(one, "dg.rewrite", range=ranged(one, "\n"))
    assert answer["message"] == "There is nothing to rewrite: select text that is not blank."
    given = {"uri": "file:///nowhere.py", "range": ranged(one, BETTER)}
    answer = await one.request("workspace/executeCommand", {"command": "dg.rewrite", "arguments": [given]})
    assert answer == {"version": None, "candidates": [], "message": "The document is not open."}


async def test_several_places_are_filled_in_their_order_and_in_one_edit(one: Window):
    one.open(PASSES)
    # The blank line has nothing to fill in, and one place is named twice.
    positions = [{"line": line, "character": character} for line, character in ((6, 4), (3, 0), (2, 4), (2, 6))]
    answer = await run(one, "dg.fillHere", positions=positions)
    (candidate,) = answer["candidates"]
    assert candidate["text"] == "return 1\n\n\ndef right():\n    return 2"
    assert one.editor.buffer.text == PASSES
    assert await run(one, "dg.fillHere", positions=positions, apply=True) == {"applied": True}
    assert one.editor.buffer.text == PAIR
    answer = await run(one, "dg.fillHere", positions=positions)
    assert answer["message"] == "There is nothing to fill in here."
    with pytest.raises(Exception, match="give either `position` or `positions`"):
        await run(one, "dg.fillHere")


@pytest.mark.parametrize(
    ("command", "arguments", "complaint"),
    [
        ("dg.rewrite", [], "one object"),
        ("dg.rewrite", [{"uri": "a", "colour": 1}], "colour"),
        ("dg.nonsense", [], "There is no command 'dg.nonsense'"),
    ],
)
async def test_wrong_arguments_are_refused_by_name(one: Window, command: str, arguments: Any, complaint: str):
    with pytest.raises(Exception, match=complaint):
        await one.request("workspace/executeCommand", {"command": command, "arguments": arguments})


async def test_broken_syntax_is_mended_by_command_and_by_action(one: Window):
    one.open(BROKEN)
    answer = await run(one, "dg.fix")
    assert answer["candidates"][0]["text"] == WHOLE
    answer = await run(one, "dg.fix", range=ranged(one, "    return max(width"))
    put(one, answer["candidates"][0]["edit"])
    assert one.editor.buffer.text == WHOLE
    assert await run(one, "dg.fix") == {
        "version": one.editor.buffer.version,
        "candidates": [],
        "message": "No fix for the syntax was found.",
    }
    one.open(BROKEN)
    title = "Fix syntax: '(' was never closed"
    (action,) = await actions(one, ranged(one, "max("), [title], only=["quickfix"])
    assert action["title"] == title
    await one.request("workspace/executeCommand", command_of(action))
    assert one.editor.buffer.text == WHOLE


def command_of(action: dict[str, Any]) -> dict[str, Any]:
    return {key: action["command"][key] for key in ("command", "arguments")}


async def test_an_empty_body_is_filled(one: Window):
    one.open(EMPTY_BODY)
    title = "Fill in the body"
    named = {each["title"]: each for each in await actions(one, at(1, 5), [title], only=["refactor"])}
    action = named[title]
    await one.request("workspace/executeCommand", command_of(action))
    assert one.editor.buffer.text == FULL_BODY
    position = {"line": 3, "character": 0}
    answer = await run(one, "dg.fillHere", position=position)
    assert answer["message"] == "There is nothing to fill in here."


async def test_a_text_that_takes_too_long_to_look_at_is_not_said_to_have_nothing_to_fill_in(one: Window):
    one.open(LATE)
    answer = await run(one, "dg.fillHere", position={"line": 1, "character": 4})
    assert answer["message"] == "The text could not be looked at in time."
    answer = await run(one, "dg.fix", range={"start": {"line": 0, "character": 0}, "end": {"line": 2, "character": 0}})
    assert answer["message"] == "The text could not be looked at in time."
    assert await actions(one, at(1, 4), only=["quickfix"]) == []


async def test_actions_are_listed_by_kind_without_the_model(one: Window):
    one.open(BROKEN)
    before = (await one.status(engine=True))["engine"]["forwards"]
    kinds = {
        None: ["refactor.rewrite", "quickfix"],
        "": ["refactor.rewrite", "quickfix", "source.fixAll.dg"],
        "refactor": ["refactor.rewrite"],
        "refactor.rewrite": ["refactor.rewrite"],
        "refactor.rewrite.more": [],
        "refact": [],
        "quickfix": ["quickfix"],
        "source": ["source.fixAll.dg"],
        "source.fixAll.dg": ["source.fixAll.dg"],
        "source.organizeImports": [],
    }
    for only, wanted in kinds.items():
        context = {} if only is None else {"only": [only]}
        titles = ["Fix syntax: "] if "quickfix" in wanted else []
        found = await actions(one, ranged(one, "max(width"), titles, **context)
        assert [each["kind"] for each in found] == wanted
    on_save = await actions(one, ranged(one, "max(width"), only=["source.fixAll"], triggerKind=2)
    assert on_save == []
    assert (await one.status(engine=True))["engine"]["forwards"] == before
    one.open(BETTER)
    assert await actions(one, at(0, 0)) == []


async def test_nothing_is_offered_where_the_model_must_not_look(engine, tmp_path):
    async with window(engine, folders=[tmp_path]) as held:
        held.open(LINES, ".env")
        assert await actions(held, ranged(held, LINES)) == []
        answer = await run(held, "dg.rewrite", range=ranged(held, body(LINES)))
        assert answer["message"].startswith("The document is excluded from the model")
        # Not even looked at for places to fill or mend.
        answer = await run(held, "dg.fillHere", position={"line": 0, "character": 0})
        assert answer["message"].startswith("The document is excluded from the model")


async def slow(one: Window, **given: Any) -> asyncio.Task[Any]:
    """A rewrite under way; its first draft has come."""
    one.open("before = 0\n" + SLOW_OLD + "after = 1\n")
    drafts.clear()
    work = asyncio.create_task(run(one, "dg.rewrite", range=ranged(one, SLOW_OLD), strength=1, draftToken="d", **given))
    await until(has_draft, "a draft")
    return work


drafts: list[Any] = []


async def has_draft() -> bool:
    return bool(drafts)


@pytest_asyncio.fixture(loop_scope="module")
async def drawn(one: Window):
    """The window, its drafts collected."""
    one.client.protocol.fm.features.pop("dg/draft", None)
    one.client.feature("dg/draft")(lambda params: drafts.append(params))
    return one


async def test_drafts_come_on_request(drawn: Window):
    work = await slow(drawn)
    answer = await work
    assert answer["candidates"], answer
    assert answer["candidates"][0]["text"] == SLOW_NEW
    told = plain(drafts[-1])
    assert (told["token"], set(told)) == ("d", {"token", "step", "text"})
    assert told["text"].startswith("slowly")


async def test_an_edit_elsewhere_moves_the_answer(drawn: Window):
    work = await slow(drawn)
    drawn.editor.replace(0, 0, "import os\n")
    drawn.editor.replace(len(drawn.editor.buffer.text), len(drawn.editor.buffer.text), "more = 2\n")
    answer = await work
    assert answer["version"] == drawn.editor.buffer.version
    put(drawn, answer["candidates"][0]["edit"])
    assert drawn.editor.buffer.text == "import os\nbefore = 0\n" + SLOW_NEW + "after = 1\nmore = 2\n"


async def test_an_edit_inside_withholds_the_answer(drawn: Window):
    work = await slow(drawn)
    at = drawn.editor.buffer.text.index("two")
    drawn.editor.replace(at, at, "x")
    answer = await work
    assert (answer["candidates"], answer["message"]) == ([], CHANGED)


async def frozen_until_typed(held: Window, command: str, **given: Any) -> Any:
    """The answer to a command during whose first wait, for an engine that does not answer, somebody typed on top."""
    pid = (await held.status(engine=True))["engine"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        work = asyncio.create_task(run(held, command, **given))
        # Answered behind the command, which by now waits.
        await held.status()
        held.editor.replace(0, 0, "import os\nimport sys\n")
        await held.status()
    finally:
        os.kill(pid, signal.SIGCONT)
    return await work


TYPED = "import os\nimport sys\n"


async def test_what_is_typed_during_the_first_wait_of_a_command_moves_the_answer(one: Window):
    one.open(EMPTY_BODY)
    answer = await frozen_until_typed(one, "dg.fillHere", position={"line": 2, "character": 0}, apply=True)
    assert (answer, one.editor.buffer.text) == ({"applied": True}, TYPED + FULL_BODY)
    one.open(BROKEN)
    answer = await frozen_until_typed(one, "dg.fix", range=ranged(one, "    return max(width"), apply=True)
    assert (answer, one.editor.buffer.text) == ({"applied": True}, TYPED + WHOLE)


async def test_typing_elsewhere_goes_first_and_the_rewrite_still_ends(drawn: Window):
    work = await slow(drawn)
    rewritten = drawn.editor.path
    drawn.open("def add(a, b):\n    return ▮\n")
    assert await drawn.ghost() == "a + b"
    assert not work.done()
    assert (await work)["candidates"][0]["text"] == SLOW_NEW
    drawn.editor.path = rewritten


async def test_a_newer_edit_takes_the_place_of_an_older_one(drawn: Window):
    work = await slow(drawn)
    newer = asyncio.create_task(run(drawn, "dg.rewrite", range=ranged(drawn, SLOW_OLD), strength=1))
    assert (await work)["message"] == "A newer request for the same document came."
    assert (await newer)["candidates"]


async def test_a_cancelled_request_ends_its_work(drawn: Window):
    drawn.open("before = 0\n" + SLOW_OLD + "after = 1\n")
    drafts.clear()
    given = {"uri": drawn.editor.buffer.uri, "range": ranged(drawn, SLOW_OLD), "strength": 1, "draftToken": "d"}
    number, answer = drawn.ask("workspace/executeCommand", {"command": "dg.rewrite", "arguments": [given]})
    await until(has_draft, "a draft")
    before = (await drawn.status(engine=True))["engine"]["failed"].get("cancelled", 0)
    drawn.notify("$/cancelRequest", {"id": number})
    with pytest.raises(Exception, match="cancel"):
        await answer

    async def given_up() -> bool:
        return (await drawn.status(engine=True))["engine"]["failed"].get("cancelled", 0) > before

    await until(given_up, "the engine to give up")


async def test_the_bar_shows_the_work_and_cancels_it(drawn: Window):
    drawn.open("before = 0\n" + SLOW_OLD + "after = 1\n")
    drafts.clear()
    given = {"uri": drawn.editor.buffer.uri, "range": ranged(drawn, SLOW_OLD), "strength": 1, "draftToken": "d"}
    params = {"command": "dg.rewrite", "arguments": [given], "workDoneToken": "bar"}
    # The client's library takes reports only for the bars it was asked for.
    drawn.client.progress_reports["bar"] = []
    _, answer = drawn.ask("workspace/executeCommand", params)
    await until(has_draft, "a draft")
    drawn.notify("window/workDoneProgress/cancel", {"token": "bar"})
    assert (await answer)["message"] == "The edit was cancelled."

    async def ended() -> bool:
        return [report.kind for report in drawn.client.progress_reports["bar"]] == ["begin", "end"]

    await until(ended, "the bar to go")
    assert drawn.client.progress_reports["bar"][0].cancellable
