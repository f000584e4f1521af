"""Canvases over shared rows of context. Each is [gap | pinned suffix], sees the context of its example up to its cut,
and its gap is denoised. Those of a row lie side by side, [C] tokens in all.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from torch import Tensor

from engine.models.gemma.network import GemmaNetwork
from engine.models.network import Attend
from engine.models.prompts.layout import EOS, MASK, PAD
from engine.train.contexts import Contexts, KeysAndValues, Row, bias, contexts, filled_rows, next_token_loss, stack
from engine.train.examples import Example, Examples
from engine.train.loss import capped_cross_entropy
from engine.train.presets import Preset

WIDTHS = (4, 8, 12, 16, 24, 32, 48, 64)
"""Gap widths in tokens of canvases that are wider than their text, or narrower."""
FEWEST_PINNED = 8
"""Suffix tokens on a canvas at the least; a preset says how many at the most."""
RUNS, OPEN_RUNS, ENDED_RUNS = 0.5, 0.75, 0.25
"""Canvases whose noise is one run of tokens; those of them where it reaches the suffix, and those with unused slots
where it is nothing but these: all text is there, and the gap ends."""
SLACK_HIDDEN = 0.75
"""Canvases whose unused slots are noise all together: a fill meets them so when it has to find its own end."""
COUNTED_SLACK = 4
"""Of the unused slots one in so many counts, and the first: they are easy, and would be most of a wide canvas."""
INNER = 4
"""Gaps that are drawn inside 64 tokens of context; more than fit beside it."""
TWICE = 2
"""Canvases of the gap that an example ends at, whose suffix is in its context."""
NO_CANVAS = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Canvases:
    """Rows of context, and beside them, all [B, C]:"""

    contexts: Contexts
    truth: Tensor
    """What belongs at each canvas position."""
    canvas: Tensor
    """What stands there: the truth, or noise."""
    asked: Tensor
    """Which positions are in question, bool: those that are masked, or under uniform noise all of the gap."""
    owner: Tensor
    """The number of the canvas that a position belongs to, or NO_CANVAS."""
    example: Tensor
    """The number of the example that the canvas sees."""
    cut: Tensor
    """Where in the row ends what it sees of it."""
    position: Tensor
    """In its example."""
    begin: Tensor
    """The position at which its canvas begins."""

    @property
    def conditioned(self) -> slice:
        """Rows that are denoised twice, fed their own first answer: a quarter of them."""
        return slice(0, -(-len(self.canvas) // 4))

    @property
    def counted(self) -> Tensor:
        """Which of the positions in question the loss is taken over, bool [B, C]."""
        slack = self.truth == PAD
        first = slack & ~slack.roll(1, dims=1)
        return self.asked & (~slack | first | (self.position % COUNTED_SLACK == 0))


@dataclass(slots=True)
class _Beside:
    """The canvases of one row while they are drawn."""

    truth: list[int] = field(default_factory=list)
    canvas: list[int] = field(default_factory=list)
    asked: list[bool] = field(default_factory=list)
    owner: list[int] = field(default_factory=list)
    example: list[int] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    position: list[int] = field(default_factory=list)
    begin: list[int] = field(default_factory=list)

    def add(self, example: int, start: int, cut: int, gap: Sequence[int], pinned: Sequence[int], noise: Noise) -> None:
        """`start` of the example in the row; the canvas sees `cut` tokens of it."""
        canvas, asked = noise(gap)
        length = len(gap) + len(pinned)
        self.owner += [self.owner[-1] + 1 if self.owner else 0] * length
        self.truth += [*gap, *pinned]
        self.canvas += [*canvas, *pinned]
        self.asked += asked + [False] * len(pinned)
        self.example += [example] * length
        self.cut += [start + cut] * length
        self.position += range(cut, cut + length)
        self.begin += [cut] * length


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


def canvas_batch(examples: Examples, preset: Preset, width: int, rng: random.Random) -> Canvases:
    """Rows of context, each with as many canvases as fit beside it."""
    blank = preset.blank_share
    noise = absorbing(rng, blank) if preset.noise == "absorbing" else uniform(rng, preset.shape.vocab, blank)
    made = [
        (row, _beside(row, kept, preset, width, noise, rng))
        for row, kept in filled_rows(examples, preset.rows(width), width, INNER)
    ]
    size = preset.beside(width)
    fillers: dict[str, int | bool] = {"truth": PAD, "canvas": PAD, "asked": False, "owner": NO_CANVAS}
    return Canvases(
        contexts=contexts([row for row, _ in made], width),
        **{
            each.name: stack([getattr(beside, each.name) for _, beside in made], size, fillers.get(each.name, 0))
            for each in fields(_Beside)
        },
    )


def _beside(row: Row, kept: Sequence[Example], preset: Preset, width: int, noise: Noise, rng: random.Random) -> _Beside:
    places: list[tuple[int, int, list[int], list[int]]] = []
    for index, example in enumerate(kept):
        if example.gap:
            places += [(index, len(example.context), example.gap, example.after)] * TWICE
        places += [(index, inner.cut, inner.gap, inner.after) for inner in example.inner]
    beside, room = _Beside(), preset.beside(width)
    for index, cut, text, after in rng.sample(places, len(places)):
        gap, pinned = _canvas(text, after, preset, rng)
        if gap and len(gap) + len(pinned) <= room:
            room -= len(gap) + len(pinned)
            beside.add(index, row.starts[index], cut, gap, pinned, noise)
    return beside


def _canvas(
    text: Sequence[int], after: Sequence[int], preset: Preset, rng: random.Random
) -> tuple[list[int], list[int]]:
    """Gap, with its unused slots as <pad>, and pinned suffix; nothing where the text just goes on and is too short."""
    if rng.random() < preset.free_share:
        width = rng.choice((*WIDTHS, preset.shape.canvas))
        going_on = [*text, *after]
        going_on += [PAD] * width if EOS in going_on else []
        return (going_on[:width], []) if len(going_on) >= width else ([], [])
    width = _width(text, preset, rng)
    # One length as often as another; where the text ends, that is told.
    pinned = after[: rng.randint(min(FEWEST_PINNED, preset.pinned), preset.pinned)]
    return [*text[:width], *[PAD] * (width - len(text))], [*pinned]


def _width(gap: Sequence[int], preset: Preset, rng: random.Random) -> int:
    kind = rng.random()
    if kind < preset.fitting_share:
        return len(gap)
    if kind > 1 - preset.narrow_share and len(gap) > WIDTHS[0]:
        return rng.choice(WIDTHS[: bisect_left(WIDTHS, len(gap))])
    wide_enough = WIDTHS[bisect_left(WIDTHS, len(gap)) :]
    # A wide canvas costs as much as several narrow ones, and mostly teaches padding.
    return rng.choices(wide_enough, [1 / width for width in wide_enough])[0]


def canvas_losses(network: GemmaNetwork, batch: Canvases) -> tuple[Tensor, Tensor]:
    """Mean cross-entropies in nats: of the canvas tokens that are counted, and of the context's next tokens."""
    store: dict[int, tuple[Tensor, Tensor]] = {}
    next_token = next_token_loss(network, batch.contexts, store)
    hidden = decode_rows(network, batch, store, _signal(network, batch, store))
    counted, cap = batch.counted, network.module.final_logit_softcapping
    canvas = capped_cross_entropy(hidden[counted], network.module.lm_head.weight, batch.truth[counted], cap)
    return canvas, next_token


