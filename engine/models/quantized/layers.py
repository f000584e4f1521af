"""Products with packed weights: by a Triton kernel on CUDA; on processors by torch's operators (int4, and int8 for what
came in full beside 4 bit where oneDNN has no products of it) or by parts (NVFP4); by a plain reference otherwise. Of
experts, only those that rows were routed to are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.models.checkpoints.directory import TensorHeader
from engine.models.checkpoints.packed import INT4_GROUP, NVFP4_GROUP
from engine.models.formats import formats
from engine.models.products import linear_by_parts, linear_of_parts, part_rows, prefers_bfloat16
from engine.models.quantized.int8 import Int8Together

WeightFormat = Literal["INT4", "NVFP4"]
_LAYOUTS: dict[str, WeightFormat] = {"int4": "INT4", "NVFP4": "NVFP4"}
"""Layouts by their names for people."""
_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_E2M1_SIGNED = (*_E2M1, *(-each for each in _E2M1))
_MIDDLE = 8
"""The code of zero where a layout stores none."""
_LARGEST = 127
_BLOCK = 16
"""torch's operator takes rows in blocks of so many."""
_AMPERE = 8
"""The first major version of CUDA devices that multiply in bfloat16."""
_OPERATOR_ROWS = 16
"""Rows above which torch's int8 operator takes twice as long as float32, where the processor has no units for
bfloat16."""
_AT_ONCE = 256
"""Rows that are laid out at once, as that takes several times their bytes; a multiple of all block sizes."""


class PackedWeights(nn.Module, ABC):
    """The weights [X, N, K] of X experts, or those [N, K] of a dense layer, which counts as one."""

    way: ClassVar[str]
    """How they are multiplied, in words."""

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        """`dtype`: the number format of activations."""
        super().__init__()
        self.shape, self.dtype = shape, dtype
        self.experts = shape[0] if len(shape) == 3 else 1

    @abstractmethod
    def put(self, expert: int, parts: dict[str, Tensor]) -> None:
        """Take what is stored of one expert: codes [N, K/2] and scales [N, K/G], with zeros [N, K/G] (int4) or
        multipliers [P], one for each P-th of the rows (NVFP4); or numbers [N, K] (int8)."""

    @abstractmethod
    def product(self, states: Tensor, expert: int) -> Tensor:
        """States [S, K] times the weights of one expert: [S, N]."""

    def forward(self, states: Tensor) -> Tensor:
        """States [..., K] times the weights of a dense layer: [..., N]."""
        return self.product(states.flatten(0, -2), 0).view(*states.shape[:-1], self.shape[-2])

    def grouped(self, states: Tensor, sizes: Tensor) -> Tensor:
        """States [S, K], `sizes` [X] of them for each expert in order, times the experts' weights: [S, N]."""
        parts = enumerate(states.split(sizes.tolist()))
        return torch.cat([self.product(part, expert) for expert, part in parts if len(part)])


class PlainPacked(PackedWeights):
    """The reference: weights are decoded before each product. No 8- or 64-bit floats are used, which some devices
    lack."""

    way = "decoded before each product, which is slow"

    @abstractmethod
    def matrix(self, expert: int) -> Tensor:
        """The weights [N, K] of one expert in float32."""

    def put(self, expert: int, parts: dict[str, Tensor]) -> None:
        for name, part in parts.items():
            self.get_buffer(name)[expert] = part

    def product(self, states: Tensor, expert: int) -> Tensor:
        return F.linear(states, self.matrix(expert).to(states.dtype))


