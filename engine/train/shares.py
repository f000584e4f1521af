"""How much each package may give, so that code of many hands is seen and no large package sets the tone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_PACKAGE_SHARE = 0.08
"""Of the characters of a package's ecosystem."""
_FAVOURED_WEIGHT = 2.5
_NPM_SHARE = 0.2
"""JavaScript and TypeScript, of all characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageSizes:
    """What a package has to give, in characters."""

    ecosystem: str
    characters: int
    favoured: bool
    """May give more than others."""


def package_limits(packages: Sequence[PackageSizes]) -> list[int]:
    """Characters that each package may give, in the order of `packages`."""
    python = [package for package in packages if package.ecosystem == "python"]
    npm = [package for package in packages if package.ecosystem == "npm"]
    python_level = _level(python, None)
    budget = int(_given(python, python_level) * _NPM_SHARE / (1 - _NPM_SHARE)) if python else None
    levels = {"python": python_level, "npm": _level(npm, budget)}
    return [_limit(package, levels[package.ecosystem]) for package in packages]


def _level(packages: Sequence[PackageSizes], budget: int | None) -> float:
    """The highest cap for which no package exceeds its share of what all give, and all stay in the budget."""
    # A share must leave room for all to add up: with few packages each may give more.
    share = max(_PACKAGE_SHARE, 2 / max(len(packages), 1))
    low, high = 0.0, float(max((package.characters for package in packages), default=0))
    for _ in range(50):
        level = (low + high) / 2
        given = _given(packages, level)
        fits = level <= share * given and (budget is None or given <= budget)
        low, high = (level, high) if fits else (low, level)
    return high if budget is None or _given(packages, high) <= budget else low


def _given(packages: Sequence[PackageSizes], level: float) -> int:
    return sum(min(package.characters, _limit(package, level)) for package in packages)


def _limit(package: PackageSizes, level: float) -> int:
    return int(level * (_FAVOURED_WEIGHT if package.favoured else 1.0))
