"""A preview of the first change in a long selection, before the text above it is checked.

The line that the instruction most likely means is found by its words. The model continues from a few lines above it, as
if it had written these; what it changes is shown and becomes a draft of the answer, which is still written from its
beginning.
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
"""Least tokens of a selection that gets a preview: shorter ones are soon checked."""
_ABOVE = 8
"""Lines above the likeliest one that the model continues from."""
_BELOW = 3
"""Lines after the likeliest one in which a change may begin."""
_MOST = 96
"""Most tokens that are written before the old text is met again."""
_NAMED, _DEFINED = 3.0, 2.0
"""Weight of a word that means code, relative to one that may be prose; and of a line that defines it, relative to one
that has it."""
_WRITTEN_OUT = 4
"""Least letters of a word that counts without a mark that it is code."""
_WORD = re.compile(r"[^\W_]\w*|_\w+")
_QUOTED = re.compile(r"`([^`]+)`|\"([^\"]+)\"|'([^']+)'")
_CODE = re.compile(r".*(\d|_|[a-z][A-Z])")
_DEFINES = re.compile(r"\b(?:def|class|fn|func|function|struct|enum|trait|interface|type)\s+(\w+)")


def likeliest_line(lines: Sequence[str], instruction: str) -> int | None:
    """The number of the line that an instruction most likely means, and the definition around it if named; None if no
    line has its words."""
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
    which ends the preview. Before a change that is the old text. Nothing for a short selection, and if only the first
    line is likely."""
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
