"""From a request to an open gap: prompt laid out, context encoded."""

from __future__ import annotations

import time

from engine.common.request import FillRequest
from engine.fill.deadline import Deadline
from engine.fill.gap import Gap
from engine.fill.sampling import seeded
from engine.fill.whole_canvases import WholeCanvasGap
from engine.models.base import Model, Prompt, Sampling


def open_gap(
    model: Model,
    request: FillRequest,
    deadline: Deadline | None = None,
    sampling: Sampling | None = None,
    prompt: Prompt | None = None,
) -> Gap:
    """Lay out a request and encode its context. `sampling` and `prompt` replace the model's own."""
    prompt = prompt or model.prompt(request)
    whole = model.denoiser is not None
    return (WholeCanvasGap if whole else Gap)(
        model=model,
        request=request,
        prompt=prompt,
        context=model.encode(prompt.context),
        # A model that denoises by itself leaves little to compute.
        generator=seeded("cpu" if whole else model.info.device, request.seed),
        deadline=deadline or Deadline(None, 0.0, time.perf_counter),
        sampling=sampling or model.info.sampling,
    )
