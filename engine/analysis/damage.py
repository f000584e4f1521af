"""Where the syntax of a text is broken, and where the cause may lie."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from tree_sitter import Node

from engine.core.findings import Damage
from engine.syntax.brackets import pair
from engine.syntax.budget import Budget
from engine.syntax.compiling import LARGEST, Complaint, complaint
from engine.syntax.parsing import plain
from engine.syntax.problems import Found, find
from engine.syntax.tree import SyntaxTree, parsed

_SMALL = 40
"""Bytes of an ERROR node up to which its own place says where the cause is."""
_APART = 2
"""Lines between two spots that still count as one damage."""
_MOST_SPOTS = 64
"""Places of causes that one damage names."""
_NOT_STRUCTURE = ("outside", "nonlocal", "global", "from __future__", "duplicate argument")
"""Complaints of Python's compiler about text that parses; what is denoised anew has nothing to do with them."""

_DETAIL = re.compile(r" \(.*\)$|[.:] .*$")
"""What a compiler adds to its message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How broken a text is."""

    found: tuple[Found, ...]
    """ERROR and MISSING nodes."""
    complaint: Complaint | None
    """Python's compiler's."""

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.found and self.complaint is None


def health(tree: SyntaxTree, budget: Budget) -> Health | None:
    """The state of a parsed text; None if the budget ran out."""
    found = find(tree.root, budget)
    return None if found is None else Health(found=tuple(found), complaint=structural_complaint(tree))


def structural_complaint(tree: SyntaxTree) -> Complaint | None:
    """What Python's compiler says against the structure of a text; nothing for other languages and huge texts."""
    if tree.language != "python" or len(tree.text) > LARGEST:
        return None
    objection = complaint(plain(tree.text))
    return None if objection is None or any(word in objection.message for word in _NOT_STRUCTURE) else objection


def damages(text: str, language: str, budget: Budget | None = None) -> tuple[Damage, ...] | None:
    """Every damage of a text, in order; None for an unknown language or without time. `language`: `Grammar.name`."""
    budget = budget or Budget()
    tree = parsed(plain(text), language, budget)
    state = tree and health(tree, budget)
    return damages_of(tree, state, budget) if tree and state else None


def damages_of(tree: SyntaxTree, state: Health, budget: Budget) -> tuple[Damage, ...]:
    """The damages of a text in that state, in order; as many as there is time for."""
    if state.sound:
        return ()
    spots = list(takewhile(lambda _: not budget.over(), _spots(tree, state)))
    starts = _line_starts(tree.text)
    telling = [spot for spot in spots if spot.tells] or spots
    lines = sorted({bisect_right(starts, spot.at) - 1 for spot in telling})
    groups: list[list[int]] = []
    for line in lines:
        if groups and line - groups[-1][-1] <= _APART:
            groups[-1].append(line)
        else:
            groups.append([line])
    timely = takewhile(lambda _: not budget.over(), groups)
    return tuple(_damage(tree.text, starts, group, spots) for group in timely)


@dataclass(frozen=True, slots=True)
class _Spot:
    at: int
    rank: int
    what: str = ""
    tells: bool = True
    """Whether it says by itself that something is wrong near it."""


def _spots(tree: SyntaxTree, state: Health) -> Iterator[_Spot]:
    """Places that may hold a cause."""
    if state.complaint:
        yield _Spot(min(state.complaint.offset, len(tree.text)), 0, _DETAIL.sub("", state.complaint.message))
    for found in state.found:
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
    """Where the last pieces begin that a parser could make something of in a large error."""
    node = root.descendant_for_byte_range(found.start, found.end)
    children = node.children if node and node.is_error else []
    return [child.start_byte for child in children[-2:]]


def _damage(text: str, starts: list[int], group: list[int], spots: list[_Spot]) -> Damage:
    start = starts[group[0]]
    end = starts[group[-1] + 1] - 1 if group[-1] + 1 < len(starts) else len(text)
    end -= text[start:end].endswith("\r")
    middle = (start + end) / 2
    here = sorted(spots, key=lambda spot: (not start <= spot.at <= end, spot.rank, abs(spot.at - middle)))
    what = next((spot.what for spot in here if spot.what and start <= spot.at <= end), "")
    return Damage(start=start, end=end, what=what, spots=tuple(dict.fromkeys(spot.at for spot in here))[:_MOST_SPOTS])


def _line_starts(text: str) -> list[int]:
    return [0, *(at + 1 for at, letter in enumerate(text) if letter == "\n")]
