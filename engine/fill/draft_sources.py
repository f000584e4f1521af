"""Drafts of a gap's next tokens: from repetition in the file, from other answers, from canvases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from engine.fill.draft_tree import Following, either
from engine.fill.ngrams import DISCOUNT, NGrams

OF_TEXT, OF_SUFFIX, OF_BEGUN_SUFFIX = 0.75, 0.02, 0.9
"""How likely the next token is that of an answer that somebody else has, the first of what follows the gap, and the
next of that where it has begun."""
GUESSES, OF_GUESS = 3, 0.8
"""Tokens that a canvas names of a place, and how far it is right to be as sure as it is."""
_AHEAD = 8
"""Tokens of what follows the gap."""
_BETWEEN = -1
"""Stands between texts that do not follow each other."""


class DraftSources:
    """Drafts of a gap's tokens. Deterministic; knows nothing of the model but its tokens."""

    def __init__(
        self,
        context: Sequence[int],
        suffix: Sequence[int] = (),
        texts: Sequence[Sequence[int]] = (),
        *,
        stops: frozenset[int] = frozenset(),
        pad: int = _BETWEEN,
    ) -> None:
        """`context`: what stands in the file, and in others; `texts`: answers of others and what follows the gap, in
        tokens of the gap; `stops`: tokens that are no text, which never come; `pad`: what canvases say after the gap's
        end."""
        self._suffix = list(suffix[:_AHEAD])
        self._texts = [list(text) for text in texts if text]
        self._stops, self._pad = stops, pad
        self._guesses: dict[int, Mapping[int, float]] = {}
        self._before = list(context[-len(DISCOUNT) :])
        answers = (token for text in self._texts for token in (*self._before, *text, _BETWEEN))
        self._seen = NGrams([*answers, *context])
        self._said: list[int] = []

    def after(self, said: Sequence[int]) -> Following:
        """What may follow the tokens that the model has said so far."""
        said = list(said)
        if said[: len(self._said)] == self._said:
            self._seen.add(said[len(self._said) :])
        else:
            self._guesses.clear()
            self._seen.add([_BETWEEN, *self._before, *said])
        self._said = said
        return partial(self._following, said)

    def guess(self, place: int, likely: Mapping[int, float]) -> None:
        """Add what a canvas says of a place of the gap, counted in tokens."""
        self._guesses[place] = likely

    def _following(self, said: Sequence[int], path: Sequence[int]) -> Mapping[int, float]:
        written = [*said, *path]
        size = len(written)
        found = self._seen.following([*self._before, *written][-len(DISCOUNT) :])
        more = [(text[size], OF_TEXT) for text in self._texts if size < len(text) and text[:size] == written]
        if self._suffix:
            begun = self._suffix_begun(written)
            more.append((self._suffix[begun], OF_BEGUN_SUFFIX if begun else OF_SUFFIX))
        for token, likely in self._guesses.get(size, {}).items():
            if token != self._pad:
                more.append((token, OF_GUESS * likely))
            elif self._suffix:
                more.append((self._suffix[0], OF_GUESS * likely))
        return {token: likely for token, likely in either(found, more).items() if token not in self._stops}

    def _suffix_begun(self, written: Sequence[int]) -> int:
        """How many of the last tokens are the suffix's first."""
        most = min(len(written), len(self._suffix) - 1)
        return next((count for count in range(most, 0, -1) if written[-count:] == self._suffix[:count]), 0)
