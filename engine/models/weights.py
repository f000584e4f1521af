"""Loads weights from safetensors into a module that was made on the meta device, each where it was placed.

Weights that do not fit are refused before any is read. Each tensor is read into memory of its own: pages of a mapped
file would stay beside what is made of them.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from engine.common.errors import ModelError
from engine.models.checkpoints.directory import TAKE_INSTEAD, Checkpoint, TensorHeader, layer_of, loading
from engine.models.checkpoints.gguf import BLOCKS
from engine.models.checkpoints.gguf_blocks import decoded
from engine.models.checkpoints.placement import Placement, in_8_bit
from engine.models.products import in_threads
from engine.models.quantized.int4 import quantize_int4
from engine.models.quantized.int8 import Int8Linear, Int8Weight, laid_out
from engine.models.quantized.layers import PackedLinear, PackedWeights, int8_weights, packed_weights
from engine.models.quantized.packing import Packing

_BLOCK_NUMBERS = 1 << 20
"""Numbers decoded at once. With fewer, threads wait longer for the interpreter than a cache saves."""
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
    groups: Sequence[Sequence[Any]] = (),
) -> Any:
    """The module in evaluation mode. `our_name`: the name of a stored tensor in the module, None for one that is not
    read; `stand_in`: the tensor that replaces a missing one; `groups`: linear layers over the same input, laid out
    together where they are in 8 bit. Raises ModelError for weights that do not fit the module."""
    named = [(ours, tensor) for tensor in checkpoint.tensors if (ours := our_name(tensor.name)) is not None]
    stored = dict(named)
    _check(module, named, stored, stand_in, checkpoint.name)
    own = [name for name, _ in (*module.named_parameters(), *module.named_buffers())]
    found: dict[str, Tensor] = {}
    to_round: dict[str, TensorHeader] = {}
    done = 0
    for ours, tensor in stored.items():
        layer = layer_of(ours)
        device = placement.device if layer is None else placement.layers[layer]
        with loading(checkpoint.name):
            if tensor.in_4_bit:
                put_in(module, ours, _read_packed(tensor, placement.dtype, device))
            elif in_8_bit(checkpoint, tensor, device, placement.dtype):
                weights = int8_weights(tensor.shape)
                weights.put(0, {"numbers": read_numbers(tensor, torch.bfloat16)})
                put_in(module, ours, weights)
            elif placement.int8 and len(tensor.shape) == 2:
                to_round[ours] = tensor
                continue
            else:
                found[ours] = read_numbers(tensor, placement.dtype).to(device)
        done += 1
        if on_percent is not None:
            on_percent(100 * done / len(stored))

    pack = Packing()

    def put_int8(names: Sequence[str]) -> int:
        with loading(checkpoint.name):
            layers: list[Any] = [_put_int8(module, ours, to_round[ours], stored, found) for ours in names]
            if layers[0] is not None:
                # At once, as its plain numbers take as much memory.
                layers[0].together = laid_out(layers, pack)
            return len(names)

    # The largest first: else one thread would be left with it at the end.
    together = _together(module, groups, to_round)
    for count in in_threads(
        put_int8, sorted(together, key=lambda names: -sum(to_round[one].elements for one in names))
    ):
        done += count
        if on_percent is not None:
            on_percent(100 * done / len(stored))
    # Shared modules and tied weights have more names than these.
    found |= {ours: found[stand_in(ours)] for ours in own if ours not in stored and stand_in(ours) in found}
    module.load_state_dict(found, strict=False, assign=True)
    module.tie_weights()
    return module.requires_grad_(False).eval()


def _together(
    module: nn.Module, groups: Sequence[Sequence[Any]], to_round: Mapping[str, TensorHeader]
) -> list[list[str]]:
    """Names of what is put in 8 bit: `groups` side by side, everything else by itself."""
    names = {layer: f"{name}.weight" for name, layer in module.named_modules()}
    grouped = [[names[layer] for layer in group] for group in groups]
    grouped = [group for group in grouped if all(name in to_round for name in group)]
    held = {name for group in grouped for name in group}
    return [*grouped, *([name] for name in to_round if name not in held)]


def _put_int8(
    module: Any, ours: str, tensor: TensorHeader, stored: Mapping[str, TensorHeader], found: Mapping[str, Tensor]
) -> Int8Linear | None:
    """Put a matrix in 8 bit. A table of embeddings stays in its file, as few of its rows are looked up at a time; where
    the head shares that table, the head is made of it."""
    path = ours.removesuffix(".weight")
    if isinstance(module.get_submodule(path), nn.Embedding):
        owner, _, name = path.rpartition(".")
        setattr(module.get_submodule(owner), name, TableInFile(tensor))
        path = "lm_head"
        if f"{path}.weight" in stored:
            return None
    weight = Int8Weight(*tensor.shape)
    if tensor.paired_heads or tensor.dtype not in BLOCKS:
        weight.put(0, read_numbers(tensor, torch.float32))
    else:
        start = 0
        for rows in row_blocks(tensor):
            weight.put(start, rows)
            start += len(rows)
    owner, _, name = path.rpartition(".")
    bias = found.get(f"{path}.bias")
    bias = None if bias is None else nn.Parameter(bias, requires_grad=False)
    layer = Int8Linear(weight, bias)
    setattr(module.get_submodule(owner), name, layer)
    return layer


class TableInFile(nn.Module):
    """An embedding table whose rows are read from the file that they came in, as they are stored there."""

    def __init__(self, tensor: TensorHeader) -> None:
        super().__init__()
        self._tensor = tensor
        self._stream = tensor.file.open("rb", buffering=0)
        weakref.finalize(self, self._stream.close)
        block, nbytes = BLOCKS[tensor.dtype]
        self._blocks = (tensor.shape[1] // block, nbytes)
        self.weight = nn.Buffer(torch.empty(tensor.shape[0], 0), persistent=False)
        """An empty stand-in for the table, which tells others its length and device."""

    def forward(self, ids: Tensor) -> Tensor:
        """Embeddings [..., E] in float32. Raises ModelError where the file became shorter."""
        blocks, nbytes = self._blocks
        raw = torch.empty(ids.numel(), blocks, nbytes, dtype=torch.uint8)
        for at, token in enumerate(ids.flatten().tolist()):
            self._stream.seek(self._tensor.offset + token * blocks * nbytes)
            row: Any = raw[at].view(-1).numpy()
            if self._stream.readinto(memoryview(row)) < blocks * nbytes:
                raise ModelError(f"{self._tensor.file} is cut off: pull or copy the model again.")
        return decoded(raw.flatten(0, 1), self._tensor.dtype).view(*ids.shape, -1)


def read_numbers(tensor: TensorHeader, dtype: torch.dtype) -> Tensor:
    """A tensor that is not packed in 4 bit, in this number format. Raises as `read_tensor` does."""
    if tensor.dtype in _DTYPES and not tensor.paired_heads:
        return read_tensor(tensor).to(dtype)
    held = torch.empty(tensor.shape, dtype=dtype)
    start = 0
    for rows in row_blocks(tensor):
        held[start : start + len(rows)] = rows
        start += len(rows)
    return unpaired(held, tensor.paired_heads) if tensor.paired_heads else held


def row_blocks(tensor: TensorHeader, most: int = _BLOCK_NUMBERS) -> Iterator[Tensor]:
    """Rows of a tensor as float32 [R, ...], at most `most` numbers or one row at a time; rows of paired heads come as
    they are stored. Raises as `read_tensor` does."""
    of_row, of_block = tensor.elements // tensor.shape[0], BLOCKS[tensor.dtype]
    together = max(1, most // of_row)
    for start in range(0, tensor.shape[0], together):
        rows = min(together, tensor.shape[0] - start)
        blocks, skipped = rows * of_row // of_block[0], start * of_row // of_block[0]
        raw = _read(tensor, (blocks, of_block[1]), torch.uint8, tensor.offset + skipped * of_block[1])
        yield decoded(raw, tensor.dtype).view(rows, *tensor.shape[1:])


def unpaired(weight: Tensor, heads: int) -> Tensor:
    """Rows of heads that are stored in pairs, as our rotation takes them: half a head between the two of a pair."""
    pairs = weight.view(heads, len(weight) // heads // 2, 2, *weight.shape[1:])
    return pairs.transpose(1, 2).reshape(weight.shape)


def read_tensor(tensor: TensorHeader) -> Tensor:
    """A tensor as it is stored. Raises OSError, and ModelError where its file became shorter."""
    return _read(tensor, tensor.shape, _DTYPES[tensor.dtype], tensor.offset)


def _read(tensor: TensorHeader, shape: tuple[int, ...], dtype: torch.dtype, offset: int) -> Tensor:
    held = torch.empty(shape, dtype=dtype)
    own: Any = held.view(-1).view(torch.uint8).numpy()
    left = memoryview(own)
    with tensor.file.open("rb", buffering=0) as stream:
        stream.seek(offset)
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
        if tensor.in_4_bit and not linear and len(tensor.shape) != 3:
            raise ModelError(f"{tensor.name} of {name} is in 4 bit, which only layers may be: {TAKE_INSTEAD}.")
    for ours in own:
        if ours not in stored and stand_in(ours) not in stored:
            raise ModelError(f"{name} lacks {ours}: pull or copy it again.")


def _read_packed(tensor: TensorHeader, dtype: torch.dtype, device: str) -> PackedWeights:
    scales = torch.bfloat16 if tensor.rounded else _DTYPES[tensor.pieces[0]["scales"].dtype]
    weights = packed_weights(tensor, scales, dtype, device)
    if tensor.rounded:
        # Only some rows are there in full at a time.
        each = ([quantize_int4(rows)[0] for rows in row_blocks(matrix)] for matrix in matrices(tensor))
    else:
        together = len(tensor.pieces) // weights.experts
        firsts = range(0, len(tensor.pieces), together)
        each = ([_read_parts(piece) for piece in tensor.pieces[first : first + together]] for first in firsts)
    for expert, read in enumerate(each):
        weights.put(expert, {name: torch.cat([parts[name] for parts in read]) for name in read[0]})
    return weights


def matrices(tensor: TensorHeader, of_each: int = 1) -> list[TensorHeader]:
    """The matrices [N, K] of a tensor [N, K] or, one expert after the other, of [X, N, K]; `of_each`: parts of N that
    are matrices of their own."""
    *experts, rows, inputs = tensor.shape
    count = math.prod(experts) * of_each
    shape, nbytes = (rows // of_each, inputs), tensor.nbytes // count
    return [replace(tensor, shape=shape, offset=tensor.offset + at * nbytes, nbytes=nbytes) for at in range(count)]


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
    """Replace a linear layer, or a parameter with experts, by packed weights."""
    path, _, own = name.rpartition(".")
    holder = module.get_submodule(path)
    if isinstance(holder, nn.Linear):
        above, _, own = path.rpartition(".")
        setattr(module.get_submodule(above), own, PackedLinear(weights, holder.bias))
    else:
        delattr(holder, own)
        setattr(holder, own, weights)
