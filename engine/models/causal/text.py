"""The state of causal decoding: a context, what was written after it, and the tree of drafts in the last pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from engine.common.sequences import common_head
from engine.models.base import DraftTree, Model
from engine.models.kv_cache import KeyValues


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, kw_only=True)
class CausalContext:
    """A context whose last tokens may not be prefilled yet: the first check after it reads them."""

    store: KeyValues
    """Keys and values of most of its tokens; `store.ids` says of which."""
    ids: tuple[int, ...]

    @property
    def length(self) -> int:
        return len(self.ids)


class CoderContexts(Model, Protocol):
    """A coder whose prefilled contexts a canvas attends to."""

    def read(self, context: CausalContext) -> None:
        """Prefill all of a context."""
        ...


@dataclass(slots=True, kw_only=True, eq=False)
class CausalText:
    """A context and what was written after it."""

    context: CausalContext
    written: tuple[int, ...] = ()
    last: Tensor | None = None
    """Hidden state [1, E] of the last token; None: it was not read yet."""
    checked: Checked | None = None
    """The last check of this text, from which `accept` takes a path; None: there was none."""

    @property
    def is_read(self) -> bool:
        return self.last is not None

    @property
    def unread(self) -> int:
        return len(self.ids) - common_head(self.context.store.ids, list(self.ids))

    @property
    def ids(self) -> tuple[int, ...]:
        return (*self.context.ids, *self.written)


@dataclass(slots=True, kw_only=True, eq=False)
class Checked:
    """A tree of drafts after a text, and what the pass over it said."""

    tree: DraftTree
    hidden: Tensor = field(repr=False)
    """Hidden states [N, E] of its tokens."""
    guessed: tuple[int, Tensor] | None = field(default=None, repr=False)
    """The token of the tree (-1: the text's last) that a canvas follows, and logits [S, V] of its unknown tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownTokens:
    """A short canvas in the pass that checks a tree: its tokens attend to each other and to all before them."""

    after: int = -1
    """The token of the tree before them; -1: the text's last."""
    count: int = 0


def seen(tree: DraftTree, before: int, known: int, unknown: UnknownTokens) -> Tensor:
    """Attention mask [T, known + T], T = before + N + U; True: attends. `known` tokens are in the cache. Each of the
    `before` tokens after them attends to what comes before it, each of the N of the tree to all of those and to its
    ancestors, each of the U unknown ones to what comes before `unknown.after`, to that token and to one another."""
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
    """Drafts as one tree, and the path of each in it."""
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
