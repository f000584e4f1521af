"""Baselines that write from left to right with the same weights, as an autoregressive model of the same size does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import torch
from msgspec.structs import replace
from torch import Tensor

from engine.common.request import Candidate, Filled, FillRequest, Timings
from engine.fill.distributions import likeliest, look
from engine.fill.executor import drive, filled_by
from engine.fill.gap import Gap
from engine.fill.lengths.strategies import Fitted, Fitting
from engine.fill.pipeline import Parts, infill
from engine.models.base import DraftTree, Model
from engine.models.logits import dense

_SHORTEST_MEETING = 3
"""Least number of characters other than white space by which the suffix is recognised."""


def fill_left_to_right(model: Model, request: FillRequest) -> Filled:
    """A fill by greedy next tokens after the prefix alone, cut where it meets the suffix: see `cut`."""
    began = time.perf_counter()
    assert model.left_to_right is not None
    prompt = model.prompt(replace(request, suffix=""))
    ends = {*model.info.forbidden_ids, model.info.pad_id}
    ids: list[int] = []
    forwards = 0
    for token in model.left_to_right.next_tokens((*prompt.context, *model.tokenize(prompt.head))):
        forwards += 1
        if token in ends:
            break
        ids.append(token)
        if len(ids) == request.max_tokens or meeting(model.detokenize(ids), request.suffix) is not None:
            break
    text = cut(model.detokenize(ids), request.suffix)
    return answered(model, text, len(ids), width=len(ids), forwards=forwards, began=began)


def fill_by_causal_head(model: Model, request: FillRequest, *, sampled: bool = False) -> Filled:
    """A fill by next tokens after the whole context, suffix included, up to the given width or the token that ends a
    gap. It is validated and ranked like a canvas's. Greedy, or `sampled` at a canvas's first temperature."""

    def choose(logits: Tensor) -> Tensor:
        return look(dense(logits), temperature=model.info.sampling.t_max, drawing=True, generator=generator).drawn

    def strategy(gap: Gap) -> Fitting:
        yield from ()  # no canvas is denoised
        head = model.tokenize(gap.prompt.head)
        ids, most = [*head], request.max_tokens if request.width is None else request.width
        stops = {model.info.end_id, *model.info.forbidden_ids} if request.width is None else set[int | None]()
        for token in gap_tokens(gap, head, choose if sampled else likeliest):
            gap.steps += 1
            if token in stops:
                break
            ids.append(token)
            if len(ids) >= most:
                break
        return Fitted(canvas=gap.canvas([ids]), widths=(len(ids),), slack=False, complete=True)

    generator = torch.Generator(device=model.info.device).manual_seed(request.seed)
    return drive(model, infill(model, request, parts=Parts(renoise=False, strategy=strategy)))


def gap_tokens(gap: Gap, begun: Sequence[int], choose: Callable[[Tensor], Tensor] = likeliest) -> Iterator[int]:
    """Next tokens of a gap after those that it begins with, without end. `choose` takes one from logits [1, V]."""
    head, known = gap.model.causal, tuple[int, ...]()
    assert head is not None
    text = head.begin(gap.context, gap.suffix, begun)
    while True:
        tree = DraftTree(ids=known, parents=tuple(range(-1, len(known) - 1)))
        known = (int(choose(head.check(text, tree)[-1:])),)
        text = head.accept(text, range(len(tree.ids)))
        yield known[0]


def answered(model: Model, text: str, tokens: int, *, width: int, forwards: int, began: float) -> Filled:
    """A baseline's answer: one candidate, or none where there is no text; each step is a forward pass."""
    candidates = [Candidate(text=text, tokens=tokens, confidence=1.0, score=0.0)] if text else []
    ms = Timings(total=(time.perf_counter() - began) * 1000)
    return filled_by(model, candidates, width=width, forwards=forwards, ms=ms)


def cut(text: str, suffix: str) -> str:
    """The part of a text that belongs to the gap, for a text written without seeing the suffix: up to where it meets
    the suffix, else its first line."""
    end = meeting(text, suffix)
    if end is not None:
        return text[:end]
    body = text.lstrip()
    line = body.splitlines(keepends=True)[0] if body else ""
    line = text[: len(text) - len(body)] + line
    return line.rstrip("\r\n") if suffix[:1] in ("", "\r", "\n") else line


def meeting(text: str, suffix: str) -> int | None:
    """Where in `text` the suffix begins, told by the suffix up to its first line that is not blank; None: nowhere."""
    beginning = ""
    for line in suffix.splitlines(keepends=True):
        beginning += line
        if len("".join(beginning.split())) >= _SHORTEST_MEETING:
            break
    beginning = beginning.rstrip()
    at = text.find(beginning) if beginning else -1
    return at if at >= 0 else None
