"""Texts that a coder reads and writes on, and the trees of drafts that follow them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from engine.models.base import DraftTree, Model
from engine.models.kv_cache import KeyValues


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, kw_only=True)
class CausalContext:
    """A context whose last tokens need not be read yet: they are read together with what follows them."""

    store: KeyValues
    """Holds most of it; what it holds is told by its tokens."""
    ids: tuple[int, ...]

    @property
    def length(self) -> int:
        return len(self.ids)


class CoderContexts(Model, Protocol):
    """A coder whose contexts others attend to."""

    def read(self, context: CausalContext) -> None:
        """Have keys and values of all of a context."""
        ...


@dataclass(slots=True, kw_only=True, eq=False)
class CausalText:
    """A context and what was written after it."""

    context: CausalContext
    written: tuple[int, ...] = ()
    last: Tensor | None = None
    """Hidden state [1, E] of the last token, where it is known."""
    checked: Checked | None = None
    """What `accept` chooses from."""

    @property
    def is_read(self) -> bool:
        return self.last is not None

    @property
    def ids(self) -> tuple[int, ...]:
        return (*self.context.ids, *self.written)


@dataclass(slots=True, kw_only=True, eq=False)
class Checked:
    """A tree after a text, after a pass over it."""

    tree: DraftTree
    hidden: Tensor = field(repr=False)
    """[N, E] of its tokens."""
    guessed: tuple[int, Tensor] | None = field(default=None, repr=False)
    """Which token of the tree a canvas follows, and logits [S, V] of its unknown tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownTokens:
    """A short canvas in the pass that checks a tree: its tokens see each other and all that is before them."""

    after: int = -1
    """The token of the tree that they follow; -1: the text's last."""
    count: int = 0


def seen(tree: DraftTree, before: int, known: int, unknown: UnknownTokens) -> Tensor:
    """Mask [T, known + T] (True is seen), T = before + N + U, of `before` tokens after `known` ones, each of which sees
    all that come before it, of a tree's tokens, which see all of those and the ones that they follow, and of unknown
    tokens."""
    start = before + len(tree.ids)
    count = start + unknown.count
    mask = torch.ones(count, known + count, dtype=torch.bool)
    own = mask[:, known:]
    own.tril_()
    for at, parent in enumerate(tree.parents, start=before):
        own[at, before:] = own[before + parent, before:] if parent >= 0 else False
        own[at, at] = True
    at = before + unknown.after
    own[start:] = own[at] if at >= 0 else False
    own[start:, start:] = True
    return mask


def tree_of(drafts: Sequence[Sequence[int]]) -> tuple[DraftTree, list[list[int]]]:
    """Drafts as one tree, and where in it the tokens of each are."""
    children: dict[tuple[int, int], int] = {}
    ids, parents, paths = list[int](), list[int](), list[list[int]]()
    for draft in drafts:
        at, path = -1, list[int]()
        for token in draft:
            following = children.setdefault((at, token), len(ids))
            if following == len(ids):
                ids.append(token)
                parents.append(at)
            at = following
            path.append(at)
        paths.append(path)
    return DraftTree(ids=tuple(ids), parents=tuple(parents)), paths
