"""What handlers need of the server that they run in."""

from __future__ import annotations

from typing import Protocol

from lsprotocol.types import ApplyWorkspaceEditParams, ApplyWorkspaceEditResult, ClientCapabilities, ShowMessageParams

from dg_lsp.backend.resident import Resident
from dg_lsp.documents.documents import Documents
from dg_lsp.documents.projects import Projects
from dg_lsp.edits.analyses import Analyses
from dg_lsp.edits.edits import Edits
from dg_lsp.protocol.progress import ProgressBars
from dg_lsp.protocol.rpc import Rpc
from dg_lsp.suggest.acceptance import Acceptance
from dg_lsp.suggest.next_edits import NextEdits
from dg_lsp.suggest.suggester import Suggester


class EditorSession(Protocol):
    acceptance: Acceptance
    documents: Documents
    projects: Projects
    edits: Edits
    resident: Resident
    rpc: Rpc
    suggester: Suggester
    analyses: Analyses
    next_edits: NextEdits
    working: ProgressBars

    @property
    def client_capabilities(self) -> ClientCapabilities: ...

    async def workspace_apply_edit_async(self, params: ApplyWorkspaceEditParams) -> ApplyWorkspaceEditResult: ...

    def window_show_message(self, params: ShowMessageParams) -> None: ...
