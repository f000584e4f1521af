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
from dg_lsp.handlers.execute_command import execute
from dg_lsp.handlers.inline_completion import inline_completion
from dg_lsp.handlers.next_edit import next_edit
from dg_lsp.handlers.server import DgServer
from dg_lsp.handlers.status import set_enabled, status
from dg_lsp.protocol.messages import DID_FOCUS, INLINE_EDIT, SET_ENABLED, STATUS

log = logging.getLogger(__name__)

P = TypeVar("P")
R = TypeVar("R")

ROUTES: dict[str, Callable[..., Awaitable[Any]]] = {
    types.INITIALIZE: workspace.initialize,
    types.INITIALIZED: workspace.initialized,
    types.TEXT_DOCUMENT_DID_OPEN: text_documents.did_open,
    types.TEXT_DOCUMENT_DID_CHANGE: text_documents.did_change,
    types.TEXT_DOCUMENT_DID_CLOSE: text_documents.did_close,
    types.NOTEBOOK_DOCUMENT_DID_OPEN: notebooks.did_open,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE: notebooks.did_change,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE: notebooks.did_close,
    types.TEXT_DOCUMENT_INLINE_COMPLETION: inline_completion,
    types.TEXT_DOCUMENT_COMPLETION: completion,
    types.TEXT_DOCUMENT_CODE_ACTION: code_action,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: workspace.did_change_configuration,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: workspace.did_change_folders,
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: workspace.did_change_watched_files,
    types.WORKSPACE_EXECUTE_COMMAND: execute,
    INLINE_EDIT: next_edit,
    DID_FOCUS: text_documents.did_focus,
    STATUS: status,
    SET_ENABLED: set_enabled,
}


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
    """Tell pygls all handlers."""
    for method, handler in ROUTES.items():
        # A client waits for the answer of a command, and is to see a defect there.
        server.feature(method)(handler if handler is execute else guarded(handler))
