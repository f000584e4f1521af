"""The message sequences of clients that were written for Copilot's language server, to a real server and engine.

What each client sends in `initialize`, and what it does by itself, is as its published source has them.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from dg_lsp.replay.connection import ServerConnection
from dg_lsp.replay.editor import Editor
from tests.e2e.window import recorded, until
from tests.engine.processes import Home

pytestmark = pytest.mark.asyncio(loop_scope="module")
OLD = "def scaled(size):  # 😋\n    '😋', return_ = size, '😋'\n"
PATIENT = {"inline": {"deadline_ms": 20_000}}


@dataclass(frozen=True, kw_only=True)
class Profile:
    """How a client introduces itself, and its habits."""

    client_info: dict[str, str] | None
    capabilities: dict[str, Any]
    options: dict[str, Any] | None
    configuration: object
    """What `workspace/didChangeConfiguration` says behind `initialized`."""
    initialized: object
    context: bool
    """Whether it says that it asks by itself."""
    writes: str | None
    """The encoding of what the plugin itself writes, where it is not the one agreed on."""
    shows: bool
    """Whether it tells that it shows an edit."""
    accepts_with_id: bool
    focuses: bool = True


NEOVIM = {"name": "Neovim", "version": "0.12.4"}
SIDEKICK = Profile(
    client_info=NEOVIM,
    capabilities=recorded("neovim"),
    options=None,
    configuration={"dg-lsp": PATIENT},
    initialized={},
    context=True,
    writes=None,
    shows=False,
    accepts_with_id=True,
)
COPILOT_LSP = Profile(
    client_info=NEOVIM,
    capabilities=recorded("neovim"),
    options={
        "editorInfo": {"name": "neovim", "version": "0.12.4"},
        "editorPluginInfo": {"name": "Github Copilot LSP for Neovim", "version": "0.0.1"},
    },
    configuration={"nextEditSuggestions": {"enabled": True}, "dg-lsp": PATIENT},
    initialized={},
    context=False,
    writes="utf-16",
    shows=True,
    accepts_with_id=True,
)
COPILOT_EL = Profile(
    client_info=None,
    capabilities={"workspace": {"workspaceFolders": True}},
    options={
        "editorInfo": {"name": "Emacs", "version": "30.1"},
        "editorPluginInfo": {"name": "copilot.el", "version": "0.5"},
        "dg-lsp": PATIENT,
    },
    configuration=None,
    initialized=None,
    context=False,
    writes=None,
    shows=True,
    accepts_with_id=False,
)
PROFILES = {"sidekick.nvim": SIDEKICK, "copilot-lsp": COPILOT_LSP, "copilot.el": COPILOT_EL}


class CopilotClient:
    """One client at work."""

    def __init__(self, profile: Profile, wire: ServerConnection, told: list[tuple[str, Any]]) -> None:
        self.profile = profile
        self.wire = wire
        self.told = told
        self.agreed = str(wire.initialized["capabilities"]["positionEncoding"])
        self.editor = Editor(wire, self.agreed, "/project")  # pyright: ignore[reportArgumentType]

    @property
    def statuses(self) -> list[dict[str, Any]]:
        return [params for method, params in self.told if method == "didChangeStatus"]

    @property
    def complaints(self) -> list[str]:
        return [params["message"] for method, params in self.told if method == "window/logMessage"]

    def open(self, text: str, path: str) -> None:
        self.editor.open(path, "python", text, 0)
        if self.profile.focuses:
            uri = self.editor.buffer.uri
            self.wire.notify("textDocument/didFocus", {"textDocument": {"uri": uri}})

    async def next_edit(self, **more: object) -> dict[str, Any] | None:
        """Ask from the end of the first line, which holds a character outside the first plane."""
        buffer = self.editor.buffer
        line = buffer.text.split("\n", 1)[0]
        encoding = self.profile.writes or self.agreed
        params: dict[str, Any] = {
            "textDocument": {"uri": buffer.uri, "version": buffer.version},
            "position": {"line": 0, "character": width(line, encoding)},
        }
        if self.profile.context:
            params["context"] = {"triggerKind": 2}
        answer = await self.wire.request("textDocument/copilotInlineEdit", params | more)
        assert set(answer) == {"edits"}
        assert len(answer["edits"]) <= 1
        return answer["edits"][0] if answer["edits"] else None

    def shown(self, edit: dict[str, Any]) -> None:
        if self.profile.shows:
            self.wire.notify("textDocument/didShowInlineEdit", {"item": {"command": edit["command"]}})

    async def accept(self, edit: dict[str, Any]) -> None:
        """Put an edit into the text where the client takes its range to be, and run its command."""
        assert edit["textDocument"] == {"uri": self.editor.buffer.uri, "version": self.editor.buffer.version}
        encoding = self.profile.writes or self.agreed
        start, end = (offset(self.editor.buffer.text, edit["range"][at], encoding) for at in ("start", "end"))
        self.editor.replace(start, end, edit["text"])
        called = {key: edit["command"][key] for key in ("command", "arguments")}
        if self.profile.accepts_with_id:
            await self.wire.request("workspace/executeCommand", called)
        else:
            self.wire.notify("workspace/executeCommand", called)


def width(text: str, encoding: str) -> int:
    return {"utf-8": len(text.encode()), "utf-16": len(text.encode("utf-16-le")) // 2}[encoding]


def offset(text: str, position: dict[str, int], encoding: str) -> int:
    lines = text.split("\n")
    line = lines[position["line"]]
    column = next(at for at in range(len(line) + 1) if width(line[:at], encoding) == position["character"])
    return sum(len(before) + 1 for before in lines[: position["line"]]) + column


@asynccontextmanager
async def client(home: Home, profile: Profile) -> AsyncIterator[CopilotClient]:
    """A client from `initialize` to its end; the server has nothing to say on standard error."""
    with tempfile.TemporaryFile() as stderr:
        wire = await ServerConnection.start([sys.executable, "-m", "dg_lsp", "serve"], home.environment, stderr)
        told: list[tuple[str, Any]] = []
        wire.on_notification = lambda method, params: told.append((method, params))
        params: dict[str, Any] = {"processId": None, "capabilities": profile.capabilities, "rootUri": None}
        if profile.client_info:
            params["clientInfo"] = profile.client_info
        if profile.options is not None:
            params["initializationOptions"] = profile.options
        wire.initialized = await wire.request("initialize", params)
        wire.notify("initialized", profile.initialized)
        wire.notify("workspace/didChangeConfiguration", {"settings": profile.configuration})
        held = CopilotClient(profile, wire, told)
        try:
            yield held
        finally:
            code = await wire.close()
        stderr.seek(0)
        assert (code, stderr.read().decode()) == (0, "")
        assert held.complaints == []


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=PROFILES)
async def each(request, shared: Home):
    async with client(shared, PROFILES[request.param]) as held:
        yield held


def rename(held: CopilotClient, path: str) -> None:
    held.open(OLD, path)
    start = OLD.index("size")
    held.editor.replace(start, start + len("size"), "width")


async def test_what_it_does_from_an_edit_to_its_acceptance(each: CopilotClient):
    rename(each, "accepted.py")
    edit = await each.next_edit()
    assert edit is not None
    each.shown(edit)
    await each.accept(edit)
    assert each.editor.buffer.text == OLD.replace("size", "width")
    assert await each.next_edit() is None


async def test_a_version_that_has_passed_is_answered_with_nothing(each: CopilotClient):
    rename(each, "stale.py")
    buffer = each.editor.buffer
    assert await each.next_edit(textDocument={"uri": buffer.uri, "version": buffer.version - 1}) is None
    assert await each.next_edit(textDocument={"uri": buffer.uri, "version": buffer.version + 1}) is None
    assert await each.next_edit() is not None


async def test_it_is_told_how_things_stand_as_copilot_tells_it(each: CopilotClient):
    each.open(OLD, "status.py")

    async def is_ready() -> bool:
        return bool(each.statuses) and each.statuses[-1] == {"busy": False, "kind": "Normal", "message": ""}

    await until(is_ready, "a status that all is well")
    await each.wire.request("dg/setEnabled", {"enabled": False})

    async def is_off() -> bool:
        return each.statuses[-1]["kind"] == "Inactive"

    await until(is_off, "a status that suggestions are off")
    assert each.statuses[-1] == {"busy": False, "kind": "Inactive", "message": "Suggestions are switched off."}
    await each.wire.request("dg/setEnabled", {"enabled": True})
    await until(is_ready, "a status that all is well again")


async def test_where_nothing_is_looked_at_no_document_is_lost(each: CopilotClient):
    rename(each, "unfocused.py")
    # As where a window without a file has the focus, and as nobody should say it.
    for params in ({}, None, {"textDocument": None}, {"textDocument": 3}, [1]):
        each.wire.notify("textDocument/didFocus", params)
    assert await each.next_edit() is not None


async def test_who_does_not_speak_it_is_told_nothing_of_it(shared: Home):
    quiet = Profile(**{**vars(SIDEKICK), "focuses": False})
    async with client(shared, quiet) as held:
        held.open(OLD, "quiet.py")
        await held.wire.request("dg/status", {"uri": held.editor.buffer.uri, "engine": True})
        await asyncio.sleep(0.2)
        assert held.statuses == []


@pytest.mark.parametrize(("name", "agreed"), [("sidekick.nvim", "utf-8"), ("copilot-lsp", "utf-16")])
async def test_a_client_that_writes_utf_16_in_any_case_is_known_by_its_name(shared: Home, name: str, agreed: str):
    async with client(shared, PROFILES[name]) as held:
        assert held.agreed == agreed
