"""Draws contexts as serving lays them out for a coder, each with several gaps that share its prefill.

The suffix comes first in a context, the prefix last. So gaps that end at the same place share the prefill: each attends
to the prefix up to its own beginning, as if the user had typed on from one gap to the next.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.lab.eval.holes import Hole, Kind, holes
from engine.learn.examples import CHARACTERS, related_parts
from engine.learn.packed import PackedCorpus
from engine.learn.pairs.recipe import PairsRecipe
from engine.models.causal.opening import FimTokens
from engine.models.causal.prompt import FIXED, context_ids

LONGEST_GAP = 48
"""Most tokens of a gap; a canvas that is narrower holds the first of them."""
_SUFFIX, _SNIPPET = 0.4, 0.35
"""Largest shares of a context."""
_SHORTEST = 8
"""Least tokens of a prefix or a suffix."""
_BEGINNING = 0.15
"""Share of contexts whose last gap is the whole hole."""
_ANYWHERE = 0.3
"""Share of the others whose last gap may begin in the middle of a word, as a cursor may stand there."""
_ABOVE = 0.15
"""Share of a context's gaps that may begin before its hole."""
_OFTEN: dict[Kind, int] = {
    "rest_of_line": 5,
    "line": 5,
    "lines": 1,
    "whole_lines": 3,
    "block": 1,
    "arguments": 2,
    "span": 1,
}
_KINDS: tuple[Kind, ...] = tuple(kind for kind, times in _OFTEN.items() for _ in range(times))
"""Kinds of holes; one is drawn as often as it stands here."""
_WORD = re.compile(r"\w+|\W")


@dataclass(frozen=True, slots=True, kw_only=True)
class NestedGap:
    """One gap of a context."""

    cut: int
    """Tokens of the context before it."""
    ids: list[int]
    """Tokens of its text, at most LONGEST_GAP."""
    to_line_end: bool
    """Whether it is in one line and ends with that line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NestedGaps:
    """A context, and gaps that all end at its suffix."""

    context: list[int]
    suffix: list[int]
    """Tokens after each of the gaps."""
    gaps: list[NestedGap]


class Readings:
    """Draws contexts from a corpus that is packed with the coder's tokenizer."""

    def __init__(self, corpus: PackedCorpus, fim: FimTokens, recipe: PairsRecipe, rng: random.Random) -> None:
        self._corpus, self._fim, self._recipe, self._rng = corpus, fim, recipe, rng

    def draw(self, gaps: int, width: int) -> NestedGaps | None:
        """A context with up to `gaps` gaps for canvases of `width` slots; None: the draw found no hole."""
        rng, size = self._rng, self._recipe.context
        if rng.random() < self._recipe.shorter:
            size = rng.randint(size // 8, size)
        document = self._corpus.choose(rng)
        text, hole = self._hole(document, size)
        if hole is None:
            return None
        snippets = self._snippets(document, text, int(size * _SNIPPET))
        room = size - FIXED - sum(1 + len(each) for each in snippets) - bool(snippets)
        share = rng.randint(_SHORTEST, max(_SHORTEST, int(room * _SUFFIX)))
        suffix = self._encode(text[hole.end : hole.end + share * CHARACTERS])[:share]
        cut = self._cut(text, hole, gaps)
        prefix, starts = self._prefix(text, cut, room - len(suffix))
        if len(prefix) < _SHORTEST:
            return None
        context = context_ids(self._fim, suffix, prefix, snippets)
        ahead = len(context) - len(prefix)
        to_line_end = text.startswith("\n", hole.end)
        begins = self._begins(starts, hole.start, gaps, 2 * width)
        encoded = self._corpus.tokenizer.encode_batch(
            [text[start : hole.end] for _, start in begins], add_special_tokens=False
        )
        found = [
            NestedGap(cut=ahead + at, ids=each.ids, to_line_end=to_line_end and "\n" not in text[start : hole.end])
            for (at, start), each in zip(begins, encoded, strict=True)
            if len(each.ids) <= LONGEST_GAP
        ]
        return NestedGaps(context=context, suffix=suffix, gaps=found) if found else None

    def _hole(self, document: int, size: int) -> tuple[str, Hole | None]:
        """A part of a document, and the hole at whose end gaps end; None: the draw found none."""
        whole = self._corpus.text(document)
        characters = 2 * size * CHARACTERS
        start = self._rng.randrange(max(1, len(whole) - characters // 4))
        start = whole.find("\n", start) + 1 if start else 0
        text = whole[start : start + characters]
        drawn = holes(text, self._corpus.language(document), self._rng, _KINDS, 1, LONGEST_GAP * CHARACTERS)
        return text, drawn[0] if drawn else None

    def _prefix(self, text: str, cut: int, room: int) -> tuple[list[int], list[int]]:
        """The last tokens before `cut`; and where in the text each of them begins, then `cut`."""
        start = max(0, cut - room * CHARACTERS)
        encoding = self._corpus.tokenizer.encode(text[start:cut], add_special_tokens=False)
        ids, begins = encoding.ids[-room:], encoding.offsets[-room:]
        return ids, [*(start + begin for begin, _ in begins), cut]

    def _cut(self, text: str, hole: Hole, gaps: int) -> int:
        """Where the last of `gaps` gaps begins."""
        if self._rng.random() < _BEGINNING:
            return hole.start
        if self._rng.random() < _ANYWHERE:
            return self._rng.randrange(hole.start, hole.end)
        words = [word.start() for word in _WORD.finditer(text, hole.start, hole.end)]
        # The later it begins, the more gaps of the same hole begin before it.
        return (max if gaps > 1 else min)(self._rng.choice(words), self._rng.choice(words))

    def _begins(self, starts: Sequence[int], hole: int, count: int, reach: int) -> list[tuple[int, int]]:
        """Where gaps begin, each in tokens of the prefix and in characters of the text: at the last of `starts`, and at
        others up to `reach` tokens before it, in the hole or above it."""
        last = len(starts) - 1
        first = max(_SHORTEST, last - min(reach, LONGEST_GAP))
        # No gap begins inside a character of several tokens.
        there = [at for at in range(first, last) if starts[at - 1] < starts[at] < starts[at + 1]]
        inside, above = [at for at in there if starts[at] >= hole], [at for at in there if starts[at] < hole]
        far = self._rng.sample(above, min(len(above), round(_ABOVE * count)))
        near = self._rng.sample(inside, min(len(inside), count - 1 - len(far)))
        return [(at, starts[at]) for at in sorted((*near, *far, last))]

    def _snippets(self, document: int, text: str, room: int) -> list[list[int]]:
        if room < _SHORTEST or self._rng.random() >= self._recipe.snippets:
            return []
        parts = related_parts(self._corpus, document, text, room * CHARACTERS, self._rng)
        return [self._encode(parts[0][0])[:room]] if parts else []

    def _encode(self, text: str) -> list[int]:
        return self._corpus.tokenizer.encode(text, add_special_tokens=False).ids
