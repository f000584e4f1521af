"""Models of any shape with random weights: speed can be measured without a checkpoint."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import psutil
import torch
from torch import Tensor
from transformers import DiffusionGemmaConfig, DiffusionGemmaTextConfig, Gemma4VisionConfig
from transformers.initialization import no_init_weights

from engine.bench.numbered import NumberedPrompt
from engine.errors import BadInput, ModelError
from engine.models.base import Facts, Noise, Sampling
from engine.models.diffusion_gemma import DiffusionGemma
from engine.models.gemma_checkpoint import TextModel
from engine.placement import WORKING_BYTES, Device
from engine.sizes import binary_bytes
from engine.train.presets import PRESETS
from engine.train.shapes import new_config

SHAPES = "released, 26b-layers=N or small"
_SLICE = re.compile(r"26b-layers=(\d+)")
_RELEASED_LAYERS, _FULL_EVERY = 30, 6
_SAMPLING = Sampling(
    max_steps=48, t_min=0.4, t_max=0.8, entropy_bound=0.1, stability_threshold=1, confidence_threshold=0.005
)
_BLOCK = 1 << 20
"""Random numbers that are drawn; the weights repeat them, as drawing 26 billion takes minutes."""
_SCALE = 0.02


def random_model(shape: str, device: Device, seed: int = 0) -> DiffusionGemma:
    """A model named by `SHAPES`. Raises BadInput for another name, ModelError where memory does not allow it."""
    config = _config(shape)
    place = _place(device)
    dtype = torch.float32 if shape == "small" and place == "cpu" else torch.bfloat16
    _check_room(shape, config, place, dtype)
    module: Any = _module(config, place, dtype, seed)
    parameters = sum(parameter.numel() for parameter in module.parameters())
    vocab: int = module.config.text_config.vocab_size
    canvas: int = module.config.canvas_length
    prompt = NumberedPrompt(vocab, limit=4096, pinned=min(48, canvas // 3))
    facts = Facts(
        name=f"random {shape}",
        family="diffusion_gemma",
        parameters=parameters,
        device=place,
        dtype=str(dtype).removeprefix("torch."),
        length="discover",
        noise=Noise(mask_id=None, vocab_size=vocab),
        sampling=_SAMPLING,
        pad_id=0,
        forbidden_ids=(),
        canvas_length=canvas,
        widths=(24, 96),
        context_limit=4096,
        instructions=True,
    )
    stand_in: Any = prompt
    return DiffusionGemma(module, facts, stand_in)


def _config(shape: str) -> DiffusionGemmaConfig:
    if shape == "small":
        return new_config(PRESETS["small"].shape)
    if shape == "released":
        return _released(_RELEASED_LAYERS)
    if (match := _SLICE.fullmatch(shape)) and 1 <= int(match[1]) <= _RELEASED_LAYERS:
        return _released(int(match[1]))
    raise BadInput(f"There is no shape {shape}: use {SHAPES}, N up to {_RELEASED_LAYERS}.")


def _released(layers: int) -> DiffusionGemmaConfig:
    """google/diffusiongemma-26B-A4B-it, or its first layers with the last one made full, as the architecture wants."""
    full: dict[str, Any] = {"num_global_key_value_heads": 2, "global_head_dim": 512}
    kinds = ["full_attention" if (index + 1) % _FULL_EVERY == 0 else "sliding_attention" for index in range(layers)]
    text = DiffusionGemmaTextConfig(
        vocab_size=262_144,
        hidden_size=2816,
        intermediate_size=2112,
        num_hidden_layers=layers,
        num_attention_heads=16,
        num_key_value_heads=8,
        head_dim=256,
        sliding_window=1024,
        layer_types=[*kinds[:-1], "full_attention"],
        num_experts=128,
        top_k_experts=8,
        moe_intermediate_size=704,
        max_position_embeddings=262_144,
        **full,
    )
    vision = Gemma4VisionConfig(
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=8,
    )
    return DiffusionGemmaConfig(text_config=text, vision_config=vision, canvas_length=256)


def _place(device: Device) -> str:
    if device == "cpu" or (device == "auto" and not torch.cuda.is_available()):
        return "cpu"
    if not torch.cuda.is_available():
        raise ModelError("CUDA was asked for, but torch finds no GPU here: use --device cpu, or a CUDA build of torch.")
    return "cuda:0"


def _check_room(shape: str, config: DiffusionGemmaConfig, place: str, dtype: torch.dtype) -> None:
    with torch.device("meta"):
        sketch: Any = TextModel(config)
    needed = sum(parameter.numel() for parameter in sketch.parameters()) * dtype.itemsize
    free = torch.cuda.mem_get_info()[0] if place != "cpu" else psutil.virtual_memory().available
    # Encoder and decoder are made one after the other before the second lets go of its own weights.
    if 2 * needed + WORKING_BYTES > free:
        raise ModelError(
            f"The shape {shape} needs {binary_bytes(2 * needed + WORKING_BYTES)} while it is built, but "
            f"{binary_bytes(free)} are free: use 26b-layers=N with fewer layers, or small."
        )


def _module(config: DiffusionGemmaConfig, place: str, dtype: torch.dtype, seed: int) -> TextModel:
    with _made_of(dtype), torch.device(place), no_init_weights():
        module: Any = TextModel(config)
    module.tie_weights()
    module.to(dtype)
    generator = torch.Generator().manual_seed(seed)
    block = (torch.randn(_BLOCK, generator=generator) * _SCALE).to(place, dtype)
    # A dense model is told by the norm of zeros behind its stand-in for experts.
    dense = module.config.text_config.num_experts == 1
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(False)
        if parameter.dim() == 1:
            silent = dense and "post_feedforward_layernorm_2" in name
            parameter.fill_(0.0 if silent else 1.0)
        else:
            _repeat(block, parameter.view(-1))
    return module.eval()


def _repeat(block: Tensor, flat: Tensor) -> None:
    whole = len(flat) // len(block) * len(block)
    flat[:whole].view(-1, len(block)).copy_(block)
    flat[whole:] = block[: len(flat) - whole]


@contextmanager
def _made_of(dtype: torch.dtype) -> Generator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
