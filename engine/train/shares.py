"""How much each package may give and how often it is read: no package sets the tone, the best is read most."""

from __future__ import annotations

from collections.abc import Sequence

from engine.train.sources import STANDARD_LIBRARY

_PACKAGE_SHARE = 0.04
"""Of all characters, as they are and as often as they are read."""
_NPM_SHARE = 0.13
"""JavaScript and TypeScript, of all characters."""

_UTILITIES = ("algorithms", "boltons", "funcy", "glom", "more-itertools", "pydash", "pygorithm")
_WEIGHTS = {
    STANDARD_LIBRARY: 2,
    **dict.fromkeys(("galois", "lodash", "mlxtend", "mpmath", "networkx", "rxjs", "trimesh"), 3),
    **dict.fromkeys((*_UTILITIES, "sortedcontainers", "textdistance", "ubelt"), 4),
}


def weight_of(name: str) -> int:
    """How often a package is read in the time that others are read once: algorithms and utilities more often."""
    return _WEIGHTS.get(name, 1)


def package_limits(sizes: Sequence[int], weights: Sequence[int], npm: Sequence[bool]) -> list[int]:
    """Characters that each package may give, of packages with so many characters that are read so often; `npm` are
    those in JavaScript and TypeScript."""
    # A share must leave room for all to add up: with few packages each may give more.
    share = max(_PACKAGE_SHARE, 6 / max(len(sizes), 1))
    given = [*sizes]
    # Each cut lowers the total that shares are of; it settles at the largest amounts that keep all limits.
    for _ in range(100):
        read = sum(characters * weight for characters, weight in zip(given, weights, strict=True))
        most = [min(share * sum(given), share * read / weight) for weight in weights]
        given = _within_npm_share([min(amounts) for amounts in zip(given, map(int, most), strict=True)], npm)
    return given


def _within_npm_share(given: list[int], npm: Sequence[bool]) -> list[int]:
    scripts = [characters for characters, is_npm in zip(given, npm, strict=True) if is_npm]
    budget = (sum(given) - sum(scripts)) * _NPM_SHARE / (1 - _NPM_SHARE)
    if sum(scripts) <= budget or all(npm):
        return given
    # The largest give way first.
    low, high = 0.0, float(max(given))
    for _ in range(50):
        level = (low + high) / 2
        fits = sum(min(characters, level) for characters in scripts) <= budget
        low, high = (level, high) if fits else (low, level)
    return [min(characters, int(low)) if is_npm else characters for characters, is_npm in zip(given, npm, strict=True)]
