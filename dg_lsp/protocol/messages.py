"""The messages of this server that are not in the Language Server Protocol.

`dg/status` (request): how things stand, for a document if one is given. `dg/status` (notification to the client): the
state changed; sent to clients that announce `experimental: {"dgStatus": true}` or have asked once.
`dg/draft` (notification to the client): {token, step, text}, the text as it stands after a step of an edit whose
command named the token.
`dg/reopen` (notification to the client): {uri}, a document whose text is no longer known here and wanted again, by
`textDocument/didOpen`; sent to clients that announce `experimental: {"dgReopen": true}`.
`textDocument/copilotInlineEdit` (request): where else an edit belongs, as GitHub's Copilot Language Server
documents it; with `linked` in an edit: further places that follow, each with `text`, `range` and `textDocument`. Of the
same protocol, `textDocument/didFocus` (notification) says which document is looked at, if any, and `didChangeStatus`
(notification to the client) {busy, kind, message} how things stand; it is sent to clients that say `editorInfo` in
their `initializationOptions` or have said `didFocus`. `textDocument/didShowInlineEdit` may be said and changes nothing.
`dg/setEnabled` (request): suggestions on or off, everywhere, for a language, in a folder, or for a language there;
answered like `dg/status`.
"""

from __future__ import annotations

from lsprotocol.types import InlineCompletionTriggerKind, Position, TextDocumentIdentifier
from msgspec import Struct

from dg_lsp.protocol.lenience import Loose

STATUS = "dg/status"
SET_ENABLED = "dg/setEnabled"
DRAFT = "dg/draft"
REOPEN = "dg/reopen"
INLINE_EDIT = "textDocument/copilotInlineEdit"
DID_FOCUS = "textDocument/didFocus"
DID_CHANGE_STATUS = "didChangeStatus"


class StatusParams(Struct, frozen=True):
    uri: Loose[str | None] = None
    engine: Loose[bool] = False
    """Ask the engine for its own account, too."""


class SetEnabledParams(Struct, frozen=True):
    """What is switched. Without language and folder: everything; with both: that language in that folder."""

    enabled: bool
    language: str | None = None
    folder: str | None = None
    """By its URI."""


class InlineEditDocument(Struct, frozen=True):
    uri: str
    version: Loose[int | None] = None


class InlineEditContext(Struct, frozen=True, rename="camel"):
    trigger_kind: Loose[int] = InlineCompletionTriggerKind.Automatic


class InlineEditParams(Struct, frozen=True, rename="camel"):
    text_document: InlineEditDocument
    position: Position
    context: Loose[InlineEditContext | None] = None


class FocusParams(Struct, frozen=True, rename="camel"):
    text_document: Loose[TextDocumentIdentifier | None] = None
    """None: what is looked at is no document."""


NOTIFICATIONS = frozenset({DID_FOCUS})
"""Those of the above that ask for no answer."""
