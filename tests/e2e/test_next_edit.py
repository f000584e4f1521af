"""The next edit as clients of Copilot's language server ask for it, from a real server and engine."""

from __future__ import annotations

import pytest
import pytest_asyncio

from tests.e2e.cases import BOTH, RENAMED
from tests.e2e.window import CLIENTS, Window, window

pytestmark = pytest.mark.asyncio(loop_scope="module")
METHOD = "textDocument/copilotInlineEdit"
OLD = "def scaled(size):  # 😋\n    return size * 2\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=CLIENTS)
async def each(request, shared):
    """A window of each client."""
    async with window(shared, request.param, options={"inline": {"deadline_ms": 20_000}}) as held:
        yield held


def renamed(held: Window, text: str = OLD) -> None:
    held.open(f"▮{text}")
    start = text.index("size")
    held.editor.replace(start, start + len("size"), "width")


async def next_edits(held: Window, **more: object) -> list[dict]:
    buffer = held.editor.buffer
    params = {
        "textDocument": {"uri": buffer.uri, "version": buffer.version},
        "position": {"line": 0, "character": 0},
        "context": {"triggerKind": 2},
    }
    answer = await held.request(METHOD, params | more)
    assert set(answer) == {"edits"}
    return answer["edits"]


async def test_what_follows_an_edit_is_answered_as_copilot_does(each: Window):
    renamed(each)
    (edit,) = await next_edits(each)
    line = "    return size * 2"
    at = line.index("size")
    assert edit["text"] == "width"
    assert edit["range"] == {"start": {"line": 1, "character": at}, "end": {"line": 1, "character": at + 4}}
    assert edit["textDocument"] == {"uri": each.editor.buffer.uri, "version": each.editor.buffer.version}
    command = edit["command"]
    assert command["title"]
    # Some clients send it without an id.
    accepted = {"command": command["command"], "arguments": command["arguments"]}
    each.client.protocol._send_data({"jsonrpc": "2.0", "method": "workspace/executeCommand", "params": accepted})
    await each.request("workspace/executeCommand", accepted)
    start = each.editor.buffer.text.index("size")
    each.editor.replace(start, start + 4, edit["text"])
    assert each.editor.buffer.text == RENAMED.replace("▮", "")
    assert await next_edits(each) == []


async def test_lines_of_an_edit_end_in_line_feeds_whatever_ends_those_of_the_document(each: Window):
    text = "first = measured(size)\r\nsecond = measured(size)\r\n"
    each.open(f"▮{text}")
    start = text.index("size")
    each.editor.replace(start, start + len("size"), "\r\n    width\r\n")
    (edit,) = await next_edits(each)
    assert edit["text"] == "\n    width\n"
    start = each.editor.buffer.text.index("size")
    each.editor.replace(start, start + len("size"), edit["text"].replace("\n", "\r\n"))
    assert await next_edits(each) == []


async def test_another_version_or_no_document_is_answered_with_nothing(each: Window):
    renamed(each)
    stale = {"uri": each.editor.buffer.uri, "version": each.editor.buffer.version - 1}
    assert await next_edits(each, textDocument=stale) == []
    assert await next_edits(each, textDocument={"uri": "file:///nowhere.py", "version": 1}) == []
    assert await next_edits(each, position={"line": 10**9, "character": -5}) != []
    unversioned = {"uri": each.editor.buffer.uri}
    assert len(await next_edits(each, textDocument=unversioned)) == 1


async def test_what_clients_tell_beside_is_taken(each: Window):
    renamed(each)
    (edit,) = await next_edits(each)
    each.notify("textDocument/didFocus", {"textDocument": {"uri": each.editor.buffer.uri}})
    each.notify("textDocument/didShowInlineEdit", {"item": {"command": edit["command"]}})
    assert len(await next_edits(each)) == 1


async def test_what_was_dismissed_does_not_come_again(each: Window):
    renamed(each)
    (edit,) = await next_edits(each)
    arguments = edit["command"]["arguments"]
    await each.request("workspace/executeCommand", {"command": "dg.dismissEdit", "arguments": arguments})
    assert await next_edits(each) == []


