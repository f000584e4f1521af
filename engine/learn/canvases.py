"""Training canvases beside shared rows of context.

A canvas is [gap | pinned suffix]. It sees the context of its example up to a cut, and its gap is denoised. The canvases
of a row lie side by side, C tokens in all.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.learn.contexts import (
    ContextRow,
    Contexts,
    KeysAndValues,
    bias_of,
    context_losses,
    contexts,
    of_tensors,
    stacked,
)
from engine.learn.loss import capped_cross_entropy
from engine.learn.training_recipe import Recipe
from engine.models.gemma.network import GemmaNetwork
from engine.models.network import Attend
from engine.models.prompts.layout import EOS, MASK, PAD

WIDTHS = (4, 8, 12, 16, 24, 32, 48, 64)
"""Widths in tokens of canvases that are wider or narrower than their text."""
FEWEST_PINNED = 8
"""Least number of suffix tokens on a canvas; the recipe has the largest."""
RUNS, OPEN_RUNS, ENDED_RUNS = 0.5, 0.75, 0.25
"""Shares: canvases whose noise is one run of tokens; of these, those where the run reaches the suffix; of canvases with
unused slots, those where the run is the unused slots alone, so that only the gap's end is to be found."""
SLACK_HIDDEN = 0.75
"""Share of canvases whose unused slots are all noise, as in a fill that has to find its own end."""
COUNTED_SLACK = 4
"""One in so many unused slots counts in the loss, and always the first: they are easy, and would be most of a wide
canvas."""
INNER = 4
"""Most gaps drawn inside 64 tokens of context. More do not fit on the canvases beside it."""
COPIES = 3
"""Canvases of the gap at the end of an example. The first may be blank, the others differ in what is known. Gaps inside
get the room that these leave."""
FED = 3
"""One in so many rows is denoised twice: see Canvases.conditioned."""
CHECKED = 0.5
"""Of the canvases with the model's own first answer, the share without any mask or feedback. On these the model learns
to say which tokens are right, as ranking needs."""
SHARPENED = 0.7
"""Temperature of the logits that are fed back to a canvas: the mean of a served canvas's (see engine.fill.sampling)."""
NO_CANVAS = -1
_FLAGS = ("queried", "drafted", "checked")
"""The boolean tensors of `Canvases`."""
_Place = tuple[int, int, list[int], list[int]]
"""The number of an example, where in it a gap begins, the gap's text, and what follows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canvases:
    """Rows of context and the canvases beside them; all canvas tensors are [B, C]."""

    contexts: Contexts
    truth: Tensor
    """The right token of each position."""
    canvas: Tensor
    """The token on each position: the right one, or noise."""
    blank: Tensor
    """The same canvas if nothing of the gap were known."""
    queried: Tensor
    """Positions to be predicted (bool): those that are masked, or the whole gap under uniform noise and where the
    model's own tokens may stand."""
    drafted: Tensor
    """Positions where the model's own first answer replaces `canvas` (bool)."""
    checked: Tensor
    """Positions of canvases on which nothing is masked (bool)."""
    owner: Tensor
    """The number of the canvas of a position, or NO_CANVAS."""
    example: Tensor
    """The number of the example that the canvas belongs to."""
    cut: Tensor
    """The end, in the row, of the context that the canvas sees."""
    position: Tensor
    """The position within the example."""
    begin: Tensor
    """The position at which its canvas begins."""

    @property
    def conditioned(self) -> slice:
        """The rows that are denoised twice. The second time they get the answer to a blank canvas as feedback, like all
        steps of a fill after the first. Part of each gap is known, and some of that may be wrong."""
        return slice(0, _fed(len(self.canvas)))

    @property
    def counted(self) -> Tensor:
        """Positions that count in the loss, bool [B, C]."""
        slack = self.truth == PAD
        first = slack & ~slack.roll(1, dims=1)
        return self.queried & (~slack | first | (self.position % COUNTED_SLACK == 0))


def noised(gap: Sequence[int], recipe: Recipe, rng: random.Random) -> tuple[list[int], list[bool]]:
    """Hide some tokens of a gap: returns the tokens with noise, and which of them are to be predicted.

    Absorbing noise: hidden tokens become masks and are predicted; at least one is. Uniform noise: they become any
    token, and the whole gap is predicted.
    """
    hidden = _hidden(gap, rng, recipe.blank_share)
    if recipe.noise == "uniform":
        vocabulary = recipe.shape.vocab
        tokens = [rng.randrange(vocabulary) if each else token for token, each in zip(gap, hidden, strict=True)]
        return tokens, [True] * len(gap)
    hidden[rng.randrange(len(gap))] = True
    return [MASK if each else token for token, each in zip(gap, hidden, strict=True)], hidden


