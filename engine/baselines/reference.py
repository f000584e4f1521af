"""What others do with the same weights: what a fill of ours is held against. A family's own code is imported late."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from engine.baselines.left_to_right import answered, cut
from engine.core.request import Filled, FillRequest
from engine.models.base import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """How others fill a gap with the same weights."""

    name: str
    told: str
    """What is the same and what is not."""
    aim: str = ""
    """How much longer than ours it should take, such as ">= 4"."""
    run: Callable[[], object]


def generates(model: Model) -> bool:
    """Whether transformers has a `generate` for it, which does what we do in another way."""
    return model.info.family == "diffusion_gemma"


def reference(model: Model, request: FillRequest, ours: Filled) -> Reference:
    """What to hold `ours`, our answer to `request`, against: transformers' `generate`, made to take as many steps as we
    took, or the loop that masked models are published with."""
    if generates(model):
        from engine.baselines.generate import generate
        from engine.baselines.released_class import released_class
        from engine.models.gemma.model import DiffusionGemma

        assert isinstance(model, DiffusionGemma)
        module, facts = released_class(model.network), model.info
        context, sampling = list(model.prompt(request).context), replace(facts.sampling, max_steps=ours.steps)
        return Reference(
            name=f"generate, {ours.steps} steps",
            told="same weights and steps",
            aim=">= 4",
            run=lambda: generate(module, facts, context, sampling, in_full=True),
        )
    from engine.baselines.published_loop import published_loop
    from engine.models.masked.model import Masked

    assert isinstance(model, Masked)
    return Reference(
        name=f"published loop, {ours.width} steps",
        told="same weights, all computed in each step, one token a step",
        run=lambda: published_loop(model, request, ours.width),
    )


def fill_by_generate(model: Model, request: FillRequest) -> Filled:
    """One canvas of `generate`, cut like a text read left to right; it can't hold a suffix in place, so it reads it
    before the prefix."""
    from engine.baselines.generate import all_known, generate
    from engine.baselines.released_class import released_class
    from engine.models.gemma.model import DiffusionGemma

    assert isinstance(model, DiffusionGemma)
    module = released_class(model.network)
    began = time.perf_counter()
    said = generate(module, model.info, all_known(model, request), model.info.sampling)
    text = cut(model.detokenize([token for token in said if token != model.info.pad_id]), request.suffix)
    steps = model.info.sampling.max_steps
    return answered(model, text, len(model.tokenize(text)), width=len(said), forwards=steps, began=began)
