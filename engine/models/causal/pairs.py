"""LoRA pairs beside the layers of a frozen coder, added to the rows of canvases alone. One pass checks drafts with the
coder itself and denoises canvases with the coder and its pairs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from engine.models.masked.config import Architecture
from engine.models.masked.network import SILU, MaskedNetwork
from engine.models.network import Attend, alone, joined
from engine.models.products import prefers_bfloat16
from engine.models.quantized.int8 import LARGEST, SMALLEST

FOLDER = Path(__file__).parents[2] / "weights" / "coder-0.5b-canvas"
WEIGHTS, METADATA = "pairs.safetensors", "pairs.json"
SCALE = ".scale"
_PARTS = (
    ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    ("self_attn.o_proj",),
    ("mlp.gate_proj", "mlp.up_proj"),
    ("mlp.down_proj",),
)
"""Layers with the same input."""


def fits(path: Path, folder: Path = FOLDER) -> bool:
    """Whether the pairs in `folder` were trained beside the weights in the file `path`; hashes a file of the right
    size."""
    base = json.loads((folder / METADATA).read_text(encoding="utf-8"))["base"]
    if not path.is_file() or path.stat().st_size != base["nbytes"]:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == base["sha256"]


def read_pairs(folder: Path = FOLDER) -> dict[str, Tensor]:
    """The trained tensors by name, in float32."""
    held = load_file(folder / WEIGHTS)
    numbers = {name: held[name].float() * held[name + SCALE] for name in held if not name.endswith(SCALE)}
    return {name: each.squeeze(0) if name == "mask" else each for name, each in numbers.items()}


def paired(network: MaskedNetwork, folder: Path = FOLDER) -> PairedNetwork:
    """A coder's network with the pairs in a folder that `fits` its file."""
    recipe = json.loads((folder / METADATA).read_text(encoding="utf-8"))["recipe"]
    found = PairedNetwork(network.module, network.config, read_pairs(folder), recipe["alpha"] / recipe["rank"])
    found.attends_in = network.attends_in
    return found


class Thin:
    """A matrix [N, K] of a pair. On a processor that is fast in bfloat16 it stays in int8 with a scale a row, as it is
    on disk: products with few rows run at the speed of memory, and it is half the bytes."""

    def __init__(self, weight: Tensor) -> None:
        self.shape = weight.shape
        self._scales: Tensor | None = None
        if weight.device.type == "cpu" and prefers_bfloat16("cpu"):
            scales = weight.abs().amax(dim=1, keepdim=True).clamp_min(SMALLEST) / LARGEST
            self._weight, self._scales = (weight / scales).round().to(torch.int8), scales[:, 0].bfloat16()
        else:
            self._weight = weight.bfloat16() if weight.device.type != "cpu" else weight
        self.dtype = self._weight.dtype if self._scales is None else torch.bfloat16

    def product(self, rows: Tensor) -> Tensor:
        """Rows [R, K] in `dtype` times the matrix: [R, N]."""
        if self._scales is None:
            return F.linear(rows, self._weight)
        multiply: Any = torch.ops.aten._weight_int8pack_mm
        return multiply(rows, self._weight, self._scales)


class PairsTogether:
    """The pairs of layers with the same input, a [R, K] and b [N, R] each, as one: fewer and larger products."""

    def __init__(self, pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
        self._a, self._b = Thin(torch.cat([a for a, _ in pairs])), Thin(torch.block_diag(*(b for _, b in pairs)))

    def add(self, product: Tensor, hidden: Tensor) -> None:
        """Add the pairs' share to the layers' products [T, N of all layers] of hidden states [T, K]."""
        product += self._b.product(self._a.product(hidden.to(self._a.dtype)))


class PairedNetwork(MaskedNetwork):
    """A coder's network whose last rows may be canvases."""

    def __init__(
        self, module: Any, architecture: Architecture, trained: Mapping[str, Tensor], scale: float = 1.0
    ) -> None:
        """`trained`: `mask` [E], and for each linear layer of the coder `PATH.lora_A` and `PATH.lora_B`, whose product
        counts times `scale`."""
        super().__init__(module, architecture)
        device = self.device
        self.mask = trained["mask"].to(device)
        self._rows = 0
        self._pairs = [
            [
                PairsTogether(
                    [
                        (trained[f"{path}.lora_A"].to(place), scale * trained[f"{path}.lora_B"].to(place))
                        for path in (f"model.layers.{index}.{part}" for part in parts)
                    ]
                )
                for parts in _PARTS
            ]
            for index, place in enumerate(self.devices)
        ]
        self._index = {id(layer): index for index, layer in enumerate(self.layers)}

    def run_canvas(
        self, ids: Tensor, positions: Tensor, attend: Attend, wanted: Tensor, rows: int, unknown: Tensor
    ) -> Tensor:
        """`run` on one sequence whose last `rows` are a canvas, all of them wanted. `unknown` [T]: where the embedding
        of an unknown token takes the place of the token's own."""
        self._rows = rows
        embedded = torch.where(unknown[:, None], self.mask.to(self.embeddings.weight.dtype), self.embeddings(ids))
        try:
            return self.run_embedded(embedded, positions, attend, wanted)
        finally:
            self._rows = 0

    def projected(self, layer: Any, hidden: Tensor) -> Tensor:
        product = super().projected(layer, hidden)
        self._add(self._index[id(layer)], 0, product, hidden)
        return product

    def after(self, layer: Any, hidden: Tensor, attended: Tensor, index: int) -> Tensor:
        if not self._rows:
            return super().after(layer, hidden, attended, index)
        block = layer.mlp
        seen = attended.transpose(1, 2).flatten(2)
        product = alone(layer.self_attn.o_proj, seen)
        self._add(index, 1, product, seen)
        hidden = hidden + product
        normed = self._norm(layer.post_attention_layernorm, hidden)
        product = joined((block.gate_proj, block.up_proj), normed)
        self._add(index, 2, product, normed)
        gate, up = product.chunk(2, dim=-1)
        inner = SILU.plain(gate).mul_(up)
        product = alone(block.down_proj, inner)
        self._add(index, 3, product, inner)
        return hidden + product

    def _add(self, index: int, part: int, product: Tensor, hidden: Tensor) -> None:
        if self._rows:
            self._pairs[index][part].add(product[0, -self._rows :], hidden[0, -self._rows :])
