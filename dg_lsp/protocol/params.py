"""The parameters that handlers are called with; those of `initialize` are in `initialize`.

The types have the protocol's names, but only the fields that are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from lsprotocol import types
from lsprotocol.types import (
    CancelParams,
    CodeActionTriggerKind,
    InlineCompletionTriggerKind,
    MessageActionItem,
    NotebookDocumentIdentifier,
    Position,
    Range,
    TextDocumentIdentifier,
    WorkDoneProgressCancelParams,
)
from msgspec import Struct

from dg_lsp.protocol.lenience import Loose
from dg_lsp.protocol.messages import DID_FOCUS, INLINE_EDIT, SET_ENABLED, STATUS


class _Params(Struct, frozen=True, rename="camel", kw_only=True):
    """Base of all parameters."""


class TextDocumentItem(_Params, frozen=True, kw_only=True):
    uri: str
    text: str
    language_id: Loose[str] = ""
    version: Loose[int | None] = None


class DidOpenTextDocumentParams(_Params, frozen=True, kw_only=True):
    text_document: TextDocumentItem


class VersionedTextDocumentIdentifier(_Params, frozen=True, kw_only=True):
    uri: str
    version: Loose[int | None] = None


class _ContentChange(_Params, frozen=True, kw_only=True):
    text: str
    range: Range | None = None
    """None: `text` is the whole document. Not loose: with an invalid range, `text` would be mistaken for that."""


class ContentChanges:
    """Changes in order."""

    def __init__(self, events: Sequence[types.TextDocumentContentChangeEvent]) -> None:
        self.events = events

    @classmethod
    def read(cls, value: object) -> ContentChanges:
        """Read changes in order; those before a whole text are dropped, valid or not."""
        found: list[types.TextDocumentContentChangeEvent] = []
        for each in reversed(msgspec.convert([] if value == {} else value, list[Any])):
            change = msgspec.convert(each, _ContentChange)
            if change.range is None:
                found.append(types.TextDocumentContentChangeWholeDocument(text=change.text))
                break
            found.append(types.TextDocumentContentChangePartial(range=change.range, text=change.text))
        return cls(found[::-1])


class DidChangeTextDocumentParams(_Params, frozen=True, kw_only=True):
    text_document: VersionedTextDocumentIdentifier
    content_changes: ContentChanges


class DidCloseTextDocumentParams(_Params, frozen=True, kw_only=True):
    text_document: TextDocumentIdentifier


class NotebookCellItem(_Params, frozen=True, kw_only=True):
    kind: int
    document: str


class NotebookDocument(_Params, frozen=True, kw_only=True):
    uri: str
    cells: list[NotebookCellItem]


class DidOpenNotebookDocumentParams(_Params, frozen=True, kw_only=True):
    notebook_document: NotebookDocument
    cell_text_documents: list[Loose[TextDocumentItem]]


class NotebookCellArrayChange(_Params, frozen=True, kw_only=True):
    start: int
    delete_count: int
    cells: list[NotebookCellItem] | None = None


class NotebookDocumentCellChangeStructure(_Params, frozen=True, kw_only=True):
    array: NotebookCellArrayChange
    did_open: list[TextDocumentItem] | None = None
    did_close: list[TextDocumentIdentifier] | None = None


class NotebookDocumentCellContentChanges(_Params, frozen=True, kw_only=True):
    document: VersionedTextDocumentIdentifier
    changes: ContentChanges


class NotebookDocumentCellChanges(_Params, frozen=True, kw_only=True):
    structure: NotebookDocumentCellChangeStructure | None = None
    data: list[NotebookCellItem] | None = None
    text_content: list[NotebookDocumentCellContentChanges] | None = None


class NotebookDocumentChangeEvent(_Params, frozen=True, kw_only=True):
    cells: NotebookDocumentCellChanges | None = None


class DidChangeNotebookDocumentParams(_Params, frozen=True, kw_only=True):
    notebook_document: NotebookDocumentIdentifier
    change: NotebookDocumentChangeEvent


class DidCloseNotebookDocumentParams(_Params, frozen=True, kw_only=True):
    notebook_document: NotebookDocumentIdentifier
    cell_text_documents: Loose[list[Loose[TextDocumentIdentifier]]] = []


class SelectedCompletionInfo(_Params, frozen=True, kw_only=True):
    range: Range
    text: str


class InlineCompletionContext(_Params, frozen=True, kw_only=True):
    trigger_kind: Loose[int] = InlineCompletionTriggerKind.Automatic
    selected_completion_info: Loose[SelectedCompletionInfo | None] = None


class CompletionParams(_Params, frozen=True, kw_only=True):
    text_document: TextDocumentIdentifier
    position: Position


class InlineCompletionParams(CompletionParams, frozen=True, kw_only=True):
    context: Loose[InlineCompletionContext] = InlineCompletionContext()


class ReportedProblem(_Params, frozen=True, kw_only=True):
    """A problem that some server reports."""

    range: Range
    message: str = ""


class CodeActionContext(_Params, frozen=True, kw_only=True):
    diagnostics: Loose[list[Loose[ReportedProblem]]] = []
    only: Loose[list[Loose[str]] | None] = None
    trigger_kind: Loose[int] = CodeActionTriggerKind.Invoked


class CodeActionParams(_Params, frozen=True, kw_only=True):
    text_document: TextDocumentIdentifier
    range: Range
    context: Loose[CodeActionContext] = CodeActionContext()


class DidChangeConfigurationParams(_Params, frozen=True, kw_only=True):
    settings: Any = None


class WorkspaceFolder(_Params, frozen=True, kw_only=True):
    uri: str


class WorkspaceFoldersChangeEvent(_Params, frozen=True, kw_only=True):
    added: Loose[list[Loose[WorkspaceFolder]]] = []
    removed: Loose[list[Loose[WorkspaceFolder]]] = []


class DidChangeWorkspaceFoldersParams(_Params, frozen=True, kw_only=True):
    event: WorkspaceFoldersChangeEvent


class ExecuteCommandParams(_Params, frozen=True, kw_only=True):
    command: str
    arguments: list[Any] | None = None
    work_done_token: Loose[int | str | None] = None


class SetTraceParams(_Params, frozen=True, kw_only=True):
    value: Any = None


class ApplyWorkspaceEditResult(_Params, frozen=True, kw_only=True):
    applied: bool
    failure_reason: Loose[str | None] = None


class StatusParams(_Params, frozen=True, kw_only=True):
    uri: Loose[str | None] = None
    engine: Loose[bool] = False
    """Also query the engine's status."""