def _hidden(gap: Sequence[int], rng: random.Random, blank: float) -> list[bool]:
    """Which tokens are hidden. Either all; or each with one probability for the gap, unused slots mostly together; or
    one run of tokens, as in a canvas that settles from both ends."""
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


def canvas_batch(rows_of_context: Iterable[ContextRow], recipe: Recipe, width: int, rng: random.Random) -> Canvases:
    """Rows of context with at most `width` tokens each, and as many canvases as fit beside them."""
    size = int(width * recipe.canvas_share)
    rows = [*rows_of_context]
    partly, right = replace(recipe, blank_share=0.0), replace(recipe, drafted_share=0.0)
    kinds = [partly if number < _fed(len(rows)) else right for number in range(len(rows))]
    made = [_beside(row, kind, size, rng) for row, kind in zip(rows, kinds, strict=True)]
    return side_by_side(contexts(rows, width), made, size)


def side_by_side(made: Contexts, beside: Sequence[Sequence[tuple[int, ...]]], size: int) -> Canvases:
    """The batch of rows of context with at most `size` canvas tokens beside each; `beside` has the parts of `Canvases`
    by token."""
    fillers = {"truth": PAD, "canvas": PAD, "blank": PAD, **dict.fromkeys(_FLAGS, False), "owner": NO_CANVAS}
    fillers |= dict.fromkeys(("example", "cut", "position", "begin"), 0)
    parts = stacked(beside, size, fillers)
    parts |= {name: parts[name].bool() for name in _FLAGS}
    return Canvases(contexts=made, **parts)


