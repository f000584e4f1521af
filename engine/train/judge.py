"""What the causal head of a run has learnt, on fixed texts of the held-out split: the gates of the recipe."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.models.gemma.network import GemmaNetwork
from engine.models.prompts.layout import PREFIX, SUFFIX, width_token
from engine.train.contexts import Row, attend_within, contexts, filled_rows, next_token_loss
from engine.train.examples import Example, Examples
from engine.train.packed import PackedCorpus
from engine.train.presets import Preset

WIDTH = 512
"""Tokens of a row."""
PLAIN_ROWS = 96
AT_ONCE = 8
"""Rows"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Shares in [0, 1]."""

    nats: float
    """A token, of texts that are not reordered."""
    gaps: int
    exact: float
    """Gaps whose every token is the likeliest behind those before it."""
    exact_blind: float
    """The same, without the suffix in the context."""
    ended: float
    """Gaps whose end is the likeliest token behind their text."""
    stopped: float
    """Gaps that are filled with the very tokens and end there, no sooner."""
    wide: float
    """Gaps whose width is the likeliest answer when it is asked for."""
    within_one: float
    """Those that are told to within one token."""

    def line(self) -> str:
        """For people."""
        return (
            f"{self.nats:.3f} nats a token; {self.gaps} gaps: exact {self.exact:.1%}, prefix only "
            f"{self.exact_blind:.1%}, end token {self.ended:.1%}, exact with its end {self.stopped:.1%}, "
            f"width {self.wide:.1%}, within one {self.within_one:.1%}"
        )


@torch.no_grad()
def judge(network: GemmaNetwork, corpus: PackedCorpus, preset: Preset, gaps: int, seed: int = 0) -> Judgement:
    """Read plain texts and `gaps` gaps of `corpus`."""
    bare = replace(preset, snippet_share=0.0, edit_share=0.0)
    plain = Examples(corpus, replace(bare, gap_share=0.0), random.Random(f"{seed}/plain"))
    rows = [row for row, _ in filled_rows(plain, PLAIN_ROWS, WIDTH)]
    losses = [
        float(next_token_loss(network, contexts(rows[at : at + AT_ONCE], WIDTH))) for at in range(0, len(rows), AT_ONCE)
    ]
    asked = Examples(corpus, replace(bare, gap_share=1.0), random.Random(f"{seed}/gaps"))
    examples: list[Example] = []
    while len(examples) < gaps:
        example = asked.draw(WIDTH - 2, 0)
        if example is not None and example.gap:
            examples.append(example)
    seen = [each for at in range(0, gaps, AT_ONCE) for each in _read(network, examples[at : at + AT_ONCE])]
    blind = [
        each
        for at in range(0, gaps, AT_ONCE)
        for each in _read(network, [_without_suffix(example) for example in examples[at : at + AT_ONCE]])
    ]

    def share(hits: Sequence[bool]) -> float:
        return sum(hits) / len(hits)

    return Judgement(
        nats=sum(losses) / len(losses),
        gaps=gaps,
        exact=share([each.exact for each in seen]),
        exact_blind=share([each.exact for each in blind]),
        ended=share([each.ended for each in seen]),
        stopped=share([each.exact and each.ended for each in seen]),
        wide=share([each.off == 0 for each in seen]),
        within_one=share([abs(each.off) <= 1 for each in seen]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    exact: bool
    ended: bool
    off: int


def _read(network: GemmaNetwork, examples: Sequence[Example]) -> list[_Reading]:
    rows: list[Row] = []
    for example in examples:
        row = Row()
        row.add(example)
        rows.append(row)
    batch = contexts(rows, max(len(row.ids) for row in rows))
    hidden = network.encode(batch.ids, batch.position, attend_within(network, batch))
    readings: list[_Reading] = []
    for index, example in enumerate(examples):
        size = len(example.gap or ())
        # The tokens that predict the gap, its end, and (behind that, seen by nobody) its width.
        first = len(example.context) - 1
        places: Tensor = torch.tensor([*range(first, first + size + 1), first + size + 2])
        guesses = network.logits(hidden[index, places]).argmax(dim=-1)
        right = (guesses == batch.target[index, places]).tolist()
        readings.append(_Reading(exact=all(right[:size]), ended=right[size], off=int(guesses[-1]) - width_token(size)))
    return readings


def _without_suffix(example: Example) -> Example:
    """Its context as if nothing stood behind the gap."""
    if SUFFIX not in example.context:
        return example
    start = example.context.index(SUFFIX)
    end = example.context.index(PREFIX)
    return replace(example, context=[*example.context[:start], *example.context[end:]])
