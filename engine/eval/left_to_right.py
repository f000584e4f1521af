"""What an autoregressive model of the same size does: the same weights, read left to right."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from engine.errors import BadInput
from engine.key_values import window_mask
from engine.models.base import Model
from engine.models.diffusion_gemma import DiffusionGemma
from engine.models.gemma_network import attention
from engine.request import Candidate, Filled, FillRequest, Timings

_SHORTEST_MEETING = 3
"""Characters other than white space by which the suffix is recognised."""


def fill_left_to_right(model: Model, request: FillRequest) -> Filled:
    """Greedy next tokens behind the prefix alone, up to where they meet the suffix: see `cut`.

    Raises BadInput for a model that has no causal encoder.
    """
    own = causal(model)
    began = time.perf_counter()
    prompt = own.prompt(replace(request, suffix=""))
    ids: list[int] = []
    for token in next_tokens(own, (*prompt.context, *own.tokenize(prompt.head))):
        if token in own.facts.forbidden_ids or token == own.facts.pad_id or len(ids) == request.max_tokens:
            break
        ids.append(token)
        if meeting(own.detokenize(ids), request.suffix) is not None:
            break
    text = cut(own.detokenize(ids), request.suffix)
    ms = (time.perf_counter() - began) * 1000
    return Filled(
        model=own.facts.name,
        device=own.facts.device,
        candidates=(Candidate(text=text, tokens=len(ids), confidence=1.0, score=0.0),) if text else (),
        width=len(ids),
        steps=len(ids),
        forwards=len(ids),
        ms=Timings(total=ms),
    )


def causal(model: Model) -> DiffusionGemma:
    """The model, as one whose encoder predicts next tokens. Raises BadInput."""
    if not isinstance(model, DiffusionGemma):
        raise BadInput(f"{model.facts.name} has no causal encoder to read left to right with: leave that row out.")
    return model


def cut(text: str, suffix: str) -> str:
    """Where a text that can't see the suffix is cut: where it meets it, else behind its first line."""
    end = meeting(text, suffix)
    if end is not None:
        return text[:end]
    body = text.lstrip()
    line = body.splitlines(keepends=True)[0] if body else ""
    line = text[: len(text) - len(body)] + line
    return line.rstrip("\r\n") if suffix[:1] in ("", "\r", "\n") else line


def meeting(text: str, suffix: str) -> int | None:
    """Where `text` goes on with `suffix`, as far as its first line with something on it; None where it does not."""
    beginning = ""
    for line in suffix.splitlines(keepends=True):
        beginning += line
        if len("".join(beginning.split())) >= _SHORTEST_MEETING:
            break
    beginning = beginning.rstrip()
    at = text.find(beginning) if beginning else -1
    return at if at >= 0 else None


@torch.inference_mode()
def next_tokens(model: DiffusionGemma, ids: Sequence[int]) -> Iterator[int]:
    """Greedy next tokens behind `ids`, with a cache of keys and values, without end."""
    context = model.encode(ids)
    # The cached context stays as it is; the tokens to come are appended to a copy.
    store = context.store.copy(context.length - 1)
    network, last, start = model.network, ids[-1], context.length - 1
    while True:
        tokens = torch.tensor([[last]], device=network.device)
        positions = torch.tensor([[start]], device=network.device)

        def attend(index: int, query: Tensor, key: Tensor, value: Tensor, start: int = start) -> Tensor:
            keys, values = store.update(start, index, key, value)
            window = network.config.sliding_window if network.sliding(index) else None
            first = max(0, start - window + 1) if window else 0
            mask = window_mask(start, 1, first, window, query.device)
            return attention(query, keys[:, :, first:], values[:, :, first:], mask)

        last = int(network.logits(network.encode(tokens, positions, attend))[0, -1].argmax())
        start += 1
        yield last
