"""transformers' class of the released architecture without its vision parts, which `generate` runs on."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, cast

from transformers import (
    DiffusionGemmaConfig,
    DiffusionGemmaForBlockDiffusion,
    DiffusionGemmaTextConfig,
    Gemma4VisionConfig,
)

from engine.common.errors import BadInput
from engine.models.gemma.network import GemmaModule, GemmaNetwork


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
