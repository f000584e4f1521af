"""Second phase: canvases over a shared context. Each is [gap | pinned suffix], sees the context up to its cut, and is
denoised where its tokens were masked.

One row of context [N] serves every gap of its text: the row is tokenised in pieces that meet at the cuts, as a
prefix that ends at a cursor is. The canvases of a row lie side by side, [C] tokens in all.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import torch
from tokenizers import Tokenizer
from torch import Tensor

from engine.models.gemma_network import Network, attention
from engine.models.layout import EOS, MASK, PAD, Layout
from engine.syntax.holes import Hole, Kind, holes
from engine.train.loss import capped_cross_entropy
from engine.train.next_token import choose_document, encode_rows
from engine.train.packed import PackedCorpus

WIDTHS = (4, 8, 12, 16, 24, 32, 48, 64)
"""Gap widths in tokens that a canvas is trained at."""
PINNED = 32
"""Suffix tokens on a canvas."""
FREE_SHARE = 0.08
"""Canvases without a suffix: the text just goes on."""
FREQUENCY: dict[Kind, int] = {"rest_of_line": 4, "line": 2, "lines": 1, "block": 1, "arguments": 2, "span": 3}
"""How often each kind of gap is drawn, relative to the others."""
NO_CANVAS = -1
CHARACTERS_PER_TOKEN = 3.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Canvases:
    """ids [B, N], the context, padded; the rest [B, C]."""

    ids: Tensor
    truth: Tensor
    """What belongs at each canvas position."""
    noised: Tensor
    """Which positions are masked, bool."""
    owner: Tensor
    """The number of the canvas that a position belongs to, or NO_CANVAS."""
    cut: Tensor
    """Tokens of context that the position's canvas sees."""
    position: Tensor
    conditioned: Tensor
    """Rows [B] that are denoised twice, fed their own first answer."""


@dataclass(slots=True)
class _Row:
    context: list[int]
    truth: list[int] = field(default_factory=list)
    noised: list[bool] = field(default_factory=list)
    owner: list[int] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    position: list[int] = field(default_factory=list)

    def add(self, owner: int, cut: int, gap: Sequence[int], pinned: Sequence[int], rng: random.Random) -> None:
        level = rng.random()
        noised = [rng.random() < level for _ in gap]
        noised[rng.randrange(len(gap))] = True
        length = len(gap) + len(pinned)
        self.truth += [*gap, *pinned]
        self.noised += noised + [False] * len(pinned)
        self.owner += [owner] * length
        self.cut += [cut] * length
        self.position += range(cut, cut + length)


def canvas_batch(
    corpus: PackedCorpus, tokenizer: Tokenizer, layout: Layout, rows: int, width: int, budget: int, rng: random.Random
) -> Canvases:
    """`rows` contexts of at most `width` tokens, each with canvases of at most `budget` tokens in all."""
    made = [_row(corpus, tokenizer, layout, width, budget, rng) for _ in range(rows)]
    return Canvases(
        ids=_stack([row.context for row in made], width, PAD),
        truth=_stack([row.truth for row in made], budget, PAD),
        noised=_stack([row.noised for row in made], budget, False),
        owner=_stack([row.owner for row in made], budget, NO_CANVAS),
        cut=_stack([row.cut for row in made], budget, 0),
        position=_stack([row.position for row in made], budget, 0),
        conditioned=torch.arange(rows) < rows // 2,
    )


def canvas_losses(network: Network, batch: Canvases) -> tuple[Tensor, Tensor]:
    """Mean cross-entropies in nats: of the masked canvas tokens, and of the context's next tokens."""
    store: dict[int, tuple[Tensor, Tensor]] = {}
    encoded = encode_rows(network, batch.ids, store)
    canvas = torch.where(batch.noised, MASK, batch.truth)
    signal = _signal(network, batch, canvas, store)
    hidden = network.decode(canvas, batch.position, _attend(network, batch, store), signal)
    real = batch.ids[:, 1:] != PAD
    return (
        _cross_entropy(network, hidden[batch.noised], batch.truth[batch.noised]),
        _cross_entropy(network, encoded[:, :-1][real], batch.ids[:, 1:][real]),
    )


def _cross_entropy(network: Network, hidden: Tensor, targets: Tensor) -> Tensor:
    cap = network.module.final_logit_softcapping
    return capped_cross_entropy(hidden, network.module.lm_head.weight, targets, cap)