def decode_rows(network: GemmaNetwork, batch: Canvases, store: KeysAndValues, signal: Tensor | None) -> Tensor:
    """Hidden states [B, C, E] of canvases over the context whose keys and values are in `store`."""
    return network.decode(batch.canvas, batch.position, _attend(network, batch, store), signal)


@torch.no_grad()
def _signal(network: GemmaNetwork, batch: Canvases, store: KeysAndValues) -> Tensor:
    """Self-conditioning [B, C, E] of the rows that have it; known positions speak for themselves."""
    rows = batch.conditioned
    part = _rows_of(batch, rows)
    first = {index: (key[rows].detach(), value[rows].detach()) for index, (key, value) in store.items()}
    hidden = decode_rows(network, part, first, None)
    told = network.embed(part.truth)
    told[part.asked] = network.soft_embeddings(network.logits(hidden[part.asked])).to(told.dtype)
    signal = told.new_zeros(*batch.canvas.shape, told.shape[-1])
    signal[rows] = told
    return signal


def _rows_of(batch: Any, rows: slice) -> Any:
    """The same kind of batch with some of its rows."""
    parts = {each.name: getattr(batch, each.name) for each in fields(batch)}
    return type(batch)(**{k: v[rows] if isinstance(v, Tensor) else _rows_of(v, rows) for k, v in parts.items()})


def _attend(network: GemmaNetwork, batch: Canvases, store: KeysAndValues) -> Attend:
    slots = torch.arange(batch.contexts.ids.shape[1], device=batch.canvas.device)
    before = (batch.contexts.example[:, None, :] == batch.example[:, :, None]) & (slots < batch.cut[:, :, None])
    # The window is that of a canvas's first position, as the reference has it.
    near = before & (batch.contexts.position[:, None, :] > batch.begin[:, :, None] - network.config.sliding_window)
    beside = batch.owner[:, :, None] == batch.owner[:, None, :]
    full, sliding = (bias(network, torch.cat((seen, beside), dim=2)[:, None]) for seen in (before, near))

    def attend(index: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        keys, values = store[index]
        mask = sliding if network.sliding(index) else full
        return network.attention(query, torch.cat((keys, key), dim=2), torch.cat((values, value), dim=2), mask)

    return attend