def _fed(rows: int) -> int:
    return -(-rows // FED)


def _places(row: ContextRow, recipe: Recipe, rng: random.Random) -> Iterator[tuple[_Place, Recipe]]:
    """The gaps of a row's examples and the kind of their noise, the most important ones first."""
    ends = [(index, len(each.context), each.gap, each.after) for index, each in enumerate(row.examples) if each.gap]
    inner = [(index, gap.cut, gap.gap, gap.after) for index, each in enumerate(row.examples) for gap in each.inner]
    partly = replace(recipe, blank_share=0.0)
    for copy in range(COPIES):
        yield from ((place, partly if copy else recipe) for place in rng.sample(ends, len(ends)))
        # Of a single token nothing can be known in part.
        ends = [place for place in ends if len(place[2]) > 1]
    yield from ((place, recipe) for place in rng.sample(inner, len(inner)))


def _beside(row: ContextRow, recipe: Recipe, room: int, rng: random.Random) -> list[tuple[int, ...]]:
    """The canvas tokens of a row, at most `room`, each with the parts of `Canvases`."""
    unknown = replace(recipe, blank_share=1.0)
    beside: list[tuple[int, ...]] = []
    owner = 0
    for (index, cut, text, after), noise in _places(row, recipe, rng):
        gap, pinned = _canvas(text, after, recipe, rng)
        if gap and len(beside) + len(gap) + len(pinned) <= room:
            canvas, queried = noised(gap, noise, rng)
            blank, _ = noised(gap, unknown, rng)
            drafted, checked = _drafted(queried, recipe, rng)
            queried = [True] * len(gap) if any(drafted) else queried
            parts = ([*each, *pinned] for each in (gap, canvas, blank))
            flags = ([*each, *[False] * len(pinned)] for each in (queried, drafted))
            tokens = zip(*parts, *flags, strict=True)
            sees = (checked, owner, index, row.starts[index] + cut)
            beside += [(*token, *sees, cut + at, cut) for at, token in enumerate(tokens)]
            owner += 1
    return beside


def _drafted(hidden: Sequence[bool], recipe: Recipe, rng: random.Random) -> tuple[list[bool], bool]:
    """Where the model's first answer stands on a canvas with these `hidden` positions, and whether that is all of
    it."""
    if recipe.noise == "uniform" or rng.random() >= recipe.drafted_share:
        return [False] * len(hidden), False
    level, checked = rng.random(), rng.random() < CHECKED
    return [(checked and each) or rng.random() < level for each in hidden], checked


def _canvas(
    text: Sequence[int], after: Sequence[int], recipe: Recipe, rng: random.Random
) -> tuple[list[int], list[int]]:
    """A gap, padded to its canvas's width, and its pinned suffix. Both are empty where the text has no gap and is too
    short."""
    if rng.random() < recipe.free_share:
        width = rng.choice((*WIDTHS, recipe.shape.canvas))
        going_on = [*text, *after]
        going_on += [PAD] * width if EOS in going_on else []
        return (going_on[:width], []) if len(going_on) >= width else ([], [])
    width = _width(text, recipe, rng)
    # One length as often as another; where the text ends, that is told.
    pinned = after[: rng.randint(min(FEWEST_PINNED, recipe.pinned), recipe.pinned)]
    return [*text[:width], *[PAD] * (width - len(text))], [*pinned]


def _width(gap: Sequence[int], recipe: Recipe, rng: random.Random) -> int:
    kind = rng.random()
    if kind < recipe.fitting_share:
        return len(gap)
    if kind > 1 - recipe.narrow_share and len(gap) > WIDTHS[0]:
        return rng.choice(WIDTHS[: bisect_left(WIDTHS, len(gap))])
    wide_enough = WIDTHS[bisect_left(WIDTHS, len(gap)) :]
    # A wide canvas costs as much as several narrow ones, and mostly teaches padding.
    return rng.choices(wide_enough, [1 / width for width in wide_enough])[0]


def canvas_losses(network: GemmaNetwork, batch: Canvases) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Mean cross-entropies in nats: of the counted canvas tokens, then the four of `context_losses`."""
    store: dict[int, tuple[Tensor, Tensor]] = {}
    of_contexts = context_losses(network, batch.contexts, store)
    canvas, fed = first_answer(network, batch, store)
    hidden = decode_rows(network, replace(batch, canvas=canvas), store, fed)
    counted, cap = batch.counted, network.module.final_logit_softcapping
    loss = capped_cross_entropy(hidden[counted], network.module.lm_head.weight, batch.truth[counted], cap)
    return loss, *of_contexts


def decode_rows(network: GemmaNetwork, batch: Canvases, store: KeysAndValues, fed: Tensor | None) -> Tensor:
    """Hidden states [B, C, E] of canvases over the context whose keys and values are in `store`."""
    return network.decode(batch.canvas, batch.position, _attend(network, batch, store), fed)


@torch.no_grad()
def first_answer(network: GemmaNetwork, batch: Canvases, store: KeysAndValues) -> tuple[Tensor, Tensor]:
    """The canvases [B, C] with the model's answer to blank ones where `drafted`, and the self-conditioning [B, C, E] of
    the rows that are fed it. Known positions are conditioned on their own token."""
    rows = batch.conditioned
    part = of_tensors(lambda tensor: tensor[rows], replace(batch, canvas=batch.blank))
    first = {index: (key[rows].detach(), value[rows].detach()) for index, (key, value) in store.items()}
    logits = network.logits(decode_rows(network, part, first, None)[part.queried])
    own, said = network.embed(part.truth), part.truth.clone()
    own[part.queried] = network.soft_embeddings(logits / SHARPENED).to(own.dtype)
    said[part.queried] = logits.argmax(dim=-1)
    canvas, fed = batch.canvas.clone(), own.new_zeros(*batch.canvas.shape, own.shape[-1])
    canvas[rows] = torch.where(part.drafted, said, batch.canvas[rows])
    fed[rows] = own.masked_fill(part.checked[..., None], 0.0)
    return canvas, fed


def _attend(network: GemmaNetwork, batch: Canvases, store: KeysAndValues) -> Attend:
    slots = torch.arange(batch.contexts.ids.shape[1], device=batch.canvas.device)
    before = (batch.contexts.example[:, None, :] == batch.example[:, :, None]) & (slots < batch.cut[:, :, None])
    # The window is that of a canvas's first position, as the reference has it.
    near = before & (batch.contexts.position[:, None, :] > batch.begin[:, :, None] - network.config.sliding_window)
    beside = batch.owner[:, :, None] == batch.owner[:, None, :]
    full, sliding = (bias_of(network, torch.cat((seen, beside), dim=2)[:, None]) for seen in (before, near))

    def attend(index: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        keys, values = store[index]
        mask = sliding if network.sliding(index) else full
        return network.attention(query, torch.cat((keys, key), dim=2), torch.cat((values, value), dim=2), mask)

    return attend
