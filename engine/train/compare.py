"""The recipe's own test: the canvas, which sees what follows the gap, against the causal head on the same weights."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from engine.core.request import FillRequest
from engine.decoding.canvas import new_canvas
from engine.decoding.executor import drive
from engine.infill.pipeline import infill
from engine.models.base import Rows
from engine.models.gemma.model import DiffusionGemma
from engine.syntax.holes import holes
from engine.train.contexts import encode_rows
from engine.train.packed import PackedCorpus

LONGEST = 16
"""Tokens of a gap."""
_AROUND = 1500
"""Characters of text on either side of a gap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Shares in [0, 1]. The width of a gap is told."""

    gaps: int
    canvas_exact: float
    """Gaps that the engine fills with the very text."""
    causal_exact: float
    """Gaps that greedy next tokens fill with the very tokens."""
    canvas_tokens: float
    """Tokens that one step from a blank canvas gets right."""
    causal_tokens: float
    """Tokens that the causal head gets right, each behind the true ones."""

    def table(self) -> str:
        """For a model card."""
        return (
            f"On {self.gaps} gaps of 1 to {LONGEST} tokens in packages that were held out, their width told:\n\n"
            "| | the very text | tokens right |\n|---|--:|--:|\n"
            f"| canvas | {self.canvas_exact:.1%} | {self.canvas_tokens:.1%} in one step |\n"
            f"| next tokens, greedy | {self.causal_exact:.1%} | {self.causal_tokens:.1%} behind the true ones |\n"
        )


@torch.inference_mode()
def compare(model: DiffusionGemma, corpus: PackedCorpus, gaps: int, seed: int = 0) -> Comparison:
    """Fill `gaps` gaps of `corpus` both ways."""
    exact, exact_causal = 0, 0
    right, right_causal, tokens = 0, 0, 0
    for request, answer in _gaps(model, corpus, gaps, random.Random(f"{seed}/compare")):
        truth = model.tokenize(answer)
        candidates = drive(model, infill(model, request)).candidates
        exact += bool(candidates) and candidates[0].text == answer
        right += _in_one_step(model, request, truth)
        causal = _next_tokens(model, request, truth)
        right_causal += causal
        exact_causal += causal == len(truth)
        tokens += len(truth)
    return Comparison(
        gaps=gaps,
        canvas_exact=exact / gaps,
        causal_exact=exact_causal / gaps,
        canvas_tokens=right / tokens,
        causal_tokens=right_causal / tokens,
    )


def _gaps(
    model: DiffusionGemma, corpus: PackedCorpus, count: int, rng: random.Random
) -> Iterator[tuple[FillRequest, str]]:
    while count:
        index = corpus.choose(rng)
        text, language = corpus.text(index), corpus.language(index)
        for hole in holes(text, language, rng, count=2):
            answer = text[hole.start : hole.end]
            width = len(model.tokenize(answer))
            if count and width <= LONGEST:
                count -= 1
                yield (
                    FillRequest(
                        prefix=text[max(0, hole.start - _AROUND) : hole.start],
                        suffix=text[hole.end : hole.end + _AROUND],
                        language=language,
                        width=width,
                    ),
                    answer,
                )


def _in_one_step(model: DiffusionGemma, request: FillRequest, truth: list[int]) -> int:
    prompt = model.prompt(request)
    context = model.encode(prompt.context)
    generator = torch.Generator().manual_seed(0)
    canvas = new_canvas([context], [[*[None] * len(truth), *prompt.suffix]], model.info.noise, generator)
    rows = Rows(
        contexts=canvas.contexts,
        canvas=canvas.ids,
        lengths=canvas.lengths,
        open=canvas.open,
        self_conditioning=None,
        conditioned=[False],
    )
    logits = model.step(rows)
    # With the width told, no slot is unused.
    logits[:, [*model.info.forbidden_ids, model.info.pad_id]] = -torch.inf
    return sum(a == b for a, b in zip(logits.argmax(dim=-1).tolist(), truth, strict=True))


def _next_tokens(model: DiffusionGemma, request: FillRequest, truth: list[int]) -> int:
    ids = [*model.prompt(request).context, *truth]
    hidden = encode_rows(model.network, torch.tensor([ids], device=model.network.device))
    guesses = model.network.logits(hidden[0, -len(truth) - 1 : -1]).argmax(dim=-1).tolist()
    return sum(a == b for a, b in zip(guesses, truth, strict=True))
