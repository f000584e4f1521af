"""What followed the same tokens elsewhere in a text, and how likely it follows them here: code repeats itself.

The longer the same tokens, the more it tells; what was seen there counts by absolute discounting (Ney, Essen, Kneser,
"On structuring probabilistic dependences in stochastic language modelling", 1994), the latest most.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

DISCOUNT = (0.65, 0.45, 0.3, 0.2)
"""Of a count, by how many tokens were the same: the share of those seen once that the next token is not. Counted with
what a coder of 0.5 B writes in 62 development gaps, as LESS is."""
LESS = 0.9
"""What a place counts by the next one of the same tokens."""
_PLACES = 64
"""Looked at, the latest ones."""


class NGrams:
    """N-grams of a growing text. Negative items separate parts that do not follow each other."""

    def __init__(self, items: Iterable[int] = ()) -> None:
        self._items = list[int]()
        self._after: defaultdict[int, list[int]] = defaultdict(list)
        """Where a token was followed by another."""
        self.add(items)

    def add(self, items: Iterable[int]) -> None:
        """Append to the text."""
        for item in items:
            if self._items:
                self._after[self._items[-1]].append(len(self._items))
            self._items.append(item)

    def after(self, path: Sequence[int]) -> dict[int, float]:
        """`following` of the text's last tokens and a path that goes on from them."""
        return self.following([*self._items[-len(DISCOUNT) :], *path][-len(DISCOUNT) :])

    def following(self, last: Sequence[int]) -> dict[int, float]:
        """The probability of each token that followed these tokens before."""
        longest = len(DISCOUNT)
        counts = [defaultdict[int, float](float) for _ in DISCOUNT]
        weights = [1.0] * longest
        for at in reversed(self._after.get(last[-1], ())[-_PLACES:] if last else ()):
            same, token = 1, self._items[at]
            while same < min(longest, at, len(last)) and self._items[at - 1 - same] == last[-1 - same]:
                same += 1
            for size in range(same):
                counts[size][token] += weights[size]
                weights[size] *= LESS
        found: dict[int, float] = {}
        for count, discount in zip(reversed(counts), reversed(DISCOUNT), strict=True):
            seen = sum(count.values())
            for token, own in count.items():
                if token >= 0 and token not in found and own > discount:
                    found[token] = (own - discount) / seen
        return found
