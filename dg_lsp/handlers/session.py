"""What handlers may use of the server: the parts of a session, and what happens to documents and settings."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from lsprotocol.types import (
    ApplyWorkspaceEditParams,
    ApplyWorkspaceEditResult,
    ClientCapabilities,
    InitializeParams,
    ShowMessageParams,
    TextDocumentContentChangeEvent,
)

from dg_lsp.backend.resident import Resident
from dg_lsp.backend.status import StatusBoard
from dg_lsp.config.configuration import Configuration
from dg_lsp.documents.documents import Documents, OpenedText
from dg_lsp.documents.projects import Projects
from dg_lsp.edits.analyses import Analyses
from dg_lsp.edits.edits import Edits
from dg_lsp.handlers.menu import Menu
from dg_lsp.protocol.editor import EditorClient
from dg_lsp.protocol.lenience import TriggerKinds
from dg_lsp.protocol.progress import ProgressBars
from dg_lsp.protocol.rpc import Rpc
from dg_lsp.suggest.acceptance import Acceptance
from dg_lsp.suggest.in_flight import InFlight
from dg_lsp.suggest.next_edits import NextEdits
from dg_lsp.suggest.suggester import Suggester
from dg_lsp.workspace.index import WorkspaceIndex


class EditorSession(Protocol):
    """The server as its handlers see it; `app/server.py` has the real one."""

    acceptance: Acceptance
    analyses: Analyses
    answer_menu: Callable[[], None]
    """Answer `textDocument/completion` from now on."""
    board: StatusBoard
    configuration: Configuration
    documents: Documents
    editor: EditorClient
    edits: Edits
    in_flight: InFlight
    index: WorkspaceIndex
    menu: Menu
    next_edits: NextEdits
    projects: Projects
    resident: Resident
    rpc: Rpc
    suggester: Suggester
    working: ProgressBars
    trigger_kinds: TriggerKinds

    def begin(self, params: InitializeParams) -> None: ...
    def start(self) -> None: ...
    def open(self, document: OpenedText) -> None: ...
    def change(self, uri: str, version: int | None, events: Sequence[TextDocumentContentChangeEvent]) -> None: ...
    def close(self, uri: str) -> None: ...
    def lose(self, uri: str | None) -> None: ...
    def refresh(self) -> None: ...
    async def pull_configuration(self) -> None: ...
    def in_background(self, work: Coroutine[Any, Any, None]) -> None: ...

    @property
    def client_capabilities(self) -> ClientCapabilities: ...

    async def workspace_apply_edit_async(self, params: ApplyWorkspaceEditParams) -> ApplyWorkspaceEditResult: ...

    def window_show_message(self, params: ShowMessageParams) -> None: ...
