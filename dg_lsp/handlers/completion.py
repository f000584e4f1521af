"""`textDocument/completion` for clients without inline completion: the fill as one item, behind everybody else's."""

from __future__ import annotations

import re
from enum import Enum
from itertools import takewhile

from lsprotocol.types import (
    CompletionItem,
    CompletionItemKind,
    CompletionItemLabelDetails,
    CompletionList,
    InitializeParams,
    InsertTextFormat,
    InsertTextMode,
    TextEdit,
)

from dg_lsp.documents.gap import CursorGap, gap_at
from dg_lsp.documents.positions import offset_at, range_of
from dg_lsp.handlers.inline_completion import on_accepted
from dg_lsp.handlers.session import EditorSession
from dg_lsp.protocol.initialize import NAME
from dg_lsp.protocol.params import CompletionParams
from dg_lsp.suggest.insertion import is_name_character
from dg_lsp.suggest.suggester import MENU
from dg_lsp.suggest.suggestions import Remainder

LONGEST_LABEL = 60
_MEANT_IN_SNIPPETS = re.compile(r"[\\$}]")


class Taking(Enum):
    """What a client makes of an item that is taken."""

    AS_IT_IS = "Its text takes the place of its range."
    INDENTED = "The same, and each line but the first is indented as the cursor's is."
    AS_SNIPPET = "A snippet is put before what stands after the cursor, and indented so; of a text, one word or line."

    @property
    def mode(self) -> InsertTextMode:
        return InsertTextMode.AsIs if self is Taking.AS_IT_IS else InsertTextMode.AdjustIndentation


def taking(params: InitializeParams) -> Taking:
    """What the client that says this of itself makes of an item.

    Neovim's own completion takes no text whole. The plugins that do it for Neovim say how they indent.
    """
    document = params.capabilities.text_document
    item = document and document.completion and document.completion.completion_item
    modes = item and item.insert_text_mode_support and item.insert_text_mode_support.value_set
    if modes:
        return Taking.AS_IT_IS if InsertTextMode.AsIs in modes else Taking.INDENTED
    is_neovims = params.client_info is not None and params.client_info.name == "Neovim"
    return Taking.AS_SNIPPET if is_neovims and item and item.snippet_support else Taking.AS_IT_IS


async def completion(ls: EditorSession, params: CompletionParams, taking: Taking) -> CompletionList | None:
    """One item at most. It is last, never preselected, and asked for anew as the user types."""
    snapshot = await ls.projects.snapshot(params.text_document.uri)
    if snapshot is None:
        return None
    gap = gap_at(snapshot, offset_at(snapshot.lines, params.position, snapshot.encoding))
    remainders = await ls.suggester.suggest(gap, invoked=False, lane=MENU)
    items = [(each, item) for each in remainders if (item := _item(gap, each, taking))]
    if items:
        ls.acceptance.shown(snapshot.uri, snapshot.language, [each for each, _ in items])
    return CompletionList(is_incomplete=True, items=[item for _, item in items])


def _item(gap: CursorGap, remainder: Remainder, taking: Taking) -> CompletionItem | None:
    """None where the client would make something else of it."""
    remainder = remainder.up_to_cursor(gap.text) or remainder
    begun, is_snippet = _begun_name(gap), taking is Taking.AS_SNIPPET
    text = (begun + remainder.text).replace("\r\n", "\n")
    if taking is not Taking.AS_IT_IS:
        text = _without(_indentation(gap), text)
    if text == begun or (is_snippet and remainder.end > gap.cursor):
        return None
    return CompletionItem(
        # Neovim has it in the text until an item is taken.
        label=_first_line(text) if is_snippet else _label(text),
        label_details=CompletionItemLabelDetails(description=remainder.suggestion.origin or NAME),
        detail=remainder.suggestion.origin or f"Filled in by {NAME}",
        kind=CompletionItemKind.Text,
        sort_text="\uffff",
        filter_text=begun,
        preselect=False,
        insert_text_format=InsertTextFormat.Snippet if is_snippet else InsertTextFormat.PlainText,
        insert_text_mode=taking.mode,
        text_edit=TextEdit(
            range=range_of(gap.snapshot.lines, gap.cursor - len(begun), remainder.end, gap.snapshot.encoding),
            new_text=_MEANT_IN_SNIPPETS.sub(r"\\\g<0>", text) if is_snippet else text,
        ),
        command=on_accepted(gap, remainder),
    )


def _begun_name(gap: CursorGap) -> str:
    """What the editor compares items with: the name at the cursor as far as it is typed."""
    start = len(gap.head)
    while start and is_name_character(gap.head[start - 1]):
        start -= 1
    return gap.head[start:]


def _indentation(gap: CursorGap) -> str:
    line = gap.head + gap.tail
    return line[: len(line) - len(line.lstrip())]


def _without(indentation: str, text: str) -> str:
    """The text without what is put before each of its lines but the first, up to the first line that has it not. A
    blank line is none, unless it is the last."""
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
