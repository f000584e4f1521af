"""Read a DiffusionGemma checkpoint into transformers' module: text parts only, each layer on its device."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from torch import nn
from transformers import (
    AutoTokenizer,
    DiffusionGemmaConfig,
    DiffusionGemmaForBlockDiffusion,
    DiffusionGemmaTextConfig,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from engine.checkpoints.directory import Checkpoint, reading
from engine.checkpoints.placement import Placement
from engine.core.errors import ModelError
from engine.models.tokenizer import settled

_QUICK_BYTES = 1 << 30
"""Smaller models load too fast for a progress bar."""


_FIELDS = frozenset(
    {
        *DiffusionGemmaTextConfig.__annotations__,
        "final_logit_softcapping",
        "global_head_dim",
        "num_global_key_value_heads",
        "per_layer_config",
    }
)
"""Of a text_config: sizes and activations. What else a file may say there chooses code, such as kernels of the Hub."""
_NO_VISION = {
    "model_type": "gemma4_vision",
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 1,
    "num_key_value_heads": 1,
    "head_dim": 8,
}
"""Instead of the file's: the vision parts that it describes are built before they are taken out."""
_ENCODER, _DECODER = "model.encoder.language_model.", "model.decoder."
_HEAD, _TABLE = "lm_head.weight", "model.decoder.embed_tokens.weight"


class TextModel(DiffusionGemmaForBlockDiffusion):
    """The released architecture without its vision parts, which never exist, not even empty."""

    _keys_to_ignore_on_load_unexpected = [r"^model\.encoder\.(vision_tower|embed_vision)\."]  # noqa: RUF012

    def __init__(self, config: DiffusionGemmaConfig, stored: Checkpoint | None = None) -> None:
        """`stored`: what it is about to be loaded from. Raises ModelError where that has other shapes."""
        super().__init__(config)
        # `from_pretrained` builds on the meta device: what goes here has taken no memory.
        del self.model.encoder.vision_tower
        del self.model.encoder.embed_vision
        if stored is not None:
            # Now, as transformers makes what is missing or of another shape in the size that config.json says.
            _check_shapes(self, stored)


def read_module(checkpoint: Checkpoint, placement: Placement) -> TextModel:
    """The weights, in evaluation mode, on their devices. Raises ModelError for one that does not fit together."""
    with _progress(shown=checkpoint.nbytes > _QUICK_BYTES), reading(checkpoint.name):
        module: Any = TextModel.from_pretrained(
            checkpoint.path,
            checkpoint,
            config=_config(checkpoint),
            # Ours is computed in its place; a name in config.json could be that of a kernel to load.
            attn_implementation="sdpa",
            dtype=placement.dtype,
            # What is split is read into main memory first.
            device_map={"": "cpu" if placement.split else placement.device},
            local_files_only=True,
            use_safetensors=True,
        )
    if placement.split:
        _spread(module, placement)
    return module


def read_tokenizer(checkpoint: Checkpoint) -> PreTrainedTokenizerBase:
    """The tokenizer with its chat template. Raises ModelError."""
    with reading(f"The tokenizer of {checkpoint.name}"):
        tokenizer: Any = AutoTokenizer.from_pretrained(checkpoint.path, local_files_only=True, trust_remote_code=False)
        return settled(tokenizer)


def _config(checkpoint: Checkpoint) -> DiffusionGemmaConfig:
    """What config.json says of sizes, and nothing that it says of code."""
    said = checkpoint.config
    text = {name: value for name, value in said["text_config"].items() if name in _FIELDS}
    whole = {name: said[name] for name in ("canvas_length", "tie_word_embeddings") if name in said}
    return DiffusionGemmaConfig(text_config=text, vision_config=dict(_NO_VISION), **whole)


def _check_shapes(module: nn.Module, stored: Checkpoint) -> None:
    shapes = {tensor.name: tensor.shape for tensor in stored.tensors}
    for name, tensor in module.state_dict().items():
        # Encoder and decoder share their weights, whichever of them a file names.
        shared = name.replace(_ENCODER, _DECODER, 1) if name.startswith(_ENCODER) else name
        source = next((each for each in (shared, shared.replace(_DECODER, _ENCODER, 1)) if each in shapes), None)
        if source is None and name == _HEAD and stored.config.get("tie_word_embeddings", True):
            source = _TABLE
        shape = shapes.get(source or name)
        if shape is None:
            raise ModelError(f"{stored.name} lacks {shared}: pull or copy it again.")
        if shape != tuple(tensor.shape):
            raise ModelError(
                f"{source} of {stored.name} is {shape}, and its config.json asks for {tuple(tensor.shape)}: "
                "pull or copy the model again."
            )


def _spread(module: TextModel, placement: Placement) -> None:
    """Each layer is computed where it lies; accelerate would copy those in main memory to the GPU at every pass."""
    stacks: list[Any] = [module.model.encoder.language_model, module.model.decoder]
    layers = [stack.layers for stack in stacks]
    for stack in stacks:
        stack.layers = None
    nn.Module.to(module, placement.device)
    for stack, kept in zip(stacks, layers, strict=True):
        stack.layers = kept
        for layer, device in zip(kept, placement.layers, strict=True):
            layer.to(device)


@contextmanager
def _progress(*, shown: bool) -> Generator[None]:
    before = logging.is_progress_bar_enabled()
    if not shown:
        logging.disable_progress_bar()
    try:
        yield
    finally:
        if before:
            logging.enable_progress_bar()
