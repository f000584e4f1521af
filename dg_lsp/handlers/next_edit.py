"""`textDocument/copilotInlineEdit`: the next edit, answered as GitHub's Copilot Language Server does, for its
clients."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from dg_lsp.documents.diffs import Replacement
from dg_lsp.documents.documents import Snapshot
from dg_lsp.documents.positions import offset_at, range_of
from dg_lsp.handlers.server import DgServer
from dg_lsp.protocol.initialize import ACCEPTED
from dg_lsp.protocol.params import ExecuteCommandParams, InlineEditParams
from engine.common.newlines import with_line_feeds

NOTHING: dict[str, Any] = {"edits": []}


async def next_edit(ls: DgServer, params: InlineEditParams) -> dict[str, Any]:
    """At most one edit; never null. None where the client's version of the document differs from ours."""
    document = params.text_document
    snapshot = await ls.projects.snapshot(document.uri)
    if snapshot is None or not snapshot.may_be_of(document.version):
        return NOTHING
    requested = params.context is not None and ls.trigger_kinds.is_invoked(params.context.trigger_kind)
    wanted = snapshot.policy.settings.next_edit
    if wanted == "off" or (wanted == "on_key" and not requested):
        return NOTHING
    found = await ls.next_edits.at(snapshot, offset_at(snapshot.lines, params.position, snapshot.encoding))
    if found is None:
        return NOTHING
    first, *linked = (_edit(found.snapshot, place) for place in found.places)
    first["command"] = {"title": "Edit accepted", "command": ACCEPTED, "arguments": [{"edit": found.id}]}
    return {"edits": [first | ({"linked": linked} if linked else {})]}


def _edit(snapshot: Snapshot, place: Replacement) -> dict[str, Any]:
    return {
        "text": with_line_feeds(place.text),
        "range": to_builtins(range_of(snapshot.lines, place.start, place.end, snapshot.encoding)),
        "textDocument": {"uri": snapshot.uri, "version": snapshot.version},
    }


async def dismiss(ls: DgServer, params: ExecuteCommandParams) -> None:
    """The user dismissed the edit that was shown."""
    match params.arguments:
        case [{"edit": int(id_)}, *_]:
            ls.next_edits.dismiss(id_)
        case _:
            pass
