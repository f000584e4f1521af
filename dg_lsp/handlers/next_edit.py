"""`textDocument/copilotInlineEdit`: the next edit, as GitHub's Copilot Language Server answers, so that its clients are
served as they are."""

from __future__ import annotations

from typing import Any

from lsprotocol.types import ExecuteCommandParams

from dg_lsp.documents.positions import offset_at, range_of
from dg_lsp.handlers.session import EditorSession
from dg_lsp.protocol.initialize import ACCEPTED
from dg_lsp.protocol.messages import InlineEditParams

NOTHING: dict[str, Any] = {"edits": []}


async def next_edit(ls: EditorSession, params: InlineEditParams) -> dict[str, Any]:
    """One edit or none; never null. A document that is of another version here than there is not edited."""
    document = params.text_document
    snapshot = await ls.snapshot(document.uri)
    if snapshot is None or document.version not in (None, snapshot.version):
        return NOTHING
    if snapshot.policy.settings.next_edit == "off":
        return NOTHING
    found = await ls.next_edits.at(snapshot, offset_at(snapshot.lines, params.position, snapshot.encoding))
    if found is None:
        return NOTHING
    span = range_of(snapshot.lines, found.start, found.end, snapshot.encoding)
    return {
        "edits": [
            {
                "text": found.text,
                "range": {
                    "start": {"line": span.start.line, "character": span.start.character},
                    "end": {"line": span.end.line, "character": span.end.character},
                },
                "textDocument": {"uri": document.uri, "version": snapshot.version},
                "command": {"title": "Edit accepted", "command": ACCEPTED, "arguments": [{"edit": found.id}]},
            }
        ]
    }


async def dismiss(ls: EditorSession, params: ExecuteCommandParams) -> None:
    """Somebody does not want the edit that was shown."""
    match params.arguments:
        case [{"edit": int(id_)}, *_]:
            ls.next_edits.dismiss(id_)
        case _:
            pass
