"""`textDocument/completion` for clients without inline completion: the fill as one item, behind everybody else's."""

from __future__ import annotations

from lsprotocol.types import (
    CompletionItem,
    CompletionItemKind,
    CompletionItemLabelDetails,
    CompletionList,
    CompletionParams,
    InsertTextFormat,
    InsertTextMode,
    TextEdit,
)

from dg_lsp.documents.gap import CursorGap, gap_at
from dg_lsp.documents.positions import offset_at, range_of
from dg_lsp.handlers.inline_completion import on_accepted
from dg_lsp.handlers.session import EditorSession
from dg_lsp.protocol.initialize import NAME
from dg_lsp.suggest.insertion import is_name_character
from dg_lsp.suggest.suggester import MENU
from dg_lsp.suggest.suggestions import Remainder

LONGEST_LABEL = 60


async def completion(ls: EditorSession, params: CompletionParams) -> CompletionList | None:
    """One item at most. It is last, never preselected, and asked for anew as the user types."""
    snapshot = await ls.projects.snapshot(params.text_document.uri)
    if snapshot is None:
        return None
    gap = gap_at(snapshot, offset_at(snapshot.lines, params.position, snapshot.encoding))
    remainders = await ls.suggester.suggest(gap, invoked=False, lane=MENU)
    if remainders:
        ls.acceptance.shown(snapshot.uri, snapshot.language, remainders)
    mode = _indentation_of(ls)
    return CompletionList(is_incomplete=True, items=[_item(gap, each, mode) for each in remainders])


def _indentation_of(ls: EditorSession) -> InsertTextMode:
    """What the editor makes of the lines of an item behind its first one."""
    document = ls.client_capabilities.text_document
    item = document and document.completion and document.completion.completion_item
    modes = item and item.insert_text_mode_support and item.insert_text_mode_support.value_set
    return InsertTextMode.AdjustIndentation if modes and InsertTextMode.AsIs not in modes else InsertTextMode.AsIs


def _item(gap: CursorGap, remainder: Remainder, mode: InsertTextMode) -> CompletionItem:
    begun = _begun_name(gap)
    text = (begun + remainder.text).replace("\r\n", "\n")
    if mode == InsertTextMode.AdjustIndentation:
        # The line's own is put before each.
        text = text.replace(f"\n{gap.head[: len(gap.head) - len(gap.head.lstrip())]}", "\n")
    return CompletionItem(
        label=_label(text),
        label_details=CompletionItemLabelDetails(description=remainder.suggestion.origin or NAME),
        detail=remainder.suggestion.origin or f"Filled in by {NAME}",
        kind=CompletionItemKind.Snippet if "\n" in text else CompletionItemKind.Text,
        sort_text="\uffff",
        filter_text=begun,
        preselect=False,
        insert_text_format=InsertTextFormat.PlainText,
        insert_text_mode=mode,
        text_edit=TextEdit(
            range=range_of(gap.snapshot.lines, gap.cursor - len(begun), remainder.end, gap.snapshot.encoding),
            new_text=text,
        ),
        command=on_accepted(gap, remainder),
    )


def _begun_name(gap: CursorGap) -> str:
    """What the editor compares items with: the name at the cursor as far as it is typed."""
    start = len(gap.head)
    while start and is_name_character(gap.head[start - 1]):
        start -= 1
    return gap.head[start:]


def _label(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    more = len(line) > LONGEST_LABEL or len(text.strip().splitlines()) > 1
    return line[:LONGEST_LABEL] + ("…" if more else "")
