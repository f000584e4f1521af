"""Second phase: canvases over a shared context. Each is [gap | pinned suffix], sees the context up to its cut, and its
gap is denoised.

One row of context [N] serves every gap of its text: the row is tokenised in pieces that meet at the cuts, as a
prefix that ends at a cursor is. The canvases of a row lie side by side, [C] tokens in all.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields
from itertools import pairwise

import torch
from tokenizers import Tokenizer
from torch import Tensor

from engine.models.gemma_network import Attend, Network, attention
from engine.models.layout import EOS, MASK, PAD, Layout
from engine.syntax.holes import Hole, Kind, holes
from engine.train.loss import capped_cross_entropy
from engine.train.next_token import KeysAndValues, bias, choose_document, encode_rows
from engine.train.packed import PackedCorpus
from engine.train.presets import Preset
from engine.train.tokenizer import encode

WIDTHS = (4, 8, 12, 16, 24, 32, 48, 64)
"""Gap widths in tokens that a canvas is trained at."""
PINNED = (8, 16, 32, 32)
"""Suffix tokens on a canvas, one as often as another. A served canvas has the most; short ones leave room for more
gaps, and nothing of the loss is taken behind a gap."""
FREQUENCY: dict[Kind, int] = {
    "rest_of_line": 4,
    "line": 2,
    "lines": 1,
    "whole_lines": 3,
    "block": 1,
    "arguments": 2,
    "span": 2,
}
"""How often each kind of gap is drawn, relative to the others."""
RUNS, OPEN_RUNS, ENDED_RUNS = 0.5, 0.75, 0.25
"""Canvases whose noise is one run of tokens; those of them where it reaches the suffix, and those with unused slots
where it is nothing but these: all text is there, and the gap ends."""
SLACK_HIDDEN = 0.75
"""Canvases whose unused slots are noise all together: a fill meets them so when it has to find its own end."""
LATER = 0.5
"""Rows whose context tells what comes later in their text."""
LONGEST_SPAN = 44
"""Tokens of a gap that is not placed by syntax, at most."""
COUNTED_SLACK = 4
"""Of the unused slots one in so many counts, and the first: they are easy, and would be most of a wide canvas."""
CONTEXT_A_CUT = 64
"""Tokens of context for each cut inside a token; a served context has one at most, at its end."""
NO_CANVAS = -1
CHARACTERS_PER_TOKEN = 3.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Canvases:
    """ids [B, N], the context, padded; the rest [B, C]."""

    ids: Tensor
    truth: Tensor
    """What belongs at each canvas position."""
    canvas: Tensor
    """What stands there: the truth, or noise."""
    asked: Tensor
    """Which positions are in question, bool: those that are masked, or under uniform noise all of the gap."""
    owner: Tensor
    """The number of the canvas that a position belongs to, or NO_CANVAS."""
    cut: Tensor
    """Tokens of context that the position's canvas sees."""
    position: Tensor

    @property
    def conditioned(self) -> slice:
        """Rows that are denoised twice, fed their own first answer: half of them."""
        return slice(0, self.ids.shape[0] // 2)

    @property
    def counted(self) -> Tensor:
        """Which of the positions in question the loss is taken over, bool [B, C]."""
        slack = self.truth == PAD
        first = slack & ~slack.roll(1, dims=1)
        return self.asked & (~slack | first | (self.position % COUNTED_SLACK == 0))


@dataclass(slots=True)
class _Row:
    context: list[int]
    truth: list[int] = field(default_factory=list)
    canvas: list[int] = field(default_factory=list)
    asked: list[bool] = field(default_factory=list)
    owner: list[int] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    position: list[int] = field(default_factory=list)

    def add(self, cut: int, gap: Sequence[int], pinned: Sequence[int], noise: Noise) -> None:
        canvas, asked = noise(gap)
        length = len(gap) + len(pinned)
        self.owner += [self.owner[-1] + 1 if self.owner else 0] * length
        self.truth += [*gap, *pinned]
        self.canvas += [*canvas, *pinned]
        self.asked += asked + [False] * len(pinned)
        self.cut += [cut] * length
        self.position += range(cut, cut + length)


Noise = Callable[[Sequence[int]], tuple[list[int], list[bool]]]
"""Tokens of a gap -> the same with some replaced, and which of them count."""


def absorbing(rng: random.Random, blank: float = 0.0) -> Noise:
    """Hidden tokens of a gap become masks and are in question; at least one is. All of a share `blank` of gaps are."""

    def noise(gap: Sequence[int]) -> tuple[list[int], list[bool]]:
        hidden = _hidden(gap, rng, blank)
        hidden[rng.randrange(len(gap))] = True
        return [MASK if each else token for token, each in zip(gap, hidden, strict=True)], hidden

    return noise


def uniform(rng: random.Random, vocabulary: int, blank: float = 0.0) -> Noise:
    """Hidden tokens of a gap become any token, all tokens of a share `blank` of gaps; all of the gap is in question."""

    def noise(gap: Sequence[int]) -> tuple[list[int], list[bool]]:
        hidden = _hidden(gap, rng, blank)
        noised = [rng.randrange(vocabulary) if each else token for token, each in zip(gap, hidden, strict=True)]
        return noised, [True] * len(gap)

    return noise


def _hidden(gap: Sequence[int], rng: random.Random, blank: float) -> list[bool]:
    """All tokens; or each with a likelihood that is drawn once a gap, unused slots mostly all together; or one run of
    tokens: a canvas that settles from its sure ends inwards looks so."""
    if rng.random() < blank:
        return [True] * len(gap)
    if rng.random() < RUNS:
        used = sum(token != PAD for token in gap)
        if used < len(gap) and rng.random() < ENDED_RUNS:
            return [at >= used for at in range(len(gap))]
        start = rng.randrange(used)
        end = len(gap) if rng.random() < OPEN_RUNS else rng.randint(start + 1, used)
        return [start <= at < end for at in range(len(gap))]
    level = rng.random()
    slack = rng.random() < SLACK_HIDDEN
    return [(slack and token == PAD) or rng.random() < level for token in gap]


def canvas_batch(corpus: PackedCorpus, tokenizer: Tokenizer, preset: Preset, rng: random.Random) -> Canvases:
    """Rows of context, each with as many canvases as fit beside it."""
    blank = preset.blank_share
    noise = absorbing(rng, blank) if preset.noise == "absorbing" else uniform(rng, preset.shape.vocab, blank)
    maker = _Maker(corpus, tokenizer, preset, noise, rng)
    rows = [maker.row() for _ in range(preset.rows)]
    beside = preset.canvases
    return Canvases(
        ids=_stack([row.context for row in rows], preset.context, PAD),
        truth=_stack([row.truth for row in rows], beside, PAD),
        canvas=_stack([row.canvas for row in rows], beside, PAD),
        asked=_stack([row.asked for row in rows], beside, False),
        owner=_stack([row.owner for row in rows], beside, NO_CANVAS),
        cut=_stack([row.cut for row in rows], beside, 0),
        position=_stack([row.position for row in rows], beside, 0),
    )


def canvas_losses(network: Network, batch: Canvases) -> tuple[Tensor, Tensor]:
    """Mean cross-entropies in nats: of the canvas tokens that are counted, and of the context's next tokens."""
    store: dict[int, tuple[Tensor, Tensor]] = {}
    encoded = encode_rows(network, batch.ids, store)
    hidden = decode_rows(network, batch, store, _signal(network, batch, store))
    real = batch.ids[:, 1:] != PAD
    return (
        _cross_entropy(network, hidden[batch.counted], batch.truth[batch.counted]),
        _cross_entropy(network, encoded[:, :-1][real], batch.ids[:, 1:][real]),
    )


def _cross_entropy(network: Network, hidden: Tensor, targets: Tensor) -> Tensor:
    cap = network.module.final_logit_softcapping
    return capped_cross_entropy(hidden, network.module.lm_head.weight, targets, cap)


def decode_rows(network: Network, batch: Canvases, store: KeysAndValues, signal: Tensor | None) -> Tensor:
    """Hidden states [B, C, E] of canvases over the context whose keys and values are in `store`."""
    return network.decode(batch.canvas, batch.position, _attend(network, batch, store), signal)


@torch.no_grad()
def _signal(network: Network, batch: Canvases, store: KeysAndValues) -> Tensor:
    """Self-conditioning [B, C, E] of the rows that have it; known positions speak for themselves."""
    rows = batch.conditioned
    part = Canvases(**{each.name: getattr(batch, each.name)[rows] for each in fields(batch)})
    first = {index: (key[rows].detach(), value[rows].detach()) for index, (key, value) in store.items()}
    hidden = decode_rows(network, part, first, None)
    told = network.decoder.embed_tokens(part.truth)
    told[part.asked] = network.soft_embeddings(network.logits(hidden[part.asked])).to(told.dtype)
    signal = told.new_zeros(*batch.canvas.shape, told.shape[-1])
    signal[rows] = told
    return signal


def _attend(network: Network, batch: Canvases, store: KeysAndValues) -> Attend:
    slots = torch.arange(batch.ids.shape[1], device=batch.ids.device)
    before = slots[None, None, :] < batch.cut[:, :, None]
    near = before & (slots[None, None, :] > batch.cut[:, :, None] - network.config.sliding_window)
    beside = batch.owner[:, :, None] == batch.owner[:, None, :]
    full, sliding = (bias(network, torch.cat((context, beside), dim=2)[:, None]) for context in (before, near))

    def attend(index: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        keys, values = store[index]
        mask = sliding if network.sliding(index) else full
        return attention(query, torch.cat((keys, key), dim=2), torch.cat((values, value), dim=2), mask)

    return attend


class _Maker:
    """Draws rows for one batch."""

    def __init__(
        self, corpus: PackedCorpus, tokenizer: Tokenizer, preset: Preset, noise: Noise, rng: random.Random
    ) -> None:
        self._corpus, self._tokenizer, self._preset, self._noise, self._rng = corpus, tokenizer, preset, noise, rng
        self._layout = Layout()
        self._kinds: list[Kind] = [kind for kind, times in FREQUENCY.items() for _ in range(times)]
        self._size = int(preset.context * CHARACTERS_PER_TOKEN)

    def row(self) -> _Row:
        rng, preset = self._rng, self._preset
        index = choose_document(self._corpus, rng)
        text, language = self._corpus.text(index), self._corpus.language(index)
        start = rng.randrange(max(1, len(text) - self._size // 2)) if rng.random() < 0.7 else 0
        end, later = self._end_and_later(text, start)
        room = preset.context - len(self._layout.context(language, later, ()))
        window = text[start:end]
        edges = self._edges(window)[: room + 1]
        found = self._holes(text, language, start, edges)
        made = self._canvases(text, start, found, set(edges))
        pieces, cuts = self._pieces(window, [begin for begin, _, _ in made])
        row = _Row(context=self._layout.context(language, later, pieces[:room]))
        ahead = len(row.context) - min(room, len(pieces))
        for (_, gap, pinned), cut in zip(made, cuts, strict=True):
            if cut <= room:
                row.add(ahead + cut, gap, pinned, self._noise)
        return row

    def _holes(self, text: str, language: str, start: int, edges: Sequence[int]) -> list[Hole]:
        """More gaps than fit beside a row, in characters behind `start`; each begins in front of the last edge."""
        count = 2 * self._preset.canvases // max(PINNED)
        spans = sum(self._rng.random() < self._preset.span_share for _ in range(count))
        drawn = [self._span(text[start:], self._rng.choice(edges)) for _ in range(spans)]
        by_syntax = holes(text[start : start + edges[-1]], language, self._rng, self._kinds, count=count - spans)
        return [span for span in drawn if span] + by_syntax

    def _span(self, text: str, start: int) -> Hole | None:
        """A gap between two tokens, short ones as often as long ones; None where the text ends before it does."""
        size = self._rng.randint(1, LONGEST_SPAN)
        ahead = self._tokenizer.encode(text[start : start + 8 * size], add_special_tokens=False).offsets
        return Hole(kind="span", start=start, end=start + ahead[size - 1][1]) if len(ahead) > size else None

    def _edges(self, window: str) -> list[int]:
        """Where tokens begin or end, in characters."""
        return [0, *(end for _, end in self._tokenizer.encode(window, add_special_tokens=False).offsets)]

    def _canvases(
        self, text: str, start: int, found: Sequence[Hole], edges: AbstractSet[int]
    ) -> list[tuple[int, list[int], list[int]]]:
        """(where in the window, gap, pinned) of canvases that fit side by side, in the order of the text."""
        inside = max(1, self._preset.context // CONTEXT_A_CUT)
        room = self._preset.canvases
        made: list[tuple[int, list[int], list[int]]] = []
        for hole in self._rng.sample(found, len(found)):
            gap, pinned = self._canvas(text, start + hole.start, start + hole.end)
            split = hole.start not in edges
            if gap and len(gap) + len(pinned) <= room and (inside or not split):
                inside -= split
                room -= len(gap) + len(pinned)
                made.append((hole.start, gap, pinned))
        return sorted(made, key=lambda canvas: canvas[0])

    def _canvas(self, text: str, begin: int, end: int) -> tuple[list[int], list[int]]:
        """Gap, with its unused slots as <pad>, and pinned suffix; nothing where it fits no canvas."""
        if self._rng.random() < self._preset.free_share:
            width = self._rng.choice((*WIDTHS, self._preset.shape.canvas))
            gap = encode(self._tokenizer, text[begin : begin + 8 * width])[:width]
            if begin + 8 * width >= len(text):
                gap = [*gap, EOS, *[PAD] * width][:width]
            return (gap, []) if len(gap) == width else ([], [])
        gap = encode(self._tokenizer, text[begin:end])
        if not gap or len(gap) > WIDTHS[-1]:
            return [], []
        width = self._width(gap)
        size = self._rng.choice(PINNED)
        after = encode(self._tokenizer, text[end : end + 12 * size])
        pinned = after[:size] if len(after) >= size else [*after, EOS]
        return gap[:width] + [PAD] * (width - len(gap)), pinned

    def _width(self, gap: Sequence[int]) -> int:
        kind = self._rng.random()
        if kind < self._preset.fitting_share:
            return len(gap)
        if kind > 1 - self._preset.narrow_share and len(gap) > WIDTHS[0]:
            return self._rng.choice(WIDTHS[: bisect_left(WIDTHS, len(gap))])
        wide_enough = WIDTHS[bisect_left(WIDTHS, len(gap)) :]
        # A wide canvas costs as much as several narrow ones, and mostly teaches padding.
        return self._rng.choices(wide_enough, [1 / width for width in wide_enough])[0]

    def _end_and_later(self, text: str, start: int) -> tuple[int, list[int]]:
        """Where the window ends, and what comes later; of a short text the window is a part, so that something does."""
        end, width = start + self._size, self._preset.context
        if self._rng.random() >= LATER:
            return end, []
        if end >= len(text):
            end = self._rng.randint((start + len(text)) // 2, len(text))
        at = end + self._rng.randrange(min(200, max(1, len(text) - end)))
        return end, encode(self._tokenizer, text[at : at + 2 * width])[: self._rng.randrange(16, width // 3)]

    def _pieces(self, window: str, starts: Sequence[int]) -> tuple[list[int], list[int]]:
        """The window's tokens with a boundary at each of `starts`, and how many lie before each."""
        edges = [0, *starts, len(window)]
        texts = [window[a:b] for a, b in pairwise(edges)]
        ids: list[int] = []
        cuts: list[int] = []
        for part in self._tokenizer.encode_batch_fast(texts, add_special_tokens=False):
            ids += part.ids
            cuts.append(len(ids))
        return ids, cuts[:-1]


def _stack(rows: Sequence[Sequence[int] | Sequence[bool]], width: int, filler: int | bool) -> Tensor:
    return torch.tensor([[*row, *[filler] * (width - len(row))] for row in rows])
