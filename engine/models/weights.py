"""Weights from safetensors into a module that was made on the meta device, each where it was placed.

What does not fit is refused before anything is read. A tensor is read into memory of its own: of a mapped file pages
would stay beside what is made of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from engine.common.errors import ModelError
from engine.models.checkpoints.directory import TAKE_INSTEAD, Checkpoint, TensorHeader, layer_of, reading
from engine.models.checkpoints.placement import Placement, in_8_bit
from engine.models.quantized.layers import CpuInt8, PackedLinear, PackedWeights, packed_weights

OnPercent = Callable[[float], None]
_DTYPES = {
    "BF16": torch.bfloat16,
    "F16": torch.float16,
    "F32": torch.float32,
    "F64": torch.float64,
    "F8_E4M3": torch.float8_e4m3fn,
    "I32": torch.int32,
    "U8": torch.uint8,
}


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
    named = [(ours, tensor) for tensor in checkpoint.tensors if (ours := our_name(tensor.name)) is not None]
    stored = dict(named)
    _check(module, named, stored, stand_in, checkpoint.name)
    own = [name for name, _ in (*module.named_parameters(), *module.named_buffers())]
    found: dict[str, Tensor] = {}
    for at, (ours, tensor) in enumerate(stored.items()):
        layer = layer_of(ours)
        device = placement.device if layer is None else placement.layers[layer]
        with reading(checkpoint.name):
            if tensor.pieces:
                put_in(module, ours, _read_packed(tensor, placement.dtype, device))
            elif in_8_bit(checkpoint, tensor, device, placement.dtype):
                weights = CpuInt8(tensor.shape)
                weights.put(0, {"numbers": read_tensor(tensor)})
                put_in(module, ours, weights)
            else:
                found[ours] = read_tensor(tensor).to(device, placement.dtype)
        if on_percent is not None:
            on_percent(100 * (at + 1) / len(stored))
    # Shared modules and tied weights have more names than these.
    found |= {ours: found[stand_in(ours)] for ours in own if ours not in stored}
    module.load_state_dict(found, strict=False, assign=True)
    module.tie_weights()
    return module.requires_grad_(False).eval()


def read_tensor(tensor: TensorHeader) -> Tensor:
    """A tensor as it is stored. Raises OSError, and ModelError where its file became shorter."""
    held = torch.empty(tensor.shape, dtype=_DTYPES[tensor.dtype])
    own: Any = held.view(-1).view(torch.uint8).numpy()
    left = memoryview(own)
    with tensor.file.open("rb", buffering=0) as stream:
        stream.seek(tensor.offset)
        while left.nbytes:
            read = stream.readinto(left)
            if not read:
                raise ModelError(f"{tensor.file} is cut off: pull or copy the model again.")
            left = left[read:]
    return held


def _check(
    module: Any,
    named: list[tuple[str, TensorHeader]],
    stored: dict[str, TensorHeader],
    stand_in: Callable[[str], str],
    name: str,
) -> None:
    expected: dict[str, Tensor] = module.state_dict()
    own = [each for each, _ in (*module.named_parameters(), *module.named_buffers())]
    for ours, tensor in named:
        if ours not in expected:
            raise ModelError(f"{name} holds {tensor.name}, which its config.json knows nothing of: pull it again.")
        if tensor.shape != expected[ours].shape:
            raise ModelError(
                f"{tensor.name} of {name} is {tensor.shape}, and its config.json asks for "
                f"{tuple(expected[ours].shape)}: pull or copy the model again."
            )
        linear = isinstance(module.get_submodule(ours.rpartition(".")[0]), nn.Linear) and ours in own
        # A head is multiplied block by block of its rows.
        linear = linear and not ours.startswith("lm_head.")
        if tensor.pieces and not linear and len(tensor.shape) != 3:
            raise ModelError(f"{tensor.name} of {name} is in 4 bit, which only layers may be: {TAKE_INSTEAD}.")
    for ours in own:
        if ours not in stored and stand_in(ours) not in stored:
            raise ModelError(f"{name} lacks {ours}: pull or copy it again.")


def _read_packed(tensor: TensorHeader, dtype: torch.dtype, device: str) -> PackedWeights:
    weights = packed_weights(tensor, _DTYPES[tensor.pieces[0]["scales"].dtype], dtype, device)
    together = len(tensor.pieces) // weights.experts
    for expert in range(weights.experts):
        own = tensor.pieces[expert * together : (expert + 1) * together]
        read = [_read_parts(piece) for piece in own]
        weights.put(expert, {name: torch.cat([each[name] for each in read]) for name in read[0]})
    return weights


def _read_parts(piece: Any) -> dict[str, Tensor]:
    parts = {role: read_tensor(stored) for role, stored in piece.items()}
    # Bytes and numbers have the same order of halves.
    parts["codes"] = parts["codes"].view(torch.uint8)
    if "zeros" in parts:
        shifts = torch.arange(0, 32, 4, dtype=torch.int32)
        eight = parts["zeros"][:, None] >> shifts[:, None] & 15
        parts["zeros"] = eight.flatten(0, 1)[: len(parts["codes"])].to(torch.uint8)
    if "divisor" in parts:
        parts["multiplier"] = 1 / parts.pop("divisor")
    if "multiplier" in parts:
        parts["multiplier"] = parts["multiplier"].view(1)
        if not 0 <= float(parts["multiplier"]) < torch.inf:
            stored = piece.get("multiplier") or piece["divisor"]
            raise ModelError(f"{stored.name} in {stored.file} is no scale: pull or copy the model again.")
    return parts


def put_in(module: nn.Module, name: str, weights: PackedWeights) -> None:
    """Let packed weights take the place of a linear layer, or of a parameter that holds experts."""
    path, _, own = name.rpartition(".")
    holder = module.get_submodule(path)
    if isinstance(holder, nn.Linear):
        above, _, own = path.rpartition(".")
        setattr(module.get_submodule(above), own, PackedLinear(weights, holder.bias))
    else:
        delattr(holder, own)
        setattr(holder, own, weights)
