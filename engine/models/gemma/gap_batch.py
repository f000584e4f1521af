"""The tokens that the causal encoder reads of a gap after a context: see engine.models.prompts.layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.models.base import DraftTree
from engine.models.kv_cache import EncodedContext, KeyValues
from engine.models.network import bias
from engine.models.prompts.layout import gap_tokens, question

NOTHING = DraftTree(ids=(), parents=())


@dataclass(frozen=True, slots=True, kw_only=True)
class GapBatch:
    """Tokens after a context that no later text sees: the text after the gap and the question for its width, if there
    is one; then for each of several texts the context's last token once more, and the text."""

    length: int
    """Tokens of context."""
    ids: tuple[int, ...]
    positions: tuple[int, ...]
    texts: tuple[int, ...]
    """The number of the text of each token, from 1 on; 0: before all texts."""
    tree: DraftTree = NOTHING
    """Drafts after the last text; they are the last tokens here."""

    @classmethod
    def of(cls, known: EncodedContext, pinned: Sequence[int] | None, texts: Sequence[Sequence[int]]) -> GapBatch:
        """A batch of texts. `pinned`: the text after the gap; None: no question for the width."""
        last, length = known.store.ids[known.length - 1], known.length
        query = [] if pinned is None else question(pinned, length)
        parts = [query, *(gap_tokens(text, last, length) for text in texts)]
        ids, positions = zip(*(each for part in parts for each in part), strict=True)
        numbers = tuple(number for number, part in enumerate(parts) for _ in part)
        return cls(length=length, ids=ids, positions=positions, texts=numbers)

    @property
    def question(self) -> int:
        """The place of the question in `ids`; -1: there is none."""
        return self.texts.count(0) - 1

    def with_tokens(self, tokens: Sequence[int]) -> GapBatch:
        """The same with more tokens of the last text."""
        first, number, count = self.positions[-1] + 1, self.texts[-1], len(tokens)
        return replace(
            self,
            ids=(*self.ids, *tokens),
            positions=(*self.positions, *range(first, first + count)),
            texts=(*self.texts, *[number] * count),
        )

    def with_tree(self, tree: DraftTree) -> GapBatch:
        """The same with drafts after the last text."""
        number, last = self.texts[-1], self.positions[-1]
        return replace(
            self,
            ids=(*self.ids, *tree.ids),
            positions=(*self.positions, *(last + depth for depth in tree.depths())),
            texts=(*self.texts, *[number] * len(tree.ids)),
            tree=tree,
        )

    def mask(self, read: int, window: int | None, device: torch.device, dtype: torch.dtype) -> Tensor:
        """What is added to scores [1, 1, T - read, S + T], 0 or -inf: a token sees what is before it, except other
        texts and, from within a text, the context's last token at its first place. `S`: tokens of context in the
        window."""
        first = 0 if window is None else max(0, self.length - window)
        own, texts = torch.tensor([self.positions, self.texts], device=device)
        keys = torch.cat((torch.arange(first, self.length, device=device), own))
        mask = torch.ones(len(own), len(keys), dtype=torch.bool, device=device).tril_(self.length - first)
        mask[:, self.length - first :] &= (texts == 0) | (texts == texts[:, None])
        mask[texts > 0, self.length - first - 1] = False
        drafts = mask[len(own) - len(self.tree.ids) :, len(keys) - len(self.tree.ids) :]
        for at, parent in enumerate(self.tree.parents):
            drafts[at] = drafts[parent] if parent >= 0 else False
            drafts[at, at] = True
        if window is not None:
            mask &= keys > own[:, None] - window
        return bias(mask[None, None, read:], dtype)


@dataclass(slots=True, kw_only=True, eq=False)
class GapText:
    """A text that is being written in a gap."""

    batch: GapBatch
    """The batch of this text alone."""
    store: KeyValues
    """Its own store, with keys and values of the context."""
    read: int = 0
    """Tokens of the batch that are in the store."""
    last: Tensor | None = None
    """State [1, E] of the last token, if known."""
    checked: tuple[DraftTree, Tensor] = (NOTHING, torch.empty(0))
    """The drafts in the store after it, and their states [N, E]."""

    @property
    def written(self) -> tuple[int, ...]:
        # The first token of the text is the last of the context.
        return self.batch.ids[self.batch.texts.index(1) + 1 :]

    @property
    def is_read(self) -> bool:
        return self.last is not None

    @property
    def unread(self) -> int:
        return 0

    def accept(self, path: Sequence[int]) -> GapText:
        """The text with the drafts at `path`. Raises ValueError for what is no path."""
        tree, hidden = self.checked
        tree.check_path(path)
        if not path:
            return self
        start = self.batch.length + len(self.batch.ids)
        self.store.move(start, [start + at for at in path])
        batch = self.batch.with_tokens([tree.ids[at] for at in path])
        return GapText(batch=batch, store=self.store, read=len(batch.ids), last=hidden[path[-1]][None])


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredBatch:
    """A computed batch, from any of whose texts decoding can go on."""

    context: list[int]
    batch: GapBatch
    kept: list[tuple[Tensor, Tensor]]
    """Keys and values [1, K, T, D] of each layer."""
    hidden: Tensor
    """States [1, T, E] of its texts."""

    def places(self, context: Sequence[int], begun: GapBatch) -> list[int] | None:
        """The places of `begun`, which has one text, in this batch; None where it is not in it."""
        texts, count = self.batch.texts, len(begun.ids)
        if self.context != context:
            return None
        for number in range(1, texts[-1] + 1):
            places = [at for at, text in enumerate(texts) if text in (0, number)][:count]
            if tuple(self.batch.ids[at] for at in places) == begun.ids:
                return places
        return None