class SetEnabledParams(_Params, frozen=True, kw_only=True):
    """A switch. Without language and folder: for everything; with both: for that language in that folder."""

    enabled: bool
    language: str | None = None
    folder: str | None = None
    """Its URI."""


class InlineEditParams(_Params, frozen=True, kw_only=True):
    text_document: VersionedTextDocumentIdentifier
    position: Position
    context: Loose[InlineCompletionContext | None] = None


class FocusParams(_Params, frozen=True, kw_only=True):
    text_document: Loose[TextDocumentIdentifier | None] = None
    """None: no document has the focus."""


PARAMS: dict[str, Any] = {
    types.INITIALIZE: dict[str, Any],
    types.TEXT_DOCUMENT_DID_OPEN: DidOpenTextDocumentParams,
    types.TEXT_DOCUMENT_DID_CHANGE: DidChangeTextDocumentParams,
    types.TEXT_DOCUMENT_DID_CLOSE: DidCloseTextDocumentParams,
    types.NOTEBOOK_DOCUMENT_DID_OPEN: DidOpenNotebookDocumentParams,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE: DidChangeNotebookDocumentParams,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE: DidCloseNotebookDocumentParams,
    types.TEXT_DOCUMENT_INLINE_COMPLETION: InlineCompletionParams,
    types.TEXT_DOCUMENT_COMPLETION: CompletionParams,
    types.TEXT_DOCUMENT_CODE_ACTION: CodeActionParams,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: DidChangeConfigurationParams,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: DidChangeWorkspaceFoldersParams,
    types.WORKSPACE_EXECUTE_COMMAND: ExecuteCommandParams,
    types.CANCEL_REQUEST: CancelParams,
    types.WINDOW_WORK_DONE_PROGRESS_CANCEL: WorkDoneProgressCancelParams,
    types.SET_TRACE: SetTraceParams,
    STATUS: StatusParams | None,
    SET_ENABLED: SetEnabledParams,
    INLINE_EDIT: InlineEditParams,
    DID_FOCUS: FocusParams | None,
}
"""The parameters of all other messages are ignored."""
ANSWERS: dict[Any, Any] = {
    types.ApplyWorkspaceEditResponse: ApplyWorkspaceEditResult,
    types.ShowMessageResponse: MessageActionItem | None,
    types.ConfigurationResponse: list[Any] | None,
}
"""The types of clients' answers."""
