"""`textDocument/didOpen`, `didChange`, `didClose` and `didFocus`."""

from __future__ import annotations

from dg_lsp.handlers.server import DgServer
from dg_lsp.protocol.params import (
    DidChangeTextDocumentParams,
    DidCloseTextDocumentParams,
    DidOpenTextDocumentParams,
    FocusParams,
)


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
    """The user switched to a document; only clients of Copilot's language server send this."""
    if not ls.editor.is_copilots:
        ls.editor.show_as_copilot(ls.board.current)
    if params and params.text_document:
        ls.projects.look_soon(params.text_document.uri)
