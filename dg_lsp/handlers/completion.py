"""`textDocument/completion` for clients without inline completion: the suggestion is one item, sorted last."""

from __future__ import annotations

import re
from itertools import takewhile

from lsprotocol.types import (
    CompletionItem,
    CompletionItemKind,
    CompletionItemLabelDetails,
    CompletionList,
    InsertTextFormat,
    TextEdit,
)

from dg_lsp.documents.gap import CursorGap, gap_at
from dg_lsp.documents.positions import offset_at, range_of
from dg_lsp.handlers.inline_completion import on_accepted
from dg_lsp.handlers.menu import ItemInsertion
from dg_lsp.handlers.server import DgServer
from dg_lsp.protocol.initialize import NAME
from dg_lsp.protocol.params import CompletionParams
from dg_lsp.suggest.suggester import MENU
from dg_lsp.suggest.suggestions import Remainder
from engine.common.names import is_name_character
from engine.common.newlines import with_line_feeds

LONGEST_LABEL = 60
_MEANT_IN_SNIPPETS = re.compile(r"[\\$}]")


async def completion(ls: DgServer, params: CompletionParams) -> CompletionList | None:
    """One item at most: sorted last, never preselected, and requested again as the user types. None where suggestions
    do not go into the menu."""
    snapshot = ls.documents.get(params.text_document.uri)
    if snapshot is None or not ls.menu.wanted(snapshot.policy.settings):
        return None
    snapshot = await ls.projects.snapshot(params.text_document.uri)
    if snapshot is None:
        return None
    gap = gap_at(snapshot, offset_at(snapshot.lines, params.position, snapshot.encoding))
    remainders = await ls.suggester.suggest(gap, invoked=False, lane=MENU)
    items = [(each, item) for each in remainders if (item := _item(gap, each, ls.menu.insertion))]
    if items:
        ls.acceptance.shown(snapshot.uri, snapshot.language, [each for each, _ in items])
    return CompletionList(is_incomplete=True, items=[item for _, item in items])


def _item(gap: CursorGap, remainder: Remainder, insertion: ItemInsertion) -> CompletionItem | None:
    """None where the client would insert it wrongly."""
    remainder = remainder.up_to_cursor(gap.text) or remainder
    begun, is_snippet = _begun_name(gap), insertion is ItemInsertion.SNIPPET
    text = with_line_feeds(begun + remainder.text)
    if insertion is not ItemInsertion.PLAIN:
        text = _without(_indentation(gap), text)
    if text == begun or (is_snippet and remainder.end > gap.cursor):
        return None
    return CompletionItem(
        # Neovim shows it in the text until an item is accepted.
        label=_first_line(text) if is_snippet else _label(text),
        label_details=CompletionItemLabelDetails(description=remainder.suggestion.origin or NAME),
        detail=remainder.suggestion.origin or f"Filled in by {NAME}",
        kind=CompletionItemKind.Text,
        sort_text="\uffff",
        filter_text=begun,
        preselect=False,
        insert_text_format=InsertTextFormat.Snippet if is_snippet else InsertTextFormat.PlainText,
        insert_text_mode=insertion.mode,
        text_edit=TextEdit(
            range=range_of(gap.snapshot.lines, gap.cursor - len(begun), remainder.end, gap.snapshot.encoding),
            new_text=_MEANT_IN_SNIPPETS.sub(r"\\\g<0>", text) if is_snippet else text,
        ),
        command=on_accepted(gap, remainder),
    )


def _begun_name(gap: CursorGap) -> str:
    """The name at the cursor as far as it is typed; the editor filters items by it."""
    start = len(gap.head)
    while start and is_name_character(gap.head[start - 1]):
        start -= 1
    return gap.head[start:]


def _indentation(gap: CursorGap) -> str:
    line = gap.head + gap.tail
    return line[: len(line) - len(line.lstrip())]


def _without(indentation: str, text: str) -> str:
    """The text without the indent that the client adds to each line after the first, cut before the first line that
    lacks it. Blank lines need none, except the last."""
    first, *rest = text.split("\n")
    kept = list(takewhile(lambda line: line.startswith(indentation) or not line.strip(), rest))
    while kept and not kept[-1].startswith(indentation):
        kept.pop()
    return "\n".join([first, *(line.removeprefix(indentation) for line in kept)])


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _label(text: str) -> str:
    line = _first_line(text)
    more = len(line) > LONGEST_LABEL or len(text.strip().splitlines()) > 1
    return line[:LONGEST_LABEL] + ("…" if more else "")
