"""The published loops of the models that we run, to compare fills with. transformers is imported late."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from engine.common.request import Filled, FillRequest
from engine.models.base import Model
from engine.models.gemma.model import DiffusionGemma
from engine.models.masked.model import Masked
from engine.models.quantized.layers import packed_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    name: str
    conditions: str
    """What is the same as in ours, and what is not."""
    aim: str = ""
    """By what factor it should be slower than ours, such as ">= 8"."""
    run: Callable[[], object]


def generates(model: Model) -> bool:
    """Whether transformers' `generate` can run the model: a DiffusionGemma whose weights are not in 4 bit."""
    return isinstance(model, DiffusionGemma) and not packed_in(model.network.module)


def reference(model: Model, request: FillRequest, ours: Filled) -> Reference | None:
    """What to compare `ours`, our answer to `request`, with: transformers' `generate` with as many steps as we took, or
    the published loop of a masked model. None: transformers has no modules for weights in 4 bit."""
    if isinstance(model, DiffusionGemma):
        if not generates(model):
            return None
        from engine.lab.baselines.generate import generate, released_class

        module, info = released_class(model.network), model.info
        context, sampling = list(model.prompt(request).context), replace(info.sampling, max_steps=ours.steps)
        return Reference(
            name=f"generate, {ours.steps} steps",
            conditions="same weights and steps",
            aim=">= 8",
            run=lambda: generate(module, info, context, sampling, in_full=True),
        )
    assert isinstance(model, Masked)
    return Reference(
        name=f"published loop, {ours.width} steps",
        conditions="same weights, all computed in each step, one token a step",
        run=lambda: published_loop(model, request, ours.width),
    )


@torch.inference_mode()
def published_loop(model: Masked, request: FillRequest, width: int) -> list[int]:
    """The loop that masked-diffusion coders are published with: fill `width` masks, the likeliest token at the position
    of least entropy first. Each step computes all positions and the logits of all of them, and takes one token.
    Sources: see engine.models.masked.published."""
    info, prompt = model.info, model.prompt(request)
    assert info.noise.mask_id is not None
    start = len(prompt.context)
    ids = [*prompt.context, *[info.noise.mask_id] * width, *prompt.suffix]
    # Forbidden as in our own fills; a token that asks for another width has no place where the width is given.
    banned = torch.tensor(sorted({*info.forbidden_ids, info.pad_id}))
    left, device = list(range(start, start + width)), model.network.device
    positions = torch.arange(len(ids), device=device)[None]
    while left:
        hidden = model.network.run(torch.tensor([ids], device=device), positions)
        logits = model.network.logits(hidden[0])
        logits = logits[[max(at - model.shift, 0) for at in left]].index_fill_(1, banned.to(device), -torch.inf)
        logits /= info.sampling.t_max
        entropy = torch.special.entr(logits.softmax(dim=-1)).sum(dim=-1)
        surest = int(entropy.argmin())
        ids[left.pop(surest)] = int(logits[surest].argmax())
    return ids[start : start + width]
