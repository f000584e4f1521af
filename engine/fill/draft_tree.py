"""Several drafts as one tree of tokens, which one causal pass checks, and how far the model says what they say."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.models.base import DraftTree, linear_cost

ROOT = -1
"""Stands for the last token of the text, from which drafts go on."""
ROWS = 16
"""Tokens of a tree at the most."""
LEAST = 0.02
"""How likely a token is to be said, at the least: no row costs less."""
MOST = 0.97
"""How sure a next token can be."""
Following = Callable[[Sequence[int]], Mapping[int, float]]
"""How likely each token is that may follow these, after the text and what is known of what follows it."""
Cost = Callable[[int], float]
"""What a pass over so many rows takes, as a multiple of one over a single row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenDraft:
    """Tokens that may come next, in order."""

    ids: Sequence[int]
    likely: float = 0.5
    """How often the first of them is what comes, and each further one where those before it are."""


def tree_of(
    following: Following,
    known: Sequence[int] = (),
    rows: int = ROWS,
    cost: Cost = linear_cost,
    most: float = MOST,
) -> tuple[DraftTree, list[float]]:
    """Tokens that are `known` to come next, one after the other, and after them the likeliest that may follow, as many
    as let the most tokens come out of a pass by its time: `rows` tokens at the most, but all that are known. `most`:
    how sure any of them can be. Comes with the probability of each."""
    ids, parents = [*known], [*range(ROOT, len(known) + ROOT)]
    likely = [1.0] * len(known)
    waiting: list[tuple[float, int, int, tuple[int, ...]]] = []

    def wait(parent: int, path: tuple[int, ...], likely: float) -> None:
        for token, share in following(path).items():
            if (own := likely * min(share, most)) >= LEAST:
                heapq.heappush(waiting, (-own, len(waiting), parent, (*path, token)))

    first = len(known)
    wait(first + ROOT, (), 1.0)
    # One token comes out of a pass anyway.
    told, best, kept = 1.0, 1.0 / cost(max(first, 1)), first
    while waiting and len(ids) < rows:
        negative, _, parent, path = heapq.heappop(waiting)
        ids.append(path[-1])
        parents.append(parent)
        likely.append(-negative)
        told -= negative
        if (rate := told / cost(len(ids))) > best:
            best, kept = rate, len(ids)
        wait(len(ids) - 1, path, -negative)
    return DraftTree(ids=tuple(ids[:kept]), parents=tuple(parents[:kept])), likely[:kept]


def likeliest_end(tree: DraftTree, likely: Sequence[float]) -> int:
    """The node at which acceptance most likely ends: an index, or ROOT."""
    ends = [1.0, *likely]
    for parent, own in zip(tree.parents, likely, strict=True):
        ends[parent - ROOT] -= own
    return max(range(len(ends)), key=ends.__getitem__) + ROOT


def of_drafts(drafts: Sequence[TokenDraft]) -> Following:
    """The same for drafts that are known as a whole."""

    def following(path: Sequence[int]) -> Mapping[int, float]:
        size, found = len(path), dict[int, float]()
        for draft in drafts:
            if size < len(draft.ids) and list(draft.ids[:size]) == list(path):
                token = draft.ids[size]
                found[token] = max(found.get(token, 0.0), draft.likely)
        return found

    return following


def either(one: Mapping[int, float], more: Iterable[tuple[int, float]]) -> dict[int, float]:
    """What several sources say of the next token, each of which may be right by itself."""
    found = dict(one)
    for token, likely in more:
        found[token] = 1 - (1 - found.get(token, 0.0)) * (1 - likely)
    return found


def likeliest(following: Following, most: int = ROWS) -> list[int]:
    """The likeliest path, as long as each token is at least as likely as not."""
    path: list[int] = []
    while len(path) < most:
        token, likely = max(following(path).items(), key=lambda each: each[1], default=(0, 0.0))
        if likely < 0.5:
            break
        path.append(token)
    return path


def accepted(tree: DraftTree, known: int, choose: Callable[[int], int | None]) -> tuple[list[int], int | None]:
    """The path from the root on of the first `known` tokens and of those after them that are what the model says, and
    the token that it says after all of these, which is free. `choose`: the token after a node, asked once for each in
    their order; None: nothing follows any more."""
    children = {(parent, token): node for node, (parent, token) in enumerate(zip(tree.parents, tree.ids, strict=True))}
    path = [*range(known)]
    at = known + ROOT
    while (token := choose(at)) is not None and (child := children.get((at, token))) is not None:
        path.append(child)
        at = child
    return path, token
