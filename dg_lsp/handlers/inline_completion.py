"""`textDocument/inlineCompletion`: ghost text."""

from __future__ import annotations

from lsprotocol.types import (
    Command,
    InlineCompletionItem,
    InlineCompletionList,
)

from dg_lsp.documents.diffs import Replacement
from dg_lsp.documents.documents import Snapshot
from dg_lsp.documents.gap import CursorGap, gap_at
from dg_lsp.documents.positions import offset_at, range_of, span_of
from dg_lsp.handlers.server import DgServer
from dg_lsp.protocol.initialize import ACCEPTED
from dg_lsp.protocol.params import InlineCompletionParams
from dg_lsp.suggest.suggester import INLINE
from dg_lsp.suggest.suggestions import Remainder
from engine.common.newlines import with_line_feeds


async def inline_completion(ls: DgServer, params: InlineCompletionParams) -> InlineCompletionList | None:
    """Ghost text: at most one item for an automatic request, several if the user requested it."""
    snapshot = await ls.projects.snapshot(params.text_document.uri)
    if snapshot is None:
        return None
    gap = _gap(snapshot, params)
    invoked = ls.trigger_kinds.is_invoked(params.context.trigger_kind)
    remainders = await ls.suggester.suggest(gap, invoked=invoked, lane=INLINE)
    if not remainders:
        return None
    ls.acceptance.shown(snapshot.uri, snapshot.language, remainders)
    return InlineCompletionList(items=[_item(gap, each) for each in remainders])


def _gap(snapshot: Snapshot, params: InlineCompletionParams) -> CursorGap:
    cursor = offset_at(snapshot.lines, params.position, snapshot.encoding)
    info = params.context.selected_completion_info
    if info is None:
        return gap_at(snapshot, cursor)
    start, end = span_of(snapshot.lines, info.range, snapshot.encoding)
    return gap_at(snapshot, cursor, Replacement(start=start, end=end, text=info.text))


def _item(gap: CursorGap, remainder: Remainder) -> InlineCompletionItem:
    """The item's range is on one line, and its text begins with the text in the range before the cursor."""
    line_start = gap.lines.line_start(gap.cursor)
    begin, end = (
        (gap.selected.start, gap.selected.end) if gap.selected else (max(remainder.start, line_start), remainder.end)
    )
    text = with_line_feeds(gap.text[begin : gap.cursor] + remainder.text)
    return InlineCompletionItem(
        insert_text=text,
        filter_text=text,
        range=range_of(gap.snapshot.lines, begin, end, gap.snapshot.encoding),
        command=on_accepted(gap, remainder),
    )


def on_accepted(gap: CursorGap, remainder: Remainder) -> Command:
    """The command that the editor runs once it has inserted a suggestion."""
    arguments = [{"id": remainder.suggestion.id, "version": gap.snapshot.version}]
    return Command(title="Suggestion accepted", command=ACCEPTED, arguments=arguments)
