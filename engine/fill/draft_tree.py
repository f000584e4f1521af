"""Drafts as one tree of tokens: one causal pass checks it, and the path that the model agrees with is accepted."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.models.base import DraftTree, linear_cost

ROOT = -1
"""The parent of first tokens: it stands for the last token of the text."""
ROWS = 16
"""Most tokens of a tree, and so pass rows."""
LEAST = 0.02
"""Least probability of a token in a tree: a less likely one is not worth its pass row."""
MOST = 0.97
"""Highest probability that a token is given."""
Following = Callable[[Sequence[int]], Mapping[int, float]]
"""Tokens of a path -> the probability of each token that may come next."""
Cost = Callable[[int], float]
"""Pass rows -> the time of the pass, as a multiple of a pass of one row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenDraft:
    """Tokens that may come next, in order."""

    ids: Sequence[int]
    likely: float = 0.5
    """Probability of its first token, and of each further one given those before it."""


def tree_of(
    following: Following,
    known: Sequence[int] = (),
    rows: int = ROWS,
    cost: Cost = linear_cost,
    most: float = MOST,
) -> tuple[DraftTree, list[float]]:
    """A tree of `known` tokens, one after the other, and of the likeliest ones after them, with the probability of
    each. Its size gives the most accepted tokens for the time of a pass: at most `rows` tokens, but all known ones.
    `most`: the highest probability of a token."""
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


def likeliest_end(tree: DraftTree, likely: Sequence[float]) -> tuple[int, float]:
    """The node at which acceptance most likely ends, an index or ROOT, and the probability of that."""
    ends = [1.0, *likely]
    for parent, own in zip(tree.parents, likely, strict=True):
        ends[parent - ROOT] -= own
    at = max(range(len(ends)), key=ends.__getitem__)
    return at + ROOT, ends[at]


def of_drafts(drafts: Sequence[TokenDraft]) -> Following:
    """The `Following` of some drafts."""

    def following(path: Sequence[int]) -> Mapping[int, float]:
        size, found = len(path), dict[int, float]()
        for draft in drafts:
            if size < len(draft.ids) and list(draft.ids[:size]) == list(path):
                token = draft.ids[size]
                found[token] = max(found.get(token, 0.0), draft.likely)
        return found

    return following


def either(one: Mapping[int, float], more: Iterable[tuple[int, float]]) -> dict[int, float]:
    """The probability of each next token by several independent sources: that at least one is right."""
    found = dict(one)
    for token, likely in more:
        found[token] = 1 - (1 - found.get(token, 0.0)) * (1 - likely)
    return found


def likeliest(following: Following, most: int = ROWS) -> list[int]:
    """The likeliest path, up to the first token with a probability below 1/2."""
    path: list[int] = []
    while len(path) < most:
        token, likely = max(following(path).items(), key=lambda each: each[1], default=(0, 0.0))
        if likely < 0.5:
            break
        path.append(token)
    return path


def accepted(tree: DraftTree, known: int, choose: Callable[[int], int | None]) -> tuple[list[int], int | None]:
    """The accepted path, and the token after it, which is free: from the root the first `known` tokens, then those that
    the model chooses itself. `choose`: the token that the model writes after a node, called once for each in order;
    None: the text ends."""
    children = {(parent, token): node for node, (parent, token) in enumerate(zip(tree.parents, tree.ids, strict=True))}
    path = [*range(known)]
    at = known + ROOT
    while (token := choose(at)) is not None and (child := children.get((at, token))) is not None:
        path.append(child)
        at = child
    return path, token
