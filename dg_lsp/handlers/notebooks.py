"""`notebookDocument/didOpen`, `didChange` and `didClose`. Cells are documents; a notebook adds their order."""

from __future__ import annotations

from collections.abc import Iterable

from lsprotocol.types import NotebookCellKind

from dg_lsp.documents.notebooks import NotebookCell, UnknownCells
from dg_lsp.handlers.server import DgServer
from dg_lsp.protocol.params import (
    DidChangeNotebookDocumentParams,
    DidCloseNotebookDocumentParams,
    DidOpenNotebookDocumentParams,
    NotebookCellItem,
    NotebookDocumentCellChanges,
)


async def did_open(ls: DgServer, params: DidOpenNotebookDocumentParams) -> None:
    """Open a notebook; an open one of the same URI is replaced."""
    notebook = params.notebook_document
    _close(ls, notebook.uri)
    ls.documents.open_notebook(notebook.uri, _cells(notebook.cells))
    for document in params.cell_text_documents:
        ls.open(document)
    ls.in_background(ls.projects.look(notebook.uri))


async def did_change(ls: DgServer, params: DidChangeNotebookDocumentParams) -> None:
    """Apply a change. If that fails, the notebook's text and order are forgotten and requested again."""
    uri, cells = params.notebook_document.uri, params.change.cells
    if cells is None:
        return
    try:
        if ls.documents.notebooks.is_open(uri):
            _rearrange(ls, uri, cells)
    except UnknownCells as error:
        ls.editor.complain(str(error))
        ls.lose(uri)
    except Exception:  # whatever it is, half of the change may be done
        ls.lose(uri)
        raise
    for content in cells.text_content or ():
        ls.change(content.document.uri, content.document.version, content.changes.events)


async def did_close(ls: DgServer, params: DidCloseNotebookDocumentParams) -> None:
    _close(ls, params.notebook_document.uri, (cell.uri for cell in params.cell_text_documents))
    ls.projects.forget(params.notebook_document.uri)


def _rearrange(ls: DgServer, uri: str, cells: NotebookDocumentCellChanges) -> None:
    """Update which cells there are, their order and their kinds."""
    before = ls.documents.notebooks.cells(uri)
    if cells.structure:
        array = cells.structure.array
        ls.documents.splice_cells(uri, array.start, array.delete_count, _cells(array.cells or ()))
        # A cell that becomes one of another language is closed and opened.
        for closed in cells.structure.did_close or ():
            ls.close(closed.uri)
        for document in cells.structure.did_open or ():
            ls.open(document)
    if ls.documents.notebooks.renew(uri, _cells(cells.data or ())) or cells.structure:
        ls.suggester.rearranged(before)


def _close(ls: DgServer, uri: str, cells: Iterable[str] = ()) -> None:
    closed = dict.fromkeys((*ls.documents.notebooks.cells(uri), *cells))
    ls.documents.notebooks.close(uri)
    for cell in closed:
        ls.close(cell)


def _cells(cells: Iterable[NotebookCellItem]) -> list[NotebookCell]:
    return [NotebookCell(uri=cell.document, is_code=cell.kind == NotebookCellKind.Code) for cell in cells]
