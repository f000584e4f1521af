"""Figures of a run's causal head on fixed texts of the held-out split."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import torch

from engine.learn.contexts import ContextRow, attend_within, context_losses, contexts, filled_rows
from engine.learn.examples import Example, Examples
from engine.learn.packed import PackedCorpus
from engine.learn.training_recipe import Recipe
from engine.models.gemma.network import GemmaNetwork
from engine.models.prompts.layout import PREFIX, SUFFIX, width_token

WIDTH = 512
"""Tokens in a row."""
PLAIN_ROWS = 96
AT_ONCE = 8
"""Rows in a forward pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """What the causal head has learnt; shares in [0, 1]."""

    nats: float
    """Loss a token, on texts that are not reordered."""
    gaps: int
    exact: float
    """Share of gaps whose every token is the likeliest after those before it."""
    exact_blind: float
    """The same share, without the suffix in the context."""
    ended: float
    """Share of gaps whose end is the likeliest token after their text."""
    stopped: float
    """Share of gaps that are right to the token and end there, no sooner."""
    wide: float
    """Share of gaps whose predicted width is right."""
    within_one: float
    """Share of gaps whose predicted width is right to within one token."""

    def line(self) -> str:
        return (
            f"{self.nats:.3f} nats a token; {self.gaps} gaps: exact {self.exact:.1%}, prefix only "
            f"{self.exact_blind:.1%}, end token {self.ended:.1%}, exact with its end {self.stopped:.1%}, "
            f"width {self.wide:.1%}, within one {self.within_one:.1%}"
        )


@torch.no_grad()
def assess(network: GemmaNetwork, corpus: PackedCorpus, recipe: Recipe, gaps: int, seed: int = 0) -> Assessment:
    """Assess `network` on plain texts and on `gaps` gaps of `corpus`."""
    bare = replace(recipe, snippet_share=0.0, echo_share=0.0, edit_share=0.0)
    plain = Examples(corpus, replace(bare, gap_share=0.0), random.Random(f"{seed}/plain"))
    rows = [*filled_rows(plain, PLAIN_ROWS, WIDTH)]
    losses = [
        float(context_losses(network, contexts(rows[at : at + AT_ONCE], WIDTH))[0])
        for at in range(0, len(rows), AT_ONCE)
    ]
    found = Examples(corpus, replace(bare, gap_share=1.0), random.Random(f"{seed}/gaps"))
    examples: list[Example] = []
    while len(examples) < gaps:
        example = found.draw(WIDTH - 2, 0)
        if example is not None and example.gap:
            examples.append(example)
    seen = _judged(network, examples, recipe.pinned)
    return Assessment(
        nats=fmean(losses),
        gaps=gaps,
        exact=fmean(exact for exact, _, _ in seen),
        exact_blind=fmean(exact for exact, _, _ in _judged(network, [*map(_without_suffix, examples)], 0)),
        ended=fmean(ended for _, ended, _ in seen),
        stopped=fmean(exact and ended for exact, ended, _ in seen),
        wide=fmean(off == 0 for _, _, off in seen),
        within_one=fmean(abs(off) <= 1 for _, _, off in seen),
    )


def _judged(network: GemmaNetwork, examples: Sequence[Example], pinned: int) -> list[tuple[bool, bool, int]]:
    """For each example: whether each token of its gap is the likeliest, whether its end is, and how far off its
    predicted width is."""
    judged: list[tuple[bool, bool, int]] = []
    for start in range(0, len(examples), AT_ONCE):
        rows = [ContextRow(pinned) for _ in examples[start : start + AT_ONCE]]
        for row, example in zip(rows, examples[start:], strict=False):
            row.add(example)
        batch = contexts(rows, max(len(row.tokens) for row in rows))
        hidden = network.encode(batch.ids, batch.position, attend_within(network, batch))
        for index, example in enumerate(examples[start : start + AT_ONCE]):
            # The tokens that predict the gap, its end, and (right before them) its width.
            size, first = len(example.gap or ()), len(example.context) + len(example.after[:pinned]) + 2
            places = torch.tensor([*range(first, first + size + 1), first - 1])
            guesses = network.logits(hidden[index, places]).argmax(dim=-1)
            right = (guesses == batch.target[index, places]).tolist()
            judged.append((all(right[:size]), right[size], int(guesses[-1]) - width_token(size)))
    return judged


def _without_suffix(example: Example) -> Example:
    """The context of an example as if nothing stood after its gap."""
    if SUFFIX not in example.context:
        return example
    start, end = example.context.index(SUFFIX), example.context.index(PREFIX)
    return replace(example, context=[*example.context[:start], *example.context[end:]])
