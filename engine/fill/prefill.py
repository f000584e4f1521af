"""Contexts that take long to encode: piece by piece, so that something newer interrupts it, and no more than a deadline
leaves time for.

Where a context is causal, what is near the gap can't be encoded ahead of what is far from it, which it depends on. So a
context that would come too late is laid out as for a model that reads less, and the whole of it is left to be encoded
when nothing else is to do: the next key finds it, or so much of it as was done by then. How long a token takes is
remembered: the first piece of a whole that can't be had in time would be lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator

from engine.common.request import FillRequest
from engine.fill.deadline import Deadline
from engine.fill.gap import Gap
from engine.fill.gap_opening import open_gap
from engine.models.base import PIECE, Model, Prefill, Prompt

_QUICK_S = 0.05
"""A piece that took less is followed by one of twice the size: a GPU takes hardly longer for that."""
_LEAST = 128
"""Tokens of context, whatever the deadline."""
_SHARE = 0.5
"""Of what is left of a deadline, for encoding."""


def opened(model: Model, request: FillRequest, deadline: Deadline) -> Generator[None, None, Gap]:
    """Open a gap whose context is encoded by `read`."""
    prompt = yield from read(model, request, deadline, time.perf_counter)
    return open_gap(model, request, deadline, prompt=prompt)


def read(
    model: Model, request: FillRequest, deadline: Deadline, clock: Callable[[], float]
) -> Generator[None, None, Prompt]:
    """Lay a request out and encode its context, as much of it as the deadline allows, but for the last piece; yields
    after each piece."""
    prompt, prefill = model.prompt(request), model.prefill
    if prefill is None:
        return prompt
    whole, size = prompt, PIECE
    if prefill.token_ms and prefill.unread(prompt.context) > size:
        prompt = _in_time(model, request, whole, deadline)
    while (left := prefill.unread(prompt.context)) > size:
        began = clock()
        model.encode(prompt.context[: len(prompt.context) - left + size])
        took_s = clock() - began
        yield
        prefill.token_ms = max(took_s * 1000, 1e-3) / size
        if left - size > _fitting(prefill, deadline):
            prompt = _in_time(model, request, whole, deadline)
        elif took_s < _QUICK_S:
            size *= 2
    return prompt


def _in_time(model: Model, request: FillRequest, whole: Prompt, deadline: Deadline) -> Prompt:
    """As much of a request as is encoded in time. The length of the one before stays where most of that is encoded, so
    that typing appends."""
    assert model.prefill is not None
    prefill, fits = model.prefill, _fitting(model.prefill, deadline)
    if prefill.unread(whole.context) <= fits:
        return whole
    prefill.later = whole.context
    if 0 < _SHARE * fits <= prefill.limit:
        prompt = model.prompt(request, prefill.limit)
        if prefill.unread(prompt.context) <= fits:
            return prompt
    prefill.limit = max(_LEAST, int(fits))
    return model.prompt(request, prefill.limit)


def _fitting(prefill: Prefill, deadline: Deadline) -> float:
    """Tokens that can be encoded in time."""
    return _SHARE * deadline.left_ms() / prefill.token_ms
