"""What a long selection changes first, before all that stands above it is checked.

The line that the instruction most likely speaks of is found by its words. The model goes on from a few lines above it,
as if it had said these; what it then says otherwise is shown, and is the draft of the answer, which is written from its
beginning all the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Sequence

from engine.fill.greedy import Said
from engine.fill.rewriting.answer import write_answer
from engine.fill.rewriting.old_text import OldText
from engine.fill.rewriting.surroundings import block_lines
from engine.models.base import Model

FROM = 400
"""Tokens of a selection from which on it is worth its time: less is soon checked."""
_ABOVE = 8
"""Lines that the model goes on from."""
_BELOW = 3
"""Lines after the likeliest one in which a change may begin."""
_MOST = 96
"""Tokens that are written at the most, before those of the old text are met again."""
_NAMED, _DEFINED = 3.0, 2.0
"""What a word that means code weighs, beside one that may be prose; and a line that defines it, beside one with it."""
_WRITTEN_OUT = 4
"""Letters of a word that says something, where nothing marks it as code."""
_WORD = re.compile(r"[^\W_]\w*|_\w+")
_QUOTED = re.compile(r"`([^`]+)`|\"([^\"]+)\"|'([^']+)'")
_CODE = re.compile(r".*(\d|_|[a-z][A-Z])")
_DEFINES = re.compile(r"\b(?:def|class|fn|func|function|struct|enum|trait|interface|type)\s+(\w+)")


def likeliest_line(lines: Sequence[str], instruction: str) -> int | None:
    """Which of some lines an instruction most likely speaks of, and in what it defines by name; None where it has none
    of their words."""
    quoted = {word for parts in _QUOTED.findall(instruction) for part in parts for word in _WORD.findall(part)}
    words = _WORD.findall(instruction)
    told = {word: _NAMED for word in words if word in quoted or _CODE.match(word)}
    told = {word: 1.0 for word in words if len(word) >= _WRITTEN_OUT} | told
    held = [set(_WORD.findall(line)) & told.keys() for line in lines]
    defined = [found[1] if (found := _DEFINES.search(line)) else "" for line in lines]

    def likeliest(places: range) -> int | None:
        counts = Counter(word for at in places for word in held[at])
        weights = {
            at: sum(told[word] / counts[word] for word in held[at]) * (_DEFINED if defined[at] in told else 1.0)
            for at in places
        }
        best = max(weights, key=weights.__getitem__, default=None)
        return None if best is None or not weights[best] else best

    best = likeliest(range(len(lines)))
    if best is None or defined[best] not in told:
        return best
    del told[defined[best]]
    held = [words & told.keys() for words in held]
    inside = likeliest(range(best + 1, best + block_lines(lines[best:])))
    return best if inside is None else inside


def previewed(
    model: Model, context: Sequence[int], old: str, closing: str, instruction: str
) -> Generator[tuple[str, bool]]:
    """Yields after each pass the selection as it may become, and whether the old text was met again after a change,
    which ends it; the old text until a change is seen. Nothing for a short selection, and where no line is likely but
    the first."""
    lines = old.split("\n")
    at = likeliest_line(lines, instruction)
    if not at or len(model.tokenize(old)) < FROM:
        return
    first = at - _ABOVE if at > 2 * _ABOVE else 0
    above = "".join(f"{line}\n" for line in lines[:first])
    begun = model.tokenize("".join(f"{line}\n" for line in lines[first:at]))
    rest = model.tokenize("\n".join(lines[at:]) + closing)
    most = len(begun) + len(model.tokenize("\n".join(lines[at : at + _BELOW])))
    said, draft = Said(ids=begun), OldText([*begun, *rest])
    changed = False

    def is_done(said: Said) -> bool:
        return len(said.ids) >= most + (_MOST if changed else 0)

    for _ in write_answer(model, context, said, draft, is_done):
        written = model.detokenize(said.ids)
        changed = changed or not (old + closing)[len(above) :].startswith(written)
        left = model.detokenize(draft.left).partition(closing)[0]
        met = changed and draft.together
        if not draft.together:
            # How much of its line is replaced is not known yet.
            left = left[max(left.find("\n"), 0) :]
        yield (above + written + left if changed else old), met
        if met or closing in written:
            return
