"""Drafts of a gap's next tokens: from repetition in the file, from other answers, from canvases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from engine.common.sequences import overlaps
from engine.fill.draft_tree import Following, either
from engine.fill.next_line import NO_LINE, NextLine
from engine.fill.ngrams import DISCOUNT, NGrams

OF_TEXT, OF_SUFFIX, OF_BEGUN_SUFFIX = 0.75, 0.02, 0.9
"""Probability of the next token of another answer, of the suffix's first token, and of the next token of a suffix that
has begun."""
OF_NEXT_LINE = (0.6, 0.55, 0.9)
"""Probability of the next line's first token where a line of the gap has ended, of its second one, of each further one.
Measured on the output of a 0.5 B coder in 75 development gaps."""
GUESSES, OF_GUESS = 3, 0.8
"""Number of tokens that a canvas names for each place, and the factor on their confidence."""
_AHEAD = 8
"""Tokens of the suffix that are drafted."""
_BETWEEN = -1
"""Separates texts that do not follow each other."""


class DraftSources:
    """Drafts of a gap's tokens. Deterministic; the model is not run."""

    def __init__(
        self,
        context: Sequence[int],
        suffix: Sequence[int] = (),
        texts: Sequence[Sequence[int]] = (),
        *,
        next_line: NextLine = NO_LINE,
        stops: frozenset[int] = frozenset(),
        pad: int = _BETWEEN,
    ) -> None:
        """`context`: the file and others; `texts`: other answers with the suffix, as tokens of the gap;
        `next_line`: the line at which the gap ends, instead of the suffix; `stops`: control tokens, which are never
        drafted; `pad`: the token of canvases after the gap's end."""
        self._suffix = list(suffix[:_AHEAD])
        self._texts = [list(text) for text in texts if text]
        self._next_line, self._stops, self._pad = next_line, stops, pad
        self._guesses: dict[int, Mapping[int, float]] = {}
        self._before = list(context[-len(DISCOUNT) :])
        answers = (token for text in self._texts for token in (*self._before, *text, _BETWEEN))
        self._seen = NGrams([*answers, *context])
        self._said: list[int] = []

    def after(self, said: Sequence[int]) -> Following:
        """The probability of each drafted token after the tokens written so far."""
        said = list(said)
        if said[: len(self._said)] == self._said:
            self._seen.add(said[len(self._said) :])
        else:
            self._guesses.clear()
            self._seen.add([_BETWEEN, *self._before, *said])
        self._said = said
        return partial(self._following, said)

    def guess(self, place: int, likely: Mapping[int, float]) -> None:
        """Add a canvas's prediction for a place of the gap, counted in tokens."""
        self._guesses[place] = likely

    def _following(self, said: Sequence[int], path: Sequence[int]) -> Mapping[int, float]:
        written = [*said, *path]
        size = len(written)
        found = self._seen.following([*self._before, *written][-len(DISCOUNT) :])
        more = [(text[size], OF_TEXT) for text in self._texts if size < len(text) and text[:size] == written]
        if line := self._next_line.ids:
            if (begun := self._next_line.begun(written)) == len(line):
                return {}  # the gap has ended
            if begun is not None:
                more.append((line[begun], OF_NEXT_LINE[min(begun, len(OF_NEXT_LINE) - 1)]))
        elif self._suffix:
            begun = next(overlaps(written, self._suffix[:-1]), 0)
            more.append((self._suffix[begun], OF_BEGUN_SUFFIX if begun else OF_SUFFIX))
        for token, likely in self._guesses.get(size, {}).items():
            if token != self._pad:
                more.append((token, OF_GUESS * likely))
            elif self._suffix:
                more.append((self._suffix[0], OF_GUESS * likely))
        return {token: likely for token, likely in either(found, more).items() if token not in self._stops}
