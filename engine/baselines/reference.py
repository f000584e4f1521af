"""transformers' own `generate` on the same weights, asked for what we ask for: what a fill is measured against."""

from __future__ import annotations

import time

from engine.baselines.left_to_right import cut
from engine.bench.abilities import Generating
from engine.core.request import Candidate, Filled, FillRequest, Timings


def fill_by_generate(model: Generating, request: FillRequest) -> Filled:
    """One canvas of `generate`, cut like a text read left to right; it can't hold a suffix in place, so it reads it
    before the prefix."""
    began = time.perf_counter()
    said = model.generate(request)
    ms = (time.perf_counter() - began) * 1000
    used = [token for token in said if token != model.facts.pad_id]
    text = cut(model.detokenize(used), request.suffix)
    steps = model.facts.sampling.max_steps
    return Filled(
        model=model.facts.name,
        device=model.facts.device,
        candidates=(Candidate(text=text, tokens=len(model.tokenize(text)), confidence=1.0, score=0.0),) if text else (),
        width=len(said),
        steps=steps,
        forwards=steps,
        ms=Timings(total=ms),
    )
