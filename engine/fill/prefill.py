"""Contexts that take long to encode: piece by piece, so that newer requests interrupt, and within the deadline.

In a causal context the tokens near the gap depend on those before, so they can't be encoded first. A context that would
be late is laid out shorter, and the full one is encoded when the model is idle: the next key finds it, or the part that
is done. The measured time a token is remembered, so that no piece of a full context is begun in vain.
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
"""A piece that took less is followed by one of twice the size: on a GPU that takes hardly longer."""
_LEAST = 128
"""Least number of context tokens, whatever the deadline."""
_SHARE = 0.5
"""Share of the time left before a deadline that encoding may take."""


def opened(model: Model, request: FillRequest, deadline: Deadline) -> Generator[None, None, Gap]:
    """Open a gap whose context is encoded by `read`."""
    prompt = yield from read(model, request, deadline, time.perf_counter)
    return open_gap(model, request, deadline, prompt=prompt)


def read(
    model: Model, request: FillRequest, deadline: Deadline, clock: Callable[[], float]
) -> Generator[None, None, Prompt]:
    """Lay a request out and encode its context, as much of it as the deadline allows, except for the last piece; yields
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
    """The part of a request that is encoded in time. The last length is kept while most of that is in the cache, so
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
