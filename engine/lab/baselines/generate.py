"""The baseline `generate`: transformers' own generation with the same weights, and its class without vision parts."""

from __future__ import annotations

import time
from dataclasses import fields
from typing import Any, cast

import torch
from transformers import (
    DiffusionGemmaConfig,
    DiffusionGemmaForBlockDiffusion,
    DiffusionGemmaTextConfig,
    Gemma4VisionConfig,
)
from transformers.models.diffusion_gemma.generation_diffusion_gemma import (
    DiffusionGemmaGenerationConfig,
    EntropyBoundSamplerConfig,
)

from engine.common.errors import BadInput
from engine.common.request import Filled, FillRequest
from engine.lab.baselines.left_to_right import answered, cut
from engine.models.base import ModelInfo, Sampling
from engine.models.gemma.model import DiffusionGemma
from engine.models.gemma.network import GemmaModule, GemmaNetwork
from engine.models.prompts.layout import context_ids

_NEVER = 1e-12
"""Nats; no canvas ever reaches it."""
_SUFFIX_SHARE, _PREFIX_SHARE = 0.3, 0.6
"""Shares of the context."""


def fill_by_generate(model: DiffusionGemma, request: FillRequest) -> Filled:
    """A fill by one canvas of `generate`, cut where it meets the suffix. `generate` can't pin a suffix, so the suffix
    stands before the prefix in the context."""
    module = released_class(model.network)
    began = time.perf_counter()
    said = generate(module, model.info, _all_known(model, request), model.info.sampling)
    text = cut(model.detokenize([token for token in said if token != model.info.pad_id]), request.suffix)
    steps = model.info.sampling.max_steps
    return answered(model, text, len(model.tokenize(text)), width=len(said), forwards=steps, began=began)


def generate(module: Any, info: ModelInfo, ids: list[int], sampling: Sampling, *, in_full: bool = False) -> list[int]:
    """The tokens of one canvas after `ids`. `in_full`: take all of its steps, even if it settles before."""
    config: Any = DiffusionGemmaGenerationConfig(
        max_new_tokens=info.canvas_length,
        max_denoising_steps=sampling.max_steps,
        t_min=sampling.t_min,
        t_max=sampling.t_max,
        stability_threshold=sampling.stability_threshold,
        confidence_threshold=_NEVER if in_full else sampling.confidence_threshold,
        sampler_config=EntropyBoundSamplerConfig(entropy_bound=sampling.entropy_bound),
        pad_token_id=info.pad_id,
        eos_token_id=None,
        return_dict_in_generate=True,
    )
    inputs = torch.tensor([ids], device=module.device)
    return module.generate(inputs, generation_config=config).sequences[0, len(ids) :].tolist()


def _all_known(model: DiffusionGemma, request: FillRequest) -> list[int]:
    """A context with the prefix and the suffix."""
    if model.info.instructions:
        return list(model.prompt(request).context)
    limit = model.info.context_limit
    after = model.tokenize(request.suffix)[: int(_SUFFIX_SHARE * limit)]
    before = model.tokenize(request.prefix)[-int(_PREFIX_SHARE * limit) :]
    return context_ids(request.language, after, before)


class TextModel(DiffusionGemmaForBlockDiffusion):
    """The released class without vision parts, which therefore take no memory."""

    def __init__(self, config: DiffusionGemmaConfig) -> None:
        super().__init__(config)
        del self.model.encoder.vision_tower
        del self.model.encoder.embed_vision


def no_vision() -> Gemma4VisionConfig:
    """A configuration of a vision tower, as small as the classes allow."""
    return Gemma4VisionConfig(
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=8,
        position_embedding_size=4,
    )


def released_class(network: GemmaNetwork) -> Any:
    """A module of transformers that shares the weights of `network`. Raises BadInput where the extra is not
    installed."""
    if not isinstance(network.module, GemmaModule):
        return network.module
    try:
        from accelerate import init_empty_weights
    except ModuleNotFoundError:
        raise BadInput("This baseline needs accelerate: install dg-lsp[baselines].") from None
    config = network.module.config
    layers = {
        index: {"head_dim": size, "num_key_value_heads": kv_heads}
        for index, (size, kv_heads) in enumerate(config.heads)
        if (size, kv_heads) != config.heads[0]
    }
    own = ("heads", "layer_types", "tie_word_embeddings", "canvas_length", "final_logit_softcapping")
    sizes: dict[str, Any] = {each.name: getattr(config, each.name) for each in fields(config) if each.name not in own}
    sizes["head_dim"], sizes["num_key_value_heads"] = config.heads[0]
    text = DiffusionGemmaTextConfig(
        **sizes, **cast(Any, {"per_layer_config": layers}), layer_types=[*config.layer_types]
    )
    with init_empty_weights(include_buffers=False):
        module: Any = TextModel(
            DiffusionGemmaConfig(text_config=text, vision_config=no_vision(), canvas_length=config.canvas_length)
        )
    module.load_state_dict(network.module.state_dict(), assign=True)
    module.to(network.device)
    return module.eval()
