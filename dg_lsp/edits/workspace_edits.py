"""Replacements in a document as a `WorkspaceEdit` that the client supports."""

from __future__ import annotations

from collections.abc import Sequence

from lsprotocol import types

from dg_lsp.documents.diffs import Replacement
from dg_lsp.documents.documents import Snapshot
from dg_lsp.documents.positions import range_of
from dg_lsp.protocol.initialize import ClientHello

ANNOTATION = "dg-lsp"


def workspace_edit(
    snapshot: Snapshot, replacements: Sequence[Replacement], label: str, client: ClientHello
) -> types.WorkspaceEdit:
    """With the document's version, and annotated as made by a model, where the client supports that."""
    edits = [
        types.TextEdit(range=range_of(snapshot.lines, each.start, each.end, snapshot.encoding), new_text=each.text)
        for each in replacements
    ]
    if not client.can("workspace", "workspaceEdit", "documentChanges"):
        return types.WorkspaceEdit(changes={snapshot.uri: edits})
    document = types.OptionalVersionedTextDocumentIdentifier(uri=snapshot.uri, version=snapshot.version)
    if client.can("workspace", "workspaceEdit", "changeAnnotationSupport") in (None, False):
        return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(text_document=document, edits=edits)])
    annotated = [
        types.AnnotatedTextEdit(range=each.range, new_text=each.new_text, annotation_id=ANNOTATION) for each in edits
    ]
    return types.WorkspaceEdit(
        document_changes=[types.TextDocumentEdit(text_document=document, edits=annotated)],
        change_annotations={ANNOTATION: types.ChangeAnnotation(label=label, description="Made by a model: review it.")},
    )
