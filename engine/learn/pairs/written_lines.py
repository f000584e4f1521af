"""Self-distillation: gaps in lines that the base itself writes, so that a canvas learns drafts that its check
accepts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.learn.contexts import of_tensors
from engine.learn.pairs.batches import CanvasStep, StepSource
from engine.learn.pairs.canvas import NOTHING, Breaks, Prefilled, prefill, written
from engine.models.causal.opening import Coder

_FIRST = 0.5
"""Least share of a context's gaps that begin in its last line, if that has as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineGap:
    """The rest of a line from the written token `start` on."""

    start: int
    ids: list[int]


class WrittenLines:
    """Makes steps whose gaps are lines that the base wrote; it writes once for several steps."""

    def __init__(self, coder: Coder, source: StepSource, breaks: Breaks) -> None:
        recipe = source.recipe
        self._coder, self._recipe, self._seed = coder, recipe, source.seed
        self._readings = replace(
            source, recipe=replace(recipe, contexts=recipe.batch, widths=(1,), slots=1), lines=True
        )
        self._device = breaks.inside.device
        self._inside, self._head = breaks.inside.tolist(), breaks.head.tolist()
        self._held: tuple[int, Prefilled, list[list[LineGap]]] | None = None

    def step(self, number: int) -> Prefilled:
        """Step `number`; it does not depend on the calls before."""
        recipe = self._recipe
        share = max(1, recipe.batch // recipe.contexts)
        turn, part = divmod(number, share)
        if self._held is None or self._held[0] != turn:
            self._held = turn, *self._written(turn)
        _, of, gaps = self._held
        rows = slice(part * recipe.contexts, (part + 1) * recipe.contexts)
        own = of_tensors(lambda each: each[rows], of.step)
        return Prefilled(
            step=self._cut(own, gaps[rows], number), keys=[(key[rows], value[rows]) for key, value in of.keys]
        )

    @torch.no_grad()
    def _written(self, turn: int) -> tuple[Prefilled, list[list[LineGap]]]:
        """Contexts with what the base writes after each, and the gaps in that."""
        base, count = self._coder.network, self._recipe.written
        step = of_tensors(lambda each: each.to(self._device), self._readings[turn])
        step = replace(step, length=step.cut[:, 0])
        of = prefill(base, step)
        tokens, own = written(base, of, count)
        tokens = tokens[:, 0]
        gaps = [list(self._lines(each)) for each in tokens.tolist()]
        # What was written follows its context at once, over the padding.
        place = step.length[:, None] + torch.arange(count, device=self._device)
        ids = torch.cat((step.ids, torch.full_like(tokens, self._coder.fim.pad)), dim=1).scatter(1, place, tokens)
        keys = [
            (_after(key, more_keys, step.length - 1), _after(value, more_values, step.length - 1))
            for (key, value), (more_keys, more_values) in zip(of.keys, own, strict=True)
        ]
        return Prefilled(step=replace(step, ids=ids), keys=keys), gaps

    def _lines(self, tokens: list[int]) -> Iterator[LineGap]:
        """All gaps in these tokens that end with a line."""
        begins = 0
        for at, token in enumerate(tokens):
            ended = token in self._coder.fim.ends
            if ended or self._inside[token]:
                head = self._coder.fim.pad if ended else self._head[token]
                if head != NOTHING:
                    last = [] if head == self._coder.fim.pad else [head]
                    yield from (
                        LineGap(start=start, ids=[*tokens[start:at], *last])
                        for start in range(begins, at + 1)
                        if start < at or last
                    )
                begins = at + 1
            if ended:
                return

    def _cut(self, step: CanvasStep, gaps: list[list[LineGap]], number: int) -> CanvasStep:
        """A step with canvases for some of the gaps of each context."""
        recipe, rng = self._recipe, random.Random(f"{self._seed}/answers/{number}")
        width = recipe.widths[number % len(recipe.widths)]
        most = recipe.slots // width
        chosen = [_chosen(each, most, rng) for each in gaps]
        shape = (len(gaps), max(1, *map(len, chosen)))
        cut, gap = torch.ones(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
        text = torch.full((*shape, width), self._coder.fim.pad)
        for row, of_row in enumerate(chosen):
            for at, each in enumerate(of_row):
                cut[row, at], gap[row, at] = int(step.length[row]) + each.start, len(each.ids)
                text[row, at, : len(each.ids)] = torch.tensor(each.ids[:width])
        draw = torch.Generator().manual_seed(rng.getrandbits(48))
        blank = torch.rand(shape, generator=draw) < recipe.blank
        known = torch.rand(shape, generator=draw).masked_fill(blank, 0)
        return replace(
            step,
            cut=cut.to(self._device),
            gap=gap.to(self._device),
            text=text.to(self._device),
            to_line_end=(gap > 0).to(self._device),
            known=known.to(self._device),
            draw=torch.rand((*shape, width), generator=draw).to(self._device),
        )


def _chosen(gaps: list[LineGap], most: int, rng: random.Random) -> list[LineGap]:
    """Up to `most` of the gaps of one context, in the order of the text."""
    line = len(gaps[0].ids) if gaps else 0
    first, more = gaps[:line], gaps[line:]
    least = max(round(_FIRST * most), most - len(more))
    chosen = rng.sample(first, min(len(first), least))
    chosen += rng.sample(more, min(len(more), most - len(chosen)))
    return sorted(chosen, key=lambda each: each.start)


def _after(context: Tensor, own: Tensor, start: Tensor) -> Tensor:
    """Keys or values [B, K, N + W, D] of contexts [B, K, N, D], those of W tokens [B, K, W, D] from `start` [B] on."""
    whole = torch.cat((context, torch.zeros_like(own)), dim=2)
    place = start[:, None] + torch.arange(own.shape[2], device=own.device)
    return whole.scatter(2, place[:, None, :, None].expand_as(own), own)
