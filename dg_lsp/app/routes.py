"""What clients may ask of the server: one short handler each. A handler converts, awaits and converts back."""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams

from dg_lsp.app import notebooks
from dg_lsp.app.server import DgServer
from dg_lsp.app.status import set_enabled, status
from dg_lsp.handlers.code_action import code_action
from dg_lsp.handlers.completion import completion
from dg_lsp.handlers.edit_commands import EDIT_COMMANDS
from dg_lsp.handlers.inline_completion import inline_completion
from dg_lsp.handlers.next_edit import dismiss, next_edit
from dg_lsp.protocol.initialize import ACCEPTED, ACTION_KINDS, DISMISS_EDIT
from dg_lsp.protocol.messages import DID_FOCUS, INLINE_EDIT, SET_ENABLED, STATUS, FocusParams
from dg_lsp.protocol.params import (
    CompletionParams,
    DidChangeConfigurationParams,
    DidChangeTextDocumentParams,
    DidChangeWorkspaceFoldersParams,
    DidCloseTextDocumentParams,
    DidOpenTextDocumentParams,
    ExecuteCommandParams,
)

log = logging.getLogger(__name__)

P = TypeVar("P")
R = TypeVar("R")


async def initialize(ls: DgServer, params: types.InitializeParams) -> None:
    ls.begin(params)
    if ls.menu.begin(params, ls.configuration.editor):
        _answer_menu(ls)


async def initialized(ls: DgServer, params: object) -> None:
    if types.TEXT_DOCUMENT_COMPLETION not in ls.rpc.fm.features:
        # Later than the answer to `initialize`, which would promise it.
        _answer_menu(ls)
    ls.start()


async def did_open(ls: DgServer, params: DidOpenTextDocumentParams) -> None:
    ls.open(params.text_document)
    ls.in_background(ls.projects.look(params.text_document.uri))


async def did_change(ls: DgServer, params: DidChangeTextDocumentParams) -> None:
    ls.change(params.text_document.uri, params.text_document.version, params.content_changes.events)


async def did_close(ls: DgServer, params: DidCloseTextDocumentParams) -> None:
    uri = params.text_document.uri
    ls.close(uri)
    ls.projects.forget(uri)


async def did_focus(ls: DgServer, params: FocusParams | None) -> None:
    """A document is looked at; only clients of Copilot's language server say so."""
    if not ls.editor.is_copilots:
        ls.editor.show_as_copilot(ls.board.current)
    if params and params.text_document:
        ls.projects.look_soon(params.text_document.uri)


async def did_change_configuration(ls: DgServer, params: DidChangeConfigurationParams) -> None:
    """The editor's settings changed; where it does not say how, it is asked."""
    if params.settings:
        ls.configuration.change(params.settings)
        ls.refresh()
    else:
        ls.in_background(ls.pull_configuration())


async def did_change_folders(ls: DgServer, params: DidChangeWorkspaceFoldersParams) -> None:
    event = params.event
    ls.configuration.change_folders([each.uri for each in event.added], [each.uri for each in event.removed])
    ls.projects.forget_all()
    ls.suggester.elsewhere.look_anew()


async def did_change_watched_files(ls: DgServer, params: object) -> None:
    ls.projects.look_anew()
    ls.suggester.elsewhere.look_anew()


async def menu(ls: DgServer, params: CompletionParams) -> types.CompletionList | None:
    snapshot = ls.documents.get(params.text_document.uri)
    if snapshot is None or not ls.menu.wanted(snapshot.policy.settings):
        return None
    return await completion(ls, params, ls.menu.taking)


async def execute(ls: DgServer, params: ExecuteCommandParams) -> Any:
    command = COMMANDS.get(params.command)
    if command is None:
        raise JsonRpcInvalidParams(f"There is no command {params.command!r}.")
    return await command(ls, params)


async def accepted(ls: DgServer, params: ExecuteCommandParams) -> None:
    """The editor put a suggestion into the document."""
    match params.arguments:
        case [{"id": int(id_)}, *_]:
            ls.acceptance.ran(id_)
        case _:
            pass


KINDS: list[types.CodeActionKind | str] = [*ACTION_KINDS]
COMMANDS: dict[str, Callable[[DgServer, ExecuteCommandParams], Awaitable[Any]]] = {
    ACCEPTED: accepted,
    DISMISS_EDIT: dismiss,
    **EDIT_COMMANDS,
}
ROUTES: dict[str, tuple[Callable[..., Awaitable[Any]], Any]] = {
    types.INITIALIZE: (initialize, None),
    types.INITIALIZED: (initialized, None),
    types.TEXT_DOCUMENT_DID_OPEN: (did_open, None),
    types.TEXT_DOCUMENT_DID_CHANGE: (did_change, None),
    types.TEXT_DOCUMENT_DID_CLOSE: (did_close, None),
    types.NOTEBOOK_DOCUMENT_DID_OPEN: (notebooks.did_open, None),
    types.NOTEBOOK_DOCUMENT_DID_CHANGE: (notebooks.did_change, None),
    types.NOTEBOOK_DOCUMENT_DID_CLOSE: (notebooks.did_close, None),
    types.TEXT_DOCUMENT_INLINE_COMPLETION: (inline_completion, types.InlineCompletionOptions()),
    types.TEXT_DOCUMENT_CODE_ACTION: (code_action, types.CodeActionOptions(code_action_kinds=KINDS)),
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: (did_change_configuration, None),
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: (did_change_folders, None),
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: (did_change_watched_files, None),
    types.WORKSPACE_EXECUTE_COMMAND: (execute, None),
    INLINE_EDIT: (next_edit, None),
    DID_FOCUS: (did_focus, None),
    STATUS: (status, None),
    SET_ENABLED: (set_enabled, None),
}
"""Handlers, with what the answer to `initialize` says of them; the completion menu's comes where a client needs it."""


def guarded(handler: Callable[[DgServer, P], Awaitable[R]]) -> Callable[[DgServer, P], Awaitable[R | None]]:
    """A defect costs one answer and is in the log; the client sees an empty answer instead of a traceback.

    Refusals are no defects and reach the client.
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
    for method, (handler, options) in ROUTES.items():
        # What a command answers is waited for: there the client is to see a defect.
        server.feature(method, options)(handler if handler is execute else guarded(handler))
    for name in COMMANDS:
        # Named to clients; `execute` finds what is behind it.
        server.command(name)(execute)


def _answer_menu(server: DgServer) -> None:
    server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions())(guarded(menu))
