"""Alternatives to a broken line. Near the error, holes of one or two tokens are noise; everything else is pinned.

One forward pass over all holes proposes tokens for each, a parser keeps what parses, and the causal encoder ranks the
rest.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from engine.fill.executor import Step
from engine.fill.gap import Gap, Slot
from engine.fill.tokens import OldTokens
from engine.models.logits import Logits

_NEAR = 10
"""Tokens on either side of a spot that a hole may lie at."""
_ROWS = 16
"""Holes in one forward pass."""
_MOST = 48
"""Holes in all."""
_CHOICES = 8
"""Likeliest tokens that are tried in a hole of one token; fewer in one of two."""
_PAIR_CHOICES = 3
_DELETION = -2.0
"""Log-probability of removing tokens. The model is not run for it."""
_PUNCTUATION = "()[]{}:;,.'\"`="


@dataclass(frozen=True, slots=True)
class TokenEdit:
    """Replaces `removed` tokens from the index `at` on by `width` new ones."""

    at: int
    removed: int
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A text for the line, and how likely the canvas found what is new in it (log-probability)."""

    text: str
    likely: float


def alternatives(gap: Gap, tokens: OldTokens, spots: Sequence[int]) -> Generator[Step, Logits, list[Alternative]]:
    """Texts that the line could have instead, likeliest first; `spots` are offsets into the line."""
    near = list(islice(_near(tokens, spots), _MOST))
    found = [*_without(gap, tokens)]
    for start in range(0, len(near), _ROWS):
        batch = near[start : start + _ROWS]
        if gap.should_stop():
            break
        found += yield from _denoised(gap, tokens, batch)
    best: dict[str, Alternative] = {}
    for each in sorted(found, key=lambda each: -each.likely):
        best.setdefault(each.text, each)
    best.pop(_said(gap, tokens.ids), None)
    return list(best.values())


def _near(tokens: OldTokens, spots: Sequence[int]) -> Iterator[TokenEdit]:
    """Holes in the order of their distance to the spots: between tokens, in place of one, in place of two."""
    count = len(tokens.ids)
    free = next((at for at, stays in enumerate(tokens.kept) if not stays), count)
    places = [min(abs(bound - spot) for spot in spots) for bound in tokens.bounds]
    centre = sorted(range(count + 1), key=lambda at: places[at])[: 2 * _NEAR]
    for at in centre:
        if at < free:
            continue
        yield TokenEdit(at, 0, 1)
        if at < count:
            yield TokenEdit(at, 1, 1)
        if at + 1 < count:
            yield TokenEdit(at, 2, 2)


def _without(gap: Gap, tokens: OldTokens) -> Iterator[Alternative]:
    """The line without a token, or without a sign inside one."""
    text = _said(gap, tokens.ids)
    for at, (start, end) in enumerate(zip(tokens.bounds, tokens.bounds[1:], strict=False)):
        if not tokens.kept[at] and end > start:
            # Of two spaces that a word leaves, one goes with it.
            end += text[:start].endswith(" ") and text[start:end].strip() != "" and text[end : end + 1] == " "
            yield Alternative(text=text[:start] + text[end:], likely=_DELETION)
    for at, letter in enumerate(text):
        if letter in _PUNCTUATION:
            yield Alternative(text=text[:at] + text[at + 1 :], likely=_DELETION)


def _denoised(gap: Gap, tokens: OldTokens, holes: Sequence[TokenEdit]) -> Generator[Step, Logits, list[Alternative]]:
    """One step over a canvas a hole; the distributions are read, nothing is drawn."""
    canvas = gap.canvas(
        [[*tokens.ids[: hole.at], *[None] * hole.width, *tokens.ids[hole.at + hole.removed :]] for hole in holes]
    )
    widths = [len(tokens.ids) - hole.removed + hole.width for hole in holes]
    slack = gap.model.info.length == "slack"
    slots = iter((yield from gap.likeliest(canvas, widths=widths, slack=slack, count=_CHOICES)))
    return [each for hole in holes for each in _read(gap, tokens, hole, list(islice(slots, hole.width)))]


def _read(gap: Gap, tokens: OldTokens, hole: TokenEdit, likely: Sequence[Slot]) -> Iterator[Alternative]:
    """The likeliest fillings of a hole."""
    before, after = tokens.ids[: hole.at], tokens.ids[hole.at + hole.removed :]
    choices = _CHOICES if hole.width == 1 else _PAIR_CHOICES
    fillings: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    for slot in likely:
        fillings = [((*ids, token), sum_ + value) for ids, sum_ in fillings for token, value in slot[:choices]]
    for ids, total in fillings:
        yield Alternative(text=_said(gap, (*before, *ids, *after)), likely=total / hole.width)


def _said(gap: Gap, ids: Sequence[int]) -> str:
    return gap.model.detokenize(gap.real(ids)).removeprefix(gap.prompt.head)
