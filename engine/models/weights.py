"""Weights from safetensors into a module that was made on the meta device, each where it was placed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from safetensors import safe_open
from torch import Tensor

from engine.checkpoints.directory import Checkpoint, reading, weight_files
from engine.checkpoints.placement import Placement
from engine.core.errors import ModelError

OnPercent = Callable[[float], None]
_LAYER = re.compile(r"\.layers\.([0-9]+)\.")


def load_weights(
    module: Any,
    checkpoint: Checkpoint,
    placement: Placement,
    our_name: Callable[[str], str | None],
    on_percent: OnPercent | None = None,
    *,
    stand_in: Callable[[str], str] = str,
) -> Any:
    """The module in evaluation mode. `our_name`: that of a stored tensor in the module, None for one that is not read;
    `stand_in`: which tensor is taken for one that is missing.

    Raises ModelError for weights that do not fit the module, which is what config.json says.
    """
    expected: dict[str, Tensor] = module.state_dict()
    found: dict[str, Tensor] = {}
    files, name = weight_files(checkpoint.path, checkpoint.name), checkpoint.name
    for number, file in enumerate(files):
        with reading(name), safe_open(file, framework="pt") as tensors:
            stored = list(tensors.keys())
            for at, theirs in enumerate(stored):
                ours = our_name(theirs)
                if ours is not None:
                    if ours not in expected:
                        raise ModelError(
                            f"{name} holds {theirs}, which its config.json knows nothing of: pull it again."
                        )
                    tensor: Tensor = tensors.get_tensor(theirs)
                    _check_shape(tensor, expected[ours], theirs, name)
                    found[ours] = tensor.to(_device(ours, placement), placement.dtype)
                if on_percent is not None:
                    on_percent(100 * (number + (at + 1) / len(stored)) / len(files))
    # Shared modules and tied weights have more names than these.
    for ours, _ in (*module.named_parameters(), *module.named_buffers()):
        if ours not in found:
            if stand_in(ours) not in found:
                raise ModelError(f"{name} lacks {ours}: pull or copy it again.")
            found[ours] = found[stand_in(ours)]
    module.load_state_dict(found, strict=False, assign=True)
    module.tie_weights()
    return module.requires_grad_(False).eval()


def _check_shape(tensor: Tensor, expected: Tensor, tensor_name: str, name: str) -> None:
    if tensor.shape != expected.shape:
        raise ModelError(
            f"{tensor_name} of {name} is {tuple(tensor.shape)}, and its config.json asks for {tuple(expected.shape)}: "
            "pull or copy the model again."
        )


def _device(tensor: str, placement: Placement) -> str:
    layer = _LAYER.search(tensor)
    return placement.layers[int(layer[1])] if layer else placement.device
