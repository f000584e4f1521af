"""Gaps in held-out programs of the toy language, each with one right answer."""

from __future__ import annotations

import random
from dataclasses import dataclass

from engine.common.request import FillRequest
from engine.fill.executor import drive
from engine.fill.loading import Infiller
from engine.fill.pipeline import Parts, infill
from tests.engine.toys.language import toy_program

LINES_BEFORE, LINES_BEHIND = 3, 6
"""So many whole lines stand around a gap, at least."""
LINE = 6
"""Tokens"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToyGap:
    prefix: str
    answer: str
    suffix: str


def toy_gaps(infiller: Infiller, count: int, seed: int, shortest: int = 1, longest: int = 40) -> list[ToyGap]:
    """Gaps of `shortest` to `longest` tokens between words and signs, lengths evenly mixed."""
    rng = random.Random(f"{seed}/gaps")
    return [_gap(infiller, rng, rng.randint(shortest, longest)) for _ in range(count)]


def exact_share(infiller: Infiller, gaps: list[ToyGap], *, widths_known: bool = False) -> float:
    """Share of gaps that are filled with the very answer."""
    right = 0
    for gap in gaps:
        width = len(infiller.model.tokenize(gap.answer)) if widths_known else None
        request = FillRequest(prefix=gap.prefix, suffix=gap.suffix, language="python", width=width, max_tokens=48)
        # Nothing is cut: an editor's answer ends with its statement, these gaps end anywhere.
        filled = drive(infiller.model, infill(infiller.model, request, parts=Parts(repair=False)))
        right += bool(filled.candidates) and filled.candidates[0].text == gap.answer
    return right / len(gaps)


def _gap(infiller: Infiller, rng: random.Random, tokens: int) -> ToyGap:
    lines = toy_program(rng, "held-out").splitlines(keepends=True)
    touched = -(-tokens // LINE) + 1
    before = "".join(lines[: rng.randint(LINES_BEFORE, len(lines) - LINES_BEHIND - touched)])
    rest = infiller.model.tokenize("".join(lines)[len(before) :])
    start = rng.randrange(LINE)
    texts = [infiller.model.detokenize(part) for part in (rest[:start], rest[start : start + tokens])]
    return ToyGap(
        prefix=before + texts[0], answer=texts[1], suffix="".join(lines)[len(before) + len(texts[0]) + len(texts[1]) :]
    )