@torch.no_grad()
def _signal(network: Network, batch: Canvases, canvas: Tensor, store: dict[int, tuple[Tensor, Tensor]]) -> Tensor:
    """Self-conditioning [B, C, E] of the rows that have it; known positions speak for themselves."""
    rows = batch.conditioned
    part = Canvases(
        **{
            name: getattr(batch, name)[rows]
            for name in ("ids", "truth", "noised", "owner", "cut", "position", "conditioned")
        }
    )
    first = {index: (key[rows].detach(), value[rows].detach()) for index, (key, value) in store.items()}
    hidden = network.decode(canvas[rows], part.position, _attend(network, part, first), None)
    told = network.decoder.embed_tokens(part.truth)
    told[part.noised] = network.soft_embeddings(network.logits(hidden[part.noised]))
    signal = told.new_zeros(*canvas.shape, told.shape[-1])
    signal[rows] = told
    return signal


def _attend(network: Network, batch: Canvases, store: dict[int, tuple[Tensor, Tensor]]):  # noqa: ANN202
    slots = torch.arange(batch.ids.shape[1], device=batch.ids.device)
    before = slots[None, None, :] < batch.cut[:, :, None]
    near = before & (slots[None, None, :] > batch.cut[:, :, None] - network.config.sliding_window)
    beside = batch.owner[:, :, None] == batch.owner[:, None, :]
    full, sliding = (torch.cat((context, beside), dim=2)[:, None] for context in (before, near))

    def attend(index: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        keys, values = store[index]
        mask = sliding if network.sliding(index) else full
        return attention(query, torch.cat((keys, key), dim=2), torch.cat((values, value), dim=2), mask)

    return attend


def _row(
    corpus: PackedCorpus, tokenizer: Tokenizer, layout: Layout, width: int, budget: int, rng: random.Random
) -> _Row:
    index = choose_document(corpus, rng)
    text, language = corpus.text(index), corpus.language(index)
    size = int(width * CHARACTERS_PER_TOKEN)
    start = rng.randrange(max(1, len(text) - size // 2)) if rng.random() < 0.7 else 0
    later = _later(tokenizer, text, start + size, width, rng)
    room = width - len(layout.context(language, later, ()))
    window = text[start : start + size]
    kinds = [kind for kind, times in FREQUENCY.items() for _ in range(times)]
    chosen = sorted(holes(window, language, rng, kinds, count=2 * budget // PINNED), key=lambda hole: hole.start)
    pieces, cuts = _pieces(tokenizer, window, [hole.start for hole in chosen])
    row = _Row(context=layout.context(language, later, pieces[:room]))
    ahead = len(row.context) - min(room, len(pieces))
    order = [(hole, cut) for hole, cut in zip(chosen, cuts, strict=True) if cut <= room]
    rng.shuffle(order)
    for number, (hole, cut) in enumerate(order):
        gap, pinned = _canvas(tokenizer, text, start, hole, rng)
        if gap and len(row.truth) + len(gap) + len(pinned) <= budget:
            row.add(number, ahead + cut, gap, pinned, rng)
    return row


def _canvas(tokenizer: Tokenizer, text: str, start: int, hole: Hole, rng: random.Random) -> tuple[list[int], list[int]]:
    """Gap, with its unused slots as <pad>, and pinned suffix."""
    begin, end = start + hole.start, start + hole.end
    if rng.random() < FREE_SHARE:
        width = rng.choice(WIDTHS)
        gap = _encode(tokenizer, text[begin : begin + 8 * width])[:width]
        return (gap, []) if len(gap) == width else ([], [])
    gap = _encode(tokenizer, text[begin:end])
    if not gap or len(gap) > WIDTHS[-1]:
        return [], []
    width = rng.choice(WIDTHS[bisect_left(WIDTHS, len(gap)) :])
    after = _encode(tokenizer, text[end : end + 12 * PINNED])
    pinned = after[:PINNED] if len(after) >= PINNED else [*after, EOS]
    return gap + [PAD] * (width - len(gap)), pinned


def _later(tokenizer: Tokenizer, text: str, end: int, width: int, rng: random.Random) -> list[int]:
    at = end + rng.randrange(200)
    if rng.random() < 0.5 or at >= len(text):
        return []
    return _encode(tokenizer, text[at : at + 2 * width])[: rng.randrange(16, width // 3)]


def _pieces(tokenizer: Tokenizer, window: str, starts: Sequence[int]) -> tuple[list[int], list[int]]:
    """The window's tokens with a boundary at each of `starts`, and how many lie before each."""
    edges = [0, *starts, len(window)]
    parts = tokenizer.encode_batch_fast([window[a:b] for a, b in pairwise(edges)], add_special_tokens=False)
    ids: list[int] = []
    cuts: list[int] = []
    for part in parts[:-1]:
        ids += part.ids
        cuts.append(len(ids))
    return ids + parts[-1].ids, cuts


def _encode(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False).ids


def _stack(rows: Sequence[Sequence[int] | Sequence[bool]], width: int, filler: int | bool) -> Tensor:
    return torch.tensor([[*row, *[filler] * (width - len(row))] for row in rows])
