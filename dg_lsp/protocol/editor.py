"""The editor's end: its capabilities, notifications to it, requests to it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from collections.abc import Sequence
from typing import Any, cast

import psutil
from lsprotocol.types import (
    ConfigurationItem,
    ConfigurationParams,
    LogMessageParams,
    MessageActionItem,
    MessageType,
    ShowMessageParams,
    ShowMessageRequestParams,
)
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from dg_lsp.backend.status import Status
from dg_lsp.config.sections import SECTIONS
from dg_lsp.protocol.initialize import ClientHello
from dg_lsp.protocol.messages import ADVICE, DID_CHANGE_STATUS, REOPEN, STATUS
from dg_lsp.protocol.rpc import Rpc

log = logging.getLogger(__name__)

CONFIGURATION_S = 10.0
"""How long a client may take to answer with its settings."""


class EditorClient:
    """The client of `server`. Requests that it does not support have an empty answer."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self._rpc = cast(Rpc, server.protocol)
        self.wants_status = False
        self.is_copilots = False
        """Whether it gets the status as Copilot's clients do."""
        self.pid: int | None = None
        """The editor's process; the session ends with it."""
        self.hello = ClientHello({})

    def begin(self, hello: ClientHello) -> None:
        """Take the client's capabilities from `initialize`."""
        self.hello, pid = hello, hello.said("processId")
        # A process that does not exist here is on another machine or in another container.
        self.pid = pid if type(pid) is int and _is_there(pid) else None
        self.wants_status = hello.can("experimental", "dgStatus") is True
        self.is_copilots = hello.is_copilots

    def can_show_progress(self) -> bool:
        return bool(self.hello.can("window", "workDoneProgress"))

    def complain(self, sentence: str) -> None:
        """Write a sentence to the client's log, without a popup, and to ours."""
        log.warning("%s", sentence)
        self._log(sentence)

    def advise(self, sentence: str) -> None:
        """Show the user a sentence about something better than what is there."""
        if self.wants_status:
            self._rpc.notify(ADVICE, {"message": sentence})
        else:
            self._server.window_show_message(ShowMessageParams(type=MessageType.Info, message=sentence))

    def show(self, status: Status) -> None:
        """Send the status to a client that wants it."""
        if self.wants_status:
            self._rpc.notify(STATUS, dataclasses.asdict(status))
        if self.is_copilots:
            self.show_as_copilot(status)

    def show_as_copilot(self, status: Status) -> None:
        """Send the status as Copilot's language server does, now and at each change."""
        self.is_copilots = True
        kind = "Error" if status.state == "error" else "Inactive" if status.state == "off" else "Normal"
        busy = status.state in ("starting", "loading", "busy")
        self._rpc.notify(DID_CHANGE_STATUS, {"busy": busy, "kind": kind, "message": status.message})

    def reopen(self, uri: str) -> None:
        """Request the text of a document or notebook again; if the client can't, tell the user to reopen it."""
        if self.hello.can("experimental", "dgReopen") is True:
            self._rpc.notify(REOPEN, {"uri": uri})
        else:
            self._log(f"A change to {uri} could not be read: close and reopen the document.")

    async def configuration(self) -> Sequence[Any]:
        """The client's settings tables; none where it does not answer in time."""
        if not self.hello.can("workspace", "configuration"):
            return ()
        params = ConfigurationParams(items=[ConfigurationItem(section=section) for section in SECTIONS])
        try:
            async with asyncio.timeout(CONFIGURATION_S):
                return await self._server.workspace_configuration_async(params) or ()
        except (JsonRpcException, TimeoutError):
            return ()

    def can_choose(self) -> bool:
        """Whether the user can be asked to choose something."""
        # An empty table of Lua is a list in JSON.
        return isinstance(self.hello.can("window", "showMessage"), dict | list)

    async def choose(self, sentence: str, choices: Sequence[str]) -> str:
        """The user's choice; empty: none."""
        if not self.can_choose():
            return ""
        actions = [MessageActionItem(title=choice) for choice in choices]
        params = ShowMessageRequestParams(type=MessageType.Info, message=sentence, actions=actions)
        with contextlib.suppress(JsonRpcException):
            chosen = await self._server.window_show_message_request_async(params)
            return chosen.title if chosen else ""
        return ""

    def _log(self, sentence: str) -> None:
        self._server.window_log_message(LogMessageParams(type=MessageType.Warning, message=sentence))


def _is_there(pid: int) -> bool:
    try:
        return pid > 0 and psutil.pid_exists(pid)
    except OverflowError:  # more than any process has
        return False
