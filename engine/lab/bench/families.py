"""Models with random weights, by the name of a shape. Imports no torch; the code of a family is imported when
needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from engine.common.errors import BadInput
from engine.common.names import BUNDLED, Device
from engine.models.checkpoints.catalog import BUNDLED_PATH

if TYPE_CHECKING:
    from engine.models.base import Model
    from engine.models.quantized.layers import WeightFormat

_CONFIGS = Path(__file__).with_name("shapes.json")
"""Sizes as in config.json; the Dream family and DiffuCoder were made from Qwen2.5."""
_SHAPES = {
    "released": ("diffusiongemma-26B-A4B", ""),
    "26b-layers=N": ("diffusiongemma-26B-A4B", ""),
    "small": (BUNDLED, ""),
    "dreamon": ("Qwen2.5-7B", "DreamOn 7B"),
    "dream-layers=N": ("Qwen2.5-7B", "Dream-Coder 7B"),
    "dcoder-layers=N": ("Qwen2.5-Coder-0.5B", "Open-dCoder 0.5B"),
    "masked-small": ("6M", "Open-dCoder 0.5B"),
}
"""By shape: the config.json, and the published masked model whose sampler goes with it."""
SHAPES = tuple(_SHAPES)
"""The names of shapes; N stands for a number of layers."""
IN_4_BIT = {"-int4": "INT4", "-nvfp4": "NVFP4"}
"""Suffixes of a shape's name, and the number format that each means."""


def random_model(shape: str, device: Device, seed: int = 0) -> Model:
    """A model of the shape with random weights. Raises BadInput for a shape that is not among `SHAPES`, ModelError
    where it can't be placed."""
    ending = next((each for each in IN_4_BIT if shape.endswith(each)), "")
    name, cut, number = shape.removesuffix(ending).partition("=")
    known = f"{name}=N" if cut else name
    if known not in _SHAPES:
        raise BadInput(
            f"There is no shape {shape}: use one of {', '.join(SHAPES)}, or one of them with {' or '.join(IN_4_BIT)}."
        )
    base, published = _SHAPES[known]
    file = BUNDLED_PATH / "config.json" if base == BUNDLED else _CONFIGS
    said: dict[str, Any] = json.loads(file.read_bytes())
    config = said if base == BUNDLED else said[base]
    sizes: dict[str, Any] = config.get("text_config", config)
    if cut:
        most = sizes["num_hidden_layers"]
        if not number.isdecimal() or not 1 <= int(number) <= most:
            raise BadInput(f"There is no shape {shape}: use {name}=N with N from 1 to {most}.")
        sizes["num_hidden_layers"] = int(number)
    from engine.lab.bench.random_models import random_gemma, random_masked

    layout = cast("WeightFormat | None", IN_4_BIT.get(ending))
    return (
        random_masked(shape, config, published, device, seed, layout)
        if published
        else random_gemma(shape, config, device, seed, layout)
    )
