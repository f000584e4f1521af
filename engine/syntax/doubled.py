"""Text that stands after the gap already, at the end of a fill: the fill must not say it again."""

from __future__ import annotations

from engine.syntax.brackets import Brackets
from engine.syntax.extent import ends_behind
from engine.syntax.lexing import lexemes

_TELLING = 3
"""Characters, one a letter or digit, that a repeated line needs to be no coincidence."""


def undoubled(brackets: Brackets, fill: str) -> str:
    """The fill without what it doubles: brackets and quotes that are closed after the gap (an editor may have closed
    them), the rest of the line, or whole lines that follow."""
    fill = fill[: _repeated_text(fill, brackets.after)]
    fill = fill[: _repeated_quote(brackets, fill)]
    return fill[: _repeated_closers(brackets, fill)]


def _repeated_text(fill: str, after: str) -> int:
    """Where the end of the fill begins that the text after the gap begins with, if that is a line or more."""
    first_line_end = _line_end(after)
    for size in range(min(len(fill), len(after)), 0, -1):
        if fill.endswith(after[:size]):
            repeated = after[:size]
            telling = len("".join(repeated.split())) >= _TELLING and any(letter.isalnum() for letter in repeated)
            return len(fill) - size if telling and size >= first_line_end else len(fill)
    return len(fill)


def _line_end(text: str) -> int:
    """Where the first line that is not blank ends."""
    blank = len(text) - len(text.lstrip())
    ends = [end for end in (text.find("\n", blank), text.find("\r", blank)) if end >= 0]
    return min(ends, default=len(text))


def _repeated_quote(brackets: Brackets, fill: str) -> int:
    """Where the fill ends the string around the gap although the text after the gap does."""
    pending = brackets.at_gap.pending
    if not pending or not pending.closer.strip():
        return len(fill)
    if not ends_behind(pending, brackets):
        return len(fill)
    inside = next(lexemes(brackets.head + fill, brackets.language))
    if not inside.ended:
        return len(fill)
    end = inside.end - len(brackets.head) - len(pending.closer)
    again = fill[end:]
    return end if brackets.after.startswith(again) or not _balanced(brackets, fill) else len(fill)


def _balanced(brackets: Brackets, fill: str) -> bool:
    """Whether every string ends in the line in which the gap's line ends."""
    line = fill + brackets.after[: _line_end(brackets.after)]
    return all(lexeme.ended or lexeme.kind == "comment" for lexeme in lexemes(brackets.head + line, brackets.language))


def _repeated_closers(brackets: Brackets, fill: str) -> int:
    excess = brackets.excess(fill)
    if excess is None:
        return len(fill)
    head = fill[:excess]
    blank = len(brackets.after) - len(brackets.after.lstrip())
    return len(head.rstrip()) if blank and head != head.rstrip() else excess
