"""Which handler answers which request or notification."""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from dg_lsp.handlers import notebooks, text_documents, workspace
from dg_lsp.handlers.code_action import code_action
from dg_lsp.handlers.completion import completion
from dg_lsp.handlers.execute_command import COMMANDS, execute
from dg_lsp.handlers.inline_completion import inline_completion
from dg_lsp.handlers.lifecycle import initialize, initialized
from dg_lsp.handlers.next_edit import next_edit
from dg_lsp.handlers.server import DgServer
from dg_lsp.handlers.status import set_enabled, status
from dg_lsp.protocol.initialize import ACTION_KINDS
from dg_lsp.protocol.messages import DID_FOCUS, INLINE_EDIT, SET_ENABLED, STATUS

log = logging.getLogger(__name__)

P = TypeVar("P")
R = TypeVar("R")

KINDS: list[types.CodeActionKind | str] = [*ACTION_KINDS]
ROUTES: dict[str, tuple[Callable[..., Awaitable[Any]], Any]] = {
    types.INITIALIZE: (initialize, None),
    types.INITIALIZED: (initialized, None),
    types.TEXT_DOCUMENT_DID_OPEN: (text_documents.did_open, None),
    types.TEXT_DOCUMENT_DID_CHANGE: (text_documents.did_change, None),
    types.TEXT_DOCUMENT_DID_CLOSE: (text_documents.did_close, None),
    types.NOTEBOOK_DOCUMENT_DID_OPEN: (notebooks.did_open, None),
    types.NOTEBOOK_DOCUMENT_DID_CHANGE: (notebooks.did_change, None),
    types.NOTEBOOK_DOCUMENT_DID_CLOSE: (notebooks.did_close, None),
    types.TEXT_DOCUMENT_INLINE_COMPLETION: (inline_completion, types.InlineCompletionOptions()),
    types.TEXT_DOCUMENT_CODE_ACTION: (code_action, types.CodeActionOptions(code_action_kinds=KINDS)),
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: (workspace.did_change_configuration, None),
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: (workspace.did_change_folders, None),
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: (workspace.did_change_watched_files, None),
    types.WORKSPACE_EXECUTE_COMMAND: (execute, None),
    INLINE_EDIT: (next_edit, None),
    DID_FOCUS: (text_documents.did_focus, None),
    STATUS: (status, None),
    SET_ENABLED: (set_enabled, None),
}
"""Handlers, with their options in the answer to `initialize`. `textDocument/completion` is added where a client needs
it."""


def guarded(handler: Callable[[DgServer, P], Awaitable[R]]) -> Callable[[DgServer, P], Awaitable[R | None]]:
    """Log what a handler raises by a defect and answer null: the client sees no traceback.

    JsonRpcException is a refusal, not a defect, and reaches the client.
    """

    @functools.wraps(handler)
    async def guarded_handler(ls: DgServer, params: P) -> R | None:
        try:
            return await handler(ls, params)
        except JsonRpcException:
            raise
        except Exception:  # whatever it is, the next request may be fine
            log.exception("%s failed.", handler.__name__)
            return None

    return guarded_handler


def register(server: DgServer) -> None:
    """Tell pygls all handlers and the names of all commands."""
    for method, (handler, options) in ROUTES.items():
        # A client waits for the answer of a command, and is to see a defect there.
        server.feature(method, options)(handler if handler is execute else guarded(handler))
    for name in COMMANDS:
        # For the answer to `initialize`; `execute` finds the command itself.
        server.command(name)(execute)
    server.answer_menu = lambda: _answer_menu(server)


def _answer_menu(server: DgServer) -> None:
    if types.TEXT_DOCUMENT_COMPLETION not in server.rpc.fm.features:
        server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions())(guarded(completion))
