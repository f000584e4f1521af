"""Tiny checkpoints in the published 4-bit layouts, each beside the numbers that it stands for."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.models.quantized.layers import PlainInt4, PlainNvfp4
from tests.engine.released import write_checkpoint

FORMATS = ("int4", "int4 symmetric", "nvfp4")

SIZES = {"hidden_size": 64, "intermediate_size": 96, "moe_intermediate_size": 32}
"""The released ones, scaled: all of them multiples of a group."""
E2M1 = (0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6)
EXPERTS = re.compile(r"\.experts\.(gate_up|down)_proj$")
DENSE = re.compile(r"\.layers\.[0-9]+\.mlp\..*_proj\.weight$")
LINEAR = re.compile(r"\.layers\.[0-9]+\..*_proj\.weight$")
Parts = dict[str, Tensor]
Draw = Callable[[int, int, torch.Generator], tuple[Parts, Tensor]]
"""(N, K, generator) -> stored parts, and the weights [N, K] that they stand for."""


@dataclass(frozen=True, kw_only=True)
class Published:
    """One way in which checkpoints of the family are published in 4 bit."""

    config: dict[str, Any]
    draw: Draw
    dense: re.Pattern[str] | None
    """Which matrices are packed besides experts."""


def write_quantized(path: Path, layout: str) -> tuple[Path, Path]:
    """A packed checkpoint, and the same in float32, in directories below `path`."""
    plain, packed = write_checkpoint(path / "plain", shard_size="10MB", **SIZES), path / "packed"
    shutil.copytree(plain, packed)
    published, generator = LAYOUTS[layout], torch.Generator().manual_seed(0)
    numbers = load_file(plain / "model.safetensors")
    stored: Parts = {}
    for name, tensor in list(numbers.items()):
        if EXPERTS.search(name):
            for expert, matrix in enumerate(tensor):
                halves = matrix.chunk(2) if "gate_up" in name else [matrix]
                for part, half in zip(("gate", "up") if len(halves) == 2 else ("down",), halves, strict=True):
                    parts, weights = published.draw(*half.shape, generator)
                    half.copy_(weights)
                    stem = f"{name.rpartition('.')[0]}.{expert}.{part}_proj"
                    stored |= {f"{stem}.{own}": each for own, each in parts.items()}
        elif published.dense and published.dense.search(name) and "vision" not in name:
            parts, weights = published.draw(*tensor.shape, generator)
            numbers[name] = weights
            stored |= {f"{name.removesuffix('.weight')}.{own}": each for own, each in parts.items()}
        else:
            stored[name] = tensor
    save_file(numbers, plain / "model.safetensors", metadata={"format": "pt"})
    save_file(stored, packed / "model.safetensors", metadata={"format": "pt"})
    config = packed / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "quantization_config": published.config}))
    return packed, plain


def draw_nvfp4(codes: str, last: str, *, divided: bool) -> Draw:
    def draw(rows: int, inputs: int, generator: torch.Generator) -> tuple[Parts, Tensor]:
        drawn = torch.randint(0, 16, (rows, inputs), generator=generator)
        scales = (torch.rand(rows, inputs // 16, generator=generator) * 4).to(torch.float8_e4m3fn)
        factor = float(torch.rand((), generator=generator)) * 0.02 + 0.01
        weights = torch.tensor(E2M1)[drawn] * scales.float().repeat_interleave(16, 1) * factor
        packed = (drawn[:, 0::2] + 16 * drawn[:, 1::2]).to(torch.uint8)
        whole = torch.tensor([1 / factor]) if divided else torch.tensor(factor)
        activations = {"input_global_scale": torch.tensor([7.0])} if divided else {"input_scale": torch.tensor(7.0)}
        return {codes: packed, "weight_scale": scales, last: whole, **activations}, weights

    return draw


def draw_int4(*, symmetric: bool) -> Draw:
    def draw(rows: int, inputs: int, generator: torch.Generator) -> tuple[Parts, Tensor]:
        drawn = torch.randint(0, 16, (rows, inputs), generator=generator)
        scales = (torch.rand(rows, inputs // 32, generator=generator) * 0.05).bfloat16()
        zeros = torch.randint(4, 12, scales.shape, generator=generator)
        zeros = zeros.fill_(8) if symmetric else zeros
        weights = (drawn - zeros.repeat_interleave(32, 1)) * scales.float().repeat_interleave(32, 1)
        parts = {"weight_packed": words(drawn), "weight_scale": scales, "weight_shape": torch.tensor([rows, inputs])}
        return parts if symmetric else {**parts, "weight_zero_point": words(zeros.t()).t().contiguous()}, weights

    return draw


def random_packed(
    layout: str, shape: tuple[int, ...], dtype: torch.dtype = torch.float32, seed: int = 0
) -> PlainInt4 | PlainNvfp4:
    """Weights [X, N, K] or [N, K] of any numbers that there are, in the plain form; `layout` is one of `FORMATS`."""
    generator = torch.Generator().manual_seed(seed)
    if layout == "nvfp4":
        weights = PlainNvfp4(shape, dtype, multipliers=2)
        # Every scale that is a number, those below zero and the smallest among them.
        drawn = torch.randint(0, 127, weights.scales.shape, generator=generator)
        signs = torch.randint(0, 2, weights.scales.shape, generator=generator)
        weights.scales.copy_(drawn + 128 * signs)
        weights.multiplier.uniform_(0.01, 0.03, generator=generator)
    else:
        weights = PlainInt4(shape, dtype, torch.bfloat16, zeros=layout == "int4")
        weights.scales.uniform_(0, 0.05, generator=generator)
        if weights.zeros is not None:
            weights.zeros.random_(0, 16, generator=generator)
    weights.codes.random_(0, 256, generator=generator)
    return weights


def words(codes: Tensor) -> Tensor:
    """Eight codes of a row in one int32, the first in its lowest bits."""
    together = sum(codes[:, at::8].long() << 4 * at for at in range(8))
    assert isinstance(together, Tensor)
    return together.to(torch.uint32).view(torch.int32)


def compressed(format: str, **weights: Any) -> dict[str, Any]:
    shared = {"num_bits": 4, "dynamic": False, "actorder": None, **weights}
    return {
        "quant_method": "compressed-tensors",
        "format": format,
        "quantization_status": "compressed",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": shared, "input_activations": None}},
        "ignore": ["lm_head", "re:.*router.*"],
        "sparsity_config": {},
        "transform_config": {},
    }


def int4_layout(*, symmetric: bool) -> Published:
    config = compressed("pack-quantized", type="int", strategy="group", group_size=32, symmetric=symmetric)
    return Published(config=config, draw=draw_int4(symmetric=symmetric), dense=LINEAR)


LAYOUTS = {
    "modelopt": Published(
        config={
            "quant_method": "modelopt",
            "quant_algo": "NVFP4",
            "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}}},
            "ignore": ["lm_head"],
        },
        draw=draw_nvfp4("weight", "weight_scale_2", divided=False),
        dense=None,
    ),
    "nvfp4-pack-quantized": Published(
        config=compressed("nvfp4-pack-quantized", type="float", strategy="tensor_group", group_size=16, symmetric=True),
        draw=draw_nvfp4("weight_packed", "weight_global_scale", divided=True),
        dense=DENSE,
    ),
    "pack-quantized": int4_layout(symmetric=False),
    "pack-quantized symmetric": int4_layout(symmetric=True),
}
