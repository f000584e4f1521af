"""`textDocument/inlineCompletion`: three moves, convert, await, convert."""

from __future__ import annotations

from collections.abc import Sequence

from lsprotocol.types import (
    Command,
    InlineCompletionItem,
    InlineCompletionList,
    InlineCompletionParams,
    InlineCompletionTriggerKind,
)

from dg_lsp.documents.documents import Documents
from dg_lsp.documents.gap import Gap, Selected, gap_at
from dg_lsp.documents.positions import offset_at, range_of, span_of
from dg_lsp.protocol.initialize import ACCEPTED
from dg_lsp.suggest.acceptance import Acceptance
from dg_lsp.suggest.suggester import INLINE, Suggester
from dg_lsp.suggest.suggestions import Rest


async def inline_completion(
    documents: Documents, suggester: Suggester, acceptance: Acceptance, params: InlineCompletionParams
) -> InlineCompletionList | None:
    """Ghost text: one item unasked, several when invoked, none where there is nothing good to show."""
    gap = _gap(documents, params)
    if gap is None:
        return None
    invoked = params.context.trigger_kind == InlineCompletionTriggerKind.Invoked
    rests = await suggester.suggest(gap, invoked=invoked, lane=INLINE)
    if not rests:
        return None
    acceptance.shown(gap.snapshot.uri, gap.snapshot.language, rests)
    return InlineCompletionList(items=_items(documents, gap, rests))


def _gap(documents: Documents, params: InlineCompletionParams) -> Gap | None:
    snapshot = documents.get(params.text_document.uri)
    if snapshot is None:
        return None
    cursor = offset_at(snapshot.lines, params.position, documents.encoding)
    info = params.context.selected_completion_info
    if info is None:
        return gap_at(snapshot, cursor)
    start, end = span_of(snapshot.lines, info.range, documents.encoding)
    return gap_at(snapshot, cursor, Selected(start=start, end=end, text=info.text))


def _items(documents: Documents, gap: Gap, rests: Sequence[Rest]) -> list[InlineCompletionItem]:
    return [_item(documents, gap, rest) for rest in rests]


def _item(documents: Documents, gap: Gap, rest: Rest) -> InlineCompletionItem:
    """The item's range is on one line, and its text begins with what stands in the range before the cursor."""
    line_start = gap.lines.line_start(gap.cursor)
    begin, end = (gap.selected.start, gap.selected.end) if gap.selected else (max(rest.start, line_start), rest.end)
    text = (gap.text[begin : gap.cursor] + rest.text).replace("\r\n", "\n")
    return InlineCompletionItem(
        insert_text=text,
        filter_text=text,
        range=range_of(gap.snapshot.lines, begin, end, documents.encoding),
        command=Command(
            title="Suggestion accepted",
            command=ACCEPTED,
            arguments=[{"id": rest.suggestion.id, "version": gap.snapshot.version}],
        ),
    )
