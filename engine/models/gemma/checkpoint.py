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
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from engine.checkpoints.directory import Checkpoint
from engine.checkpoints.placement import Placement
from engine.core.errors import ModelError, is_out_of_memory

_QUICK_BYTES = 1 << 30
"""Smaller models load too fast for a progress bar."""


class TextModel(DiffusionGemmaForBlockDiffusion):
    """The released architecture without its vision parts, which never exist, not even empty."""

    _keys_to_ignore_on_load_unexpected = [r"^model\.encoder\.(vision_tower|embed_vision)\."]  # noqa: RUF012

    def __init__(self, config: DiffusionGemmaConfig) -> None:
        super().__init__(config)
        # `from_pretrained` builds on the meta device: what goes here has taken no memory.
        del self.model.encoder.vision_tower
        del self.model.encoder.embed_vision


def read_module(checkpoint: Checkpoint, placement: Placement) -> TextModel:
    """The weights, in evaluation mode, on their devices. Raises ModelError for one that does not fit together."""
    with _progress(shown=checkpoint.nbytes > _QUICK_BYTES):
        try:
            module, report = _from_pretrained(checkpoint, placement)
        except (OSError, ValueError, RuntimeError, ImportError) as error:
            if is_out_of_memory(error):
                raise
            raise ModelError(
                f"{checkpoint.name} can't be loaded ({_first_line(error)}): pull or copy it again."
            ) from error
    if report["missing_keys"]:
        raise ModelError(f"{checkpoint.name} lacks {min(report['missing_keys'])}: pull or copy it again.")
    if placement.split:
        _spread(module, placement)
    return module


def read_tokenizer(checkpoint: Checkpoint) -> PreTrainedTokenizerBase:
    """The tokenizer with its chat template. Raises ModelError."""
    try:
        return AutoTokenizer.from_pretrained(checkpoint.path, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # a damaged file fails in any way, down to bare exceptions of the Rust library
        raise ModelError(
            f"The tokenizer of {checkpoint.name} can't be loaded ({_first_line(error)}): pull or copy it again."
        ) from error


def _from_pretrained(checkpoint: Checkpoint, placement: Placement) -> tuple[TextModel, dict[str, set[str]]]:
    loaded: Any = TextModel.from_pretrained(
        checkpoint.path,
        dtype=placement.dtype,
        # What is split is read into main memory first.
        device_map={"": "cpu" if placement.split else placement.device},
        local_files_only=True,
        use_safetensors=True,
        output_loading_info=True,
    )
    return loaded


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


def _first_line(error: Any) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")