class PlainInt4(PlainPacked):
    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype, scales: torch.dtype, *, zeros: bool) -> None:
        super().__init__(shape, dtype)
        *_, rows, inputs = shape
        self.codes = nn.Buffer(torch.empty(self.experts, rows, inputs // 2, dtype=torch.uint8))
        self.scales = nn.Buffer(torch.empty(self.experts, rows, inputs // INT4_GROUP, dtype=scales))
        self.zeros = nn.Buffer(torch.empty_like(self.scales, dtype=torch.uint8)) if zeros else None

    def matrix(self, expert: int) -> Tensor:
        zeros = None if self.zeros is None else self.zeros[expert]
        return int4_numbers(self.codes[expert], self.scales[expert], zeros)


class PlainNvfp4(PlainPacked):
    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype, multipliers: int) -> None:
        super().__init__(shape, dtype)
        *_, rows, inputs = shape
        self.codes = nn.Buffer(torch.empty(self.experts, rows, inputs // 2, dtype=torch.uint8))
        self.scales = nn.Buffer(torch.empty(self.experts, rows, inputs // NVFP4_GROUP, dtype=torch.uint8))
        self.multiplier = nn.Buffer(torch.empty(self.experts, multipliers))

    def put(self, expert: int, parts: dict[str, Tensor]) -> None:
        super().put(expert, {**parts, "scales": parts["scales"].view(torch.uint8)})

    def matrix(self, expert: int) -> Tensor:
        device = self.scales.device
        e4m3 = torch.arange(256, dtype=torch.uint8, device="cpu").view(torch.float8_e4m3fn).float().to(device)
        # Gate and up may have been scaled apart.
        groups = e4m3[self.scales[expert].int()].unflatten(0, (len(self.multiplier[expert]), -1))
        scales = (groups * self.multiplier[expert][:, None, None]).flatten(0, 1)
        values = torch.tensor(_E2M1_SIGNED, device=device)
        numbers = _decoded(self.codes[expert], values).unflatten(1, (-1, NVFP4_GROUP))
        return (numbers * scales[..., None]).flatten(1)


class CpuNvfp4(PlainNvfp4):
    """NVFP4 on a processor, held like the reference; activations become float32."""

    way = "decoded part by part, four numbers at a time"

    def product(self, states: Tensor, expert: int) -> Tensor:
        if states.requires_grad:
            # Gradients need the weights again, whose memory is used for others then.
            return super().product(states, expert)
        out = linear_of_parts(states, self.shape[-2], self._parts(expert))
        multiplier = self.multiplier[expert]
        return out.unflatten(1, (len(multiplier), -1)).mul_(multiplier[:, None]).flatten(1).to(states.dtype)

    def _parts(self, expert: int) -> Iterator[tuple[int, Tensor]]:
        """Groups of rows before their multiplier; their memory is reused for the next group."""
        inputs = self.shape[-1]
        fours, scales, (numbers, halves) = self.codes[expert].view(torch.uint16), self.scales[expert], _nvfp4_tables()
        rows = min(part_rows(inputs), len(fours))
        decoded, room = torch.empty(rows, inputs // 4, dtype=torch.int32), torch.empty(rows, inputs)
        for start in range(0, len(fours), rows):
            stored = fours[start : start + rows]
            here, part = decoded[: len(stored)], room[: len(stored)]
            torch.index_select(numbers, 0, stored.flatten().int(), out=here.view(-1))
            groups = part.copy_(here.view(torch.int8)).unflatten(1, (-1, NVFP4_GROUP))
            groups *= halves[scales[start : start + rows].int()][..., None]
            yield start, part


@cache
def _nvfp4_tables() -> tuple[Tensor, Tensor]:
    """Two tables: four numbers (doubled, so that they are whole) as one int32, by their 16 bits, 256 kB, which stays in
    a processor's cache; and halves of scales, by theirs."""
    pairs = _decoded(torch.arange(256, dtype=torch.uint8)[:, None], 2 * torch.tensor(_E2M1_SIGNED)).to(torch.int8)
    pairs = pairs.contiguous().view(torch.int16)[:, 0]
    bits = torch.arange(1 << 16)
    fours = torch.stack((pairs[bits & 255], pairs[bits >> 8]), dim=-1).view(torch.int32)[:, 0]
    return fours, torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float() / 2


class TritonPacked(PackedWeights):
    """Weights on CUDA, held like the reference and decoded in the kernel."""

    way = "decoded in a Triton kernel"

    def __init__(self, stored: PlainInt4 | PlainNvfp4) -> None:
        super().__init__(stored.shape, stored.dtype)
        self.stored = stored

    def put(self, expert: int, parts: dict[str, Tensor]) -> None:
        self.stored.put(expert, parts)

    def product(self, states: Tensor, expert: int) -> Tensor:
        return self._multiply(states, None, slice(expert, expert + 1))

    def grouped(self, states: Tensor, sizes: Tensor) -> Tensor:
        return self._multiply(states, sizes, slice(None))

    def _multiply(self, states: Tensor, sizes: Tensor | None, experts: slice) -> Tensor:
        # Nobody has Triton who has no use for it.
        from engine.models.quantized.triton_kernel import multiply

        held = self.stored
        zeros, multiplier = (held.zeros, None) if isinstance(held, PlainInt4) else (None, held.multiplier)
        zeros, multiplier = (None if each is None else each[experts] for each in (zeros, multiplier))
        return multiply(states, held.codes[experts], held.scales[experts], zeros, multiplier, sizes)


class CpuInt4(PackedWeights):
    """int4 on a processor, in torch's layout; activations in bfloat16."""

    way = "by torch's int4 operator"

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__(shape, torch.bfloat16)
        *_, rows, inputs = shape
        self.codes = nn.Buffer(torch.empty(self.experts, rows, inputs // 2, dtype=torch.uint8))
        self.scales = nn.Buffer(torch.empty(self.experts, inputs // INT4_GROUP, rows, 2, dtype=torch.bfloat16))
        """The scales, each with the number that is added to its group."""

    def put(self, expert: int, parts: dict[str, Tensor]) -> None:
        scales = parts["scales"].float()
        added = (_MIDDLE - parts["zeros"].float()) * scales if "zeros" in parts else torch.zeros_like(scales)
        self.scales[expert] = torch.stack((scales.t(), added.t()), dim=-1)
        for start in range(0, self.shape[-2], _AT_ONCE):
            codes = _decoded(parts["codes"][start : start + _AT_ONCE], torch.arange(16, dtype=torch.int32))
            laid_out: Tensor = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes, 1)
            self.codes[expert, start : start + _AT_ONCE] = laid_out

    def product(self, states: Tensor, expert: int) -> Tensor:
        return self._multiply(states, self.codes[expert], self.scales[expert])

    def grouped(self, states: Tensor, sizes: Tensor) -> Tensor:
        # Taken apart at once: one by one that is a fortieth of a step of few rows.
        parts = zip(states.split(sizes.tolist()), self.codes.unbind(), self.scales.unbind(), strict=True)
        return torch.cat([self._multiply(part, codes, scales) for part, codes, scales in parts if len(part)])

    @staticmethod
    def _multiply(states: Tensor, codes: Tensor, scales: Tensor) -> Tensor:
        multiply: Any = torch.ops.aten._weight_int4pack_mm_for_cpu
        return multiply(states, codes, INT4_GROUP, scales)


class CpuInt8(PackedWeights):
    """int8 on a processor, with one scale a row; activations in bfloat16."""

    way = "by torch's int8 operator"

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__(shape, torch.bfloat16)
        self.codes = nn.Buffer(torch.empty(self.experts, *shape[-2:], dtype=torch.int8))
        self.scales = nn.Buffer(torch.empty(self.experts, shape[-2], dtype=torch.bfloat16))

    def put(self, expert: int, parts: dict[str, Tensor]) -> None:
        for start in range(0, self.shape[-2], _AT_ONCE):
            numbers = parts["numbers"][start : start + _AT_ONCE].float()
            scales = (numbers.abs().amax(dim=1) / _LARGEST).bfloat16()
            scales = torch.where(scales > 0, scales, 1)
            self.scales[expert, start : start + _AT_ONCE] = scales
            codes = (numbers / scales[:, None]).round_().clamp_(-_LARGEST, _LARGEST)
            self.codes[expert, start : start + _AT_ONCE] = codes

    def product(self, states: Tensor, expert: int) -> Tensor:
        codes, scales = self.codes[expert], self.scales[expert]
        if len(states) > _OPERATOR_ROWS and not prefers_bfloat16("cpu"):
            return (linear_by_parts(states, codes) * scales).to(states.dtype)
        multiply: Any = torch.ops.aten._weight_int8pack_mm
        return multiply(states, codes, scales)


class OneDnnInt8(PackedWeights):
    """int8 on a processor with products of it, with one scale a row, of activations too."""

    way = "by oneDNN's int8 products"
    together: Int8Together
    """The weights in oneDNN's order."""

    @property
    def nbytes(self) -> int:
        return self.shape[-2] * (self.shape[-1] + torch.float32.itemsize)

    def put(self, expert: int, parts: dict[str, Tensor]) -> None:
        self.together = Int8Together.of(parts["numbers"])

    def product(self, states: Tensor, expert: int) -> Tensor:
        return self.together.product(states.float()).to(states.dtype)


def int8_weights(shape: tuple[int, ...]) -> CpuInt8 | OneDnnInt8:
    """Memory for the int8 weights of a dense layer on a processor, of the kind that suits it."""
    return OneDnnInt8(shape, torch.bfloat16) if formats().int8 else CpuInt8(shape)


class PackedLinear(nn.Module):
    """A linear layer with packed weights."""

    def __init__(self, weight: PackedWeights, bias: nn.Parameter | None) -> None:
        super().__init__()
        self.weight, self.bias = weight, bias

    def forward(self, hidden: Tensor) -> Tensor:
        out = self.weight(hidden)
        return out if self.bias is None else out + self.bias


def packed_weights(header: TensorHeader, scales: torch.dtype, dtype: torch.dtype, device: str) -> PackedWeights:
    """Memory for the weights in `header`, of the kind that suits the device and the format of activations (`dtype`);
    `scales` is the format of stored scales."""
    *_, rows, _ = shape = header.shape
    layout: WeightFormat = "NVFP4" if header.dtype == "NVFP4" else "INT4"
    kind = packed_kind(layout, dtype, device, rows)
    with torch.device(device):
        if kind is CpuInt4:
            return CpuInt4(shape)
        if layout == "NVFP4":
            experts = shape[0] if len(shape) == 3 else 1
            multipliers = len(header.pieces) // experts
            stored = (CpuNvfp4 if kind is CpuNvfp4 else PlainNvfp4)(shape, dtype, multipliers)
        else:
            stored = PlainInt4(shape, dtype, scales, zeros=header.rounded or "zeros" in header.pieces[0])
        return TritonPacked(stored) if kind is TritonPacked else stored


def packed_kind(layout: WeightFormat, dtype: torch.dtype, device: str, rows: int = _BLOCK) -> type[PackedWeights]:
    """The kind of packed weights for so many rows on a device, with activations in `dtype`."""
    if device.startswith("cuda") and _has_triton(device):
        return TritonPacked
    if device == "cpu" and layout == "INT4" and dtype == torch.bfloat16 and rows % _BLOCK == 0:
        return CpuInt4
    if layout == "NVFP4":
        return CpuNvfp4 if device == "cpu" else PlainNvfp4
    return PlainInt4


def packed_in(module: nn.Module) -> dict[str, PackedWeights]:
    """The packed weights in a module, by name; where one kind wraps another, only the outer one."""
    every = {name: part for name, part in module.named_modules() if isinstance(part, PackedWeights)}
    wrapped = {id(inner) for part in every.values() for inner in part.children()}
    return {name: part for name, part in every.items() if id(part) not in wrapped}


def product_ways(device: str) -> str:
    """How a device multiplies weights in 4 bit, in words."""
    kinds = {name: packed_kind(layout, torch.bfloat16, device) for name, layout in _LAYOUTS.items()}
    said = "; ".join(f"{name} {kind.way}" for name, kind in kinds.items())
    lacks = device.startswith("cuda") and find_spec("triton") is None
    return f"{said} (pip install triton for a kernel)" if lacks else said


def _has_triton(device: str) -> bool:
    """Whether Triton can be used on a device: older ones have no products in bfloat16."""
    return find_spec("triton") is not None and torch.cuda.get_device_capability(device)[0] >= _AMPERE


def int4_numbers(codes: Tensor, scales: Tensor, zeros: Tensor | None) -> Tensor:
    """int4 weights [N, K] in float32, from codes [N, K/2], scales [N, K/G] and zeros [N, K/G]."""
    values = torch.arange(16, dtype=torch.float32, device=codes.device)
    centred = _decoded(codes, values).unflatten(1, (-1, INT4_GROUP)) - (_MIDDLE if zeros is None else zeros[..., None])
    return (centred * scales[..., None]).flatten(1)


def _decoded(codes: Tensor, values: Tensor) -> Tensor:
    """Bytes [N, K/2] as numbers [N, K] (lower halves first), each one of 16 values."""
    # A table of pairs that are moved as one number is several times as fast as shifts and masks.
    byte = torch.arange(256, device=codes.device)
    pairs = torch.stack((values[byte & 15], values[byte >> 4]), dim=-1).view(torch.int64)[:, 0]
    return pairs.index_select(0, codes.flatten().int()).view(values.dtype).view(len(codes), -1)