async def test_nothing_was_edited_nothing_follows(each: Window):
    each.open(f"▮{OLD}")
    assert await next_edits(each) == []


def put(held: Window, edit: dict) -> None:
    """As a client does that applies an edit of an answer."""
    start, end = (edit["range"][each] for each in ("start", "end"))
    assert start["line"] == end["line"]
    lines = held.editor.buffer.text.splitlines(keepends=True)
    at = sum(map(len, lines[: start["line"]]))
    held.editor.replace(at + start["character"], at + end["character"], edit["text"])


async def test_further_places_come_with_it_and_accepting_leads_to_them(each: Window):
    renamed(each, BOTH)
    (edit,) = await next_edits(each)
    (linked,) = edit["linked"]
    assert set(linked) == {"text", "range", "textDocument"}
    assert linked["textDocument"] == edit["textDocument"]
    assert {edit["range"]["start"]["line"], linked["range"]["start"]["line"]} == {1, 2}
    put(each, edit)
    (following,) = await next_edits(each)
    assert "linked" not in following
    assert following["range"] == linked["range"]
    put(each, following)
    assert each.editor.buffer.text == BOTH.replace("size", "width")
    assert await next_edits(each) == []


async def test_calls_follow_their_signature_one_by_one_and_what_was_typed_against_does_not_come_again(each: Window):
    text = "def scaled(size):  # 😋\n    pass\n\n\ndef use(unit):\n    '😋', scaled(1)\n    scaled(2)\n"
    each.open(f"▮{text}")
    end = text.index("):")
    each.editor.replace(end, end, ", unit")
    (edit,) = await next_edits(each)
    (linked,) = edit["linked"]
    assert (edit["text"], edit["range"]["start"]) == (", unit", edit["range"]["end"])
    assert linked["text"] == ", unit"
    at = each.editor.buffer.text.index("(1") + 2
    each.editor.replace(at, at, edit["text"])
    (following,) = await next_edits(each)
    assert following["range"] == linked["range"]
    at = each.editor.buffer.text.index("(2") + 2
    each.editor.replace(at, at, ", 3")
    each.editor.replace(at, at + 3, "")
    assert await next_edits(each) == []


async def test_an_insertion_elsewhere_does_not_end_what_follows(each: Window):
    renamed(each, BOTH)
    (before,) = await next_edits(each)
    end = len(each.editor.buffer.text)
    each.editor.replace(end, end, "\n\nimport os\n")
    (edit,) = await next_edits(each)
    assert [edit["range"], edit["linked"][0]["range"]] == [before["range"], before["linked"][0]["range"]]


async def test_all_places_are_accepted_at_once(each: Window):
    renamed(each, BOTH)
    (edit,) = await next_edits(each)
    start = BOTH.index("    area")
    text = each.editor.buffer.text
    each.editor.replace(start + 1, len(text), text[start + 1 :].replace("size", "width"))
    arguments = [edit["command"]["arguments"][0] | {"all": True}]
    await each.request("workspace/executeCommand", {"command": "dg.accepted", "arguments": arguments})
    assert await next_edits(each) == []


async def test_what_was_typed_against_does_not_come_again(each: Window):
    renamed(each, BOTH)
    (edit,) = await next_edits(each)
    line = each.editor.buffer.text.splitlines(keepends=True)
    at = sum(map(len, line[: edit["range"]["start"]["line"]])) + edit["range"]["start"]["character"]
    each.editor.replace(at, at + 4, "depth")
    each.editor.replace(at, at + 5, "size")
    assert [each_["range"] for each_ in await next_edits(each)] == [edit["linked"][0]["range"]]


async def test_on_key_only_who_asked_is_answered(shared):
    options = {"next_edit": "on_key", "inline": {"deadline_ms": 20_000}}
    async with window(shared, "neovim", options=options) as held:
        renamed(held)
        assert await next_edits(held) == []
        assert await next_edits(held, context=None) == []
        assert len(await next_edits(held, context={"triggerKind": 1})) == 1


async def test_it_can_be_switched_off(shared):
    async with window(shared, "neovim", options={"next_edit": "off"}) as held:
        renamed(held)
        assert await next_edits(held) == []
