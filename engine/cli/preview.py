"""Prints a filled gap: the lines around it, the fill highlighted, and figures."""

from __future__ import annotations

from rich.text import Text

from engine.common.line_ends import LINE_END
from engine.common.marked import MARKER, MarkedText
from engine.common.request import Candidate, Filled
from engine.common.terminal import DIRECTIONS
from engine.common.wording import counted, joined

_AROUND = 3
"""Lines shown before and after the fill."""
_LINE_CHARS = 300
"""A longer line (as in a minified file) is cut on the side away from the gap."""
# Text from a file or a model must not control the terminal.
_VISIBLE = (
    {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"}
    | {0x7F: 0x2421}
    # To a terminal, each of these equals an escape and a letter.
    | dict.fromkeys(range(0x80, 0xA0), "␛")
    | DIRECTIONS
)
_FILLED = "bold green"
_DIM = "dim"


def visible(text: str) -> str:
    """Control characters except tab and newline as their pictures, direction marks as escapes."""
    return text.translate(_VISIBLE)


def preview(gap: MarkedText, filled: str, *, marked: bool) -> Text:
    """The lines around the gap with the fill in place. `marked`: between markers, where there are no colours."""
    before, after = LINE_END.split(gap.prefix), LINE_END.split(gap.suffix)
    head = [*map(_cut_tail, before[-_AROUND - 1 : -1]), _cut_head(before[-1])]
    tail = list(map(_cut_tail, after[: _AROUND + 1]))
    middle = LINE_END.sub("\n", filled)
    border = MARKER if marked else ""
    text = Text(visible("\n".join(head)))
    text.append(visible(f"{border}{middle}{border}"), _FILLED)
    text.append(visible("\n".join(tail)))
    touched = range(len(head) - 1, len(head) + middle.count("\n"))
    return _numbered(text, len(before) - len(head) + 1, touched)


def heading(candidate: Candidate, index: int, count: int) -> Text:
    """A heading for each of several candidates."""
    return Text(f"{index + 1} of {count} · confidence {candidate.confidence:.2g} · score {candidate.score:.2f}", _DIM)


def figures(filled: Filled, source: str = "", why: str = "") -> Text:
    """A few lines: what filled the gap, with confidence and times. `why`: why there is no answer."""
    best = filled.candidates[0] if filled.candidates else None
    answer = (
        [f"{counted(best.tokens, 'token')} in a gap of {filled.width}", f"confidence {best.confidence:.2g}"]
        if best
        else [f"no answer{why and f': {why}'}"]
    )
    ms = filled.ms
    parts = [
        f"{filled.model} with the adapter for {filled.adapter}" if filled.adapter else filled.model,
        " ".join(filter(None, (filled.device, source))),
        *answer,
        f"{counted(filled.steps, 'step')}, {counted(filled.forwards, 'forward pass', 'forward passes')}",
        f"load {ms.load:.0f} + encode {ms.encode:.0f} + denoise {ms.denoise:.0f} = {ms.total:.0f} ms",
    ]
    return Text(joined([visible(each) for each in parts], " · "), _DIM)


def _numbered(text: Text, first: int, touched: range) -> Text:
    lines = text.split("\n", allow_blank=True)
    width = len(str(first + len(lines)))
    numbered = Text()
    for index, line in enumerate(lines):
        sign, style = ("▌", _FILLED) if index in touched else (" ", _DIM)
        numbered.append(f"{first + index:>{width}} {sign} ", style)
        numbered.append_text(line).append("\n")
    numbered.right_crop()
    return numbered


def _cut_tail(line: str) -> str:
    return line if len(line) <= _LINE_CHARS else line[:_LINE_CHARS] + "…"


def _cut_head(line: str) -> str:
    return line if len(line) <= _LINE_CHARS else "…" + line[-_LINE_CHARS:]
