"""Finds where the syntax of a text is broken, and where the cause may lie."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from tree_sitter import Node

from engine.common.analysis import SyntaxErrorRegion
from engine.syntax.brackets import pair
from engine.syntax.budget import Budget
from engine.syntax.parsed_text import ParsedText
from engine.syntax.problems import Found

_SMALL = 40
"""Bytes of an ERROR node up to which the cause is at its own place."""
_APART = 2
"""Lines between two spots that still count as one region."""
_MOST_SPOTS = 64
"""Most places of causes in one region."""
_DETAIL = re.compile(r" \(.*\)$|[.:] .*$")
"""Details that a compiler adds to its message."""


def syntax_errors(text: ParsedText, budget: Budget | None = None) -> tuple[SyntaxErrorRegion, ...]:
    """The error regions of a text, in order, as far as time allows."""
    if text.is_sound:
        return ()
    budget = budget or Budget()
    spots = list(takewhile(lambda _: not budget.over(), _spots(text)))
    source = text.tree.text
    starts = [0, *(at + 1 for at, letter in enumerate(source) if letter == "\n")]
    telling = [spot for spot in spots if spot.tells] or spots
    lines = sorted({bisect_right(starts, spot.at) - 1 for spot in telling})
    groups: list[list[int]] = []
    for line in lines:
        if groups and line - groups[-1][-1] <= _APART:
            groups[-1].append(line)
        else:
            groups.append([line])
    timely = takewhile(lambda _: not budget.over(), groups)
    return tuple(_region(source, starts, group[0], group[-1], spots) for group in timely)


@dataclass(frozen=True, slots=True)
class _Spot:
    at: int
    rank: int
    what: str = ""
    tells: bool = True
    """Whether the node itself shows that something is wrong near it."""


def _spots(text: ParsedText) -> Iterator[_Spot]:
    """Places that may hold a cause."""
    tree, diagnostic = text.tree, text.diagnostic
    if diagnostic:
        yield _Spot(min(diagnostic.offset, len(tree.text)), 0, _DETAIL.sub("", diagnostic.message))
    for found in text.found:
        start, end = tree.offset(found.start), tree.offset(found.end)
        if found.what != "error":
            yield _Spot(start, 0, found.what)
        elif found.end - found.start <= _SMALL:
            yield _Spot(start, 1)
            yield _Spot(end, 2, tells=False)
        else:
            yield _Spot(start, 4, tells=False)
            yield _Spot(end, 5, tells=False)
            yield from (_Spot(tree.offset(at), 3, tells=False) for at in _joints(tree.root, found))
    pairing = pair(tree.text, tree.language)
    yield from (_Spot(at, 1) for at in pairing.unopened)
    yield from (_Spot(bracket.start, 2) for bracket in pairing.unclosed)
    if pairing.pending and pairing.pending.kind == "string":
        yield _Spot(pairing.pending.start, 2)


def _joints(root: Node, found: Found) -> list[int]:
    """Beginnings of the last pieces that a parser understood in a large error."""
    node = root.descendant_for_byte_range(found.start, found.end)
    children = node.children if node and node.is_error else []
    return [child.start_byte for child in children[-2:]]


def _region(text: str, starts: list[int], first: int, last: int, spots: list[_Spot]) -> SyntaxErrorRegion:
    """The lines from `first` to `last`."""
    start = starts[first]
    end = starts[last + 1] - 1 if last + 1 < len(starts) else len(text)
    end -= text[start:end].endswith("\r")
    middle = (start + end) / 2
    here = sorted(spots, key=lambda spot: (not start <= spot.at <= end, spot.rank, abs(spot.at - middle)))
    what = next((spot.what for spot in here if spot.what and start <= spot.at <= end), "")
    return SyntaxErrorRegion(
        start=start, end=end, what=what, spots=tuple(dict.fromkeys(spot.at for spot in here))[:_MOST_SPOTS]
    )
