"""The loop that masked-diffusion coders are published with, plainly: what a fill is measured against.

In each step all positions are computed, the head's logits of the fixed ones too, and one token is taken. See the
sources in engine.models.masked.published.
"""

from __future__ import annotations

import torch

from engine.core.request import FillRequest
from engine.decoding.sampling import forbid
from engine.models.masked.model import Masked


@torch.inference_mode()
def published_loop(model: Masked, request: FillRequest, width: int) -> list[int]:
    """Fill `width` masks, the likeliest token at the position of least entropy first; returns their tokens."""
    facts, prompt = model.info, model.prompt(request)
    assert facts.noise.mask_id is not None
    start = len(prompt.context)
    ids = [*prompt.context, *[facts.noise.mask_id] * width, *prompt.suffix]
    # Forbidden as in our own fills; a token that asks for another width has no place in one that is told.
    constrain = forbid((*facts.forbidden_ids, facts.pad_id))
    left, device = list(range(start, start + width)), model.network.device
    positions = torch.arange(len(ids), device=device)[None]
    while left:
        hidden = model.network.run(torch.tensor([ids], device=device), positions)
        logits = model.network.logits(hidden[0])
        logits = constrain(logits[[max(at - model.shift, 0) for at in left]], torch.empty(0)) / facts.sampling.t_max
        entropy = torch.special.entr(logits.softmax(dim=-1)).sum(dim=-1)
        surest = int(entropy.argmin())
        ids[left.pop(surest)] = int(logits[surest].argmax())
    return ids[start : start + width]
