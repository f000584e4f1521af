"""What the families' networks share: modules for weights, rotations, attention, and the pass through the layers.

Modules have the names of transformers' classes, which stay the reference (tests assert equal logits). Serving and
training run the passes of this package, as both need what the reference lacks: ragged batches, many canvases over one
context, and keys and values that survive a cropped context. Every layer calls an `Attend`, which owns caches and masks
and decides who sees what.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.models.formats import formats
from engine.models.products import Ordered, gated, in_bfloat16, in_threads, linear, reordered
from engine.models.quantized.int8 import Int8Linear, Int8Together, laid_out

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""(layer index, queries [B, H, Q, D], keys [B, K, T, D], values [B, K, T, D]) -> [B, H, Q, D], H a multiple of K.
Queries and keys are rotated. Q is T except in the last layer, where it is what is wanted."""
_MOST_TWICE_NBYTES = 256 << 20
"""Largest weights that are kept in a second order, which is faster for many rows."""
_LEAST_IN_8_BIT = 1 << 17
"""Least numbers of a weight that came in full for products in 8 bits: to round rows takes as long as a smaller one's
product."""
_ROWS = 128
"""Rows of a gated block in 8 bit at once: what is inside it stays in the processor's cache."""
Rotation = tuple[Tensor, Tensor]
"""Cosines and sines [B, T, 1, D]; the sines have the sign of the half that they are multiplied with."""

ALL = slice(None)


@dataclass(frozen=True, slots=True)
class Activation:
    """The function of a gate."""

    plain: Callable[[Tensor], Tensor]
    fused: tuple[str, str]
    """oneDNN's names of the function and of the way to compute it."""


class Linear(nn.Linear):
    """A linear layer without initial numbers: to draw them torch would import its compiler."""

    def reset_parameters(self) -> None:
        pass

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)


class Embedding(nn.Embedding):
    """A table of embeddings without initial numbers."""

    def reset_parameters(self) -> None:
        pass


class RMSNorm(nn.Module):
    """The weight [size] of an RMS norm; the families differ in how they apply it."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size))
        self.eps = eps


class FeedForward(nn.Module):
    """The three matrices of a gated block, for `feed_forward`."""

    def __init__(self, size: int, inner: int) -> None:
        super().__init__()
        self.gate_proj = Linear(size, inner, bias=False)
        self.up_proj = Linear(size, inner, bias=False)
        self.down_proj = Linear(inner, size, bias=False)


class Network(ABC):
    """The passes over a checkpoint's module."""

    scale: float | None = None
    """Factor of queries by keys; None: one by the root of the head size."""
    fused = False
    """Whether what is between attentions is compiled."""
    attends_in: torch.dtype | None = None
    """The number format of queries, keys and values, where it differs from the hidden states'."""

    def __init__(self, module: Any, layers: Sequence[Any], embeddings: Any) -> None:
        """`module`: ours, or transformers' class of the same shape."""
        self.module = module
        self.layers = layers
        self.embeddings = embeddings

    @abstractmethod
    def over(self, module: Any) -> Self:
        """The same passes over another module of the same shape."""

    def lay_out(self) -> None:
        """Arrange weights in memory as steps read them fastest. Results are the same, as long as the weights are."""
        groups = self.linear_layers()
        plain = (part for group in groups for part in group if isinstance(part, nn.Linear))
        twice = sum(part.weight.nbytes for part in plain) <= _MOST_TWICE_NBYTES
        gates = {id(block.gate_proj) for block in self.gated_blocks()}
        head = self.module.lm_head
        # The head first, which is the largest.
        rounded = [group for group in ([head], *groups) if isinstance(group[0], Int8Linear)]
        for _ in in_threads(partial(lay_out, twice=False), rounded):
            pass
        for group in groups:
            if not isinstance(group[0], Int8Linear):
                lay_out(group, twice=twice, apart=id(group[0]) in gates)
        if twice:
            self._lay_out_head()
        together: list[Any] = [getattr(group[0], "together", None) for group in groups]
        ordered = {
            each.dtype for held in together if type(held) is tuple for each in held[3] if isinstance(each, Tensor)
        }
        # What is multiplied in bfloat16 or 8 bits need not be kept in more.
        narrow = (ordered == {torch.bfloat16} and formats().attention) or (bool(rounded) and formats().bfloat16)
        self.attends_in = torch.bfloat16 if narrow else None

    def _lay_out_head(self) -> None:
        """Arrange the head; its rows are looked up by token as well, so they stay as they are."""
        head = self.module.lm_head
        if isinstance(head, Int8Linear):
            return
        held = head.__dict__.pop("together", None)
        if held is None or held[0] is not head.weight:
            held = (head.weight, head.bias, [len(head.weight)], [reordered(head.weight)])
        head.together = held

    def of_head(self, hidden: Tensor, tokens: slice | Tensor) -> Tensor:
        """Products [..., W] of hidden states [..., E] with the head's rows of all tokens or some, in float32."""
        head = self.module.lm_head
        size = head.weight.shape[0]
        if isinstance(tokens, slice) and tokens.indices(size) == (0, size, 1):
            return alone(head, hidden).float()
        if isinstance(head, Int8Linear):
            return alone(head, hidden)[..., tokens]
        return linear(hidden, head.weight[tokens]).float()

    def gated_blocks(self) -> list[Any]:
        return [layer.mlp for layer in self.layers]

    def linear_layers(self) -> list[list[Any]]:
        """The linear layers, in groups with the same input."""
        groups: list[list[Any]] = []
        for block in (layer.self_attn for layer in self.layers):
            groups.append([part for part in (block.q_proj, block.k_proj, block.v_proj) if part is not None])
            groups.append([block.o_proj])
        for block in self.gated_blocks():
            groups += [[block.gate_proj, block.up_proj], [block.down_proj]]
        return groups

    @property
    def device(self) -> torch.device:
        """The device of embeddings, and so of ids."""
        return self.embeddings.weight.device

    @property
    def devices(self) -> list[torch.device]:
        """The device of each layer."""
        return [layer.input_layernorm.weight.device for layer in self.layers]

    @property
    def token_nbytes(self) -> int:
        """Bytes of one token's keys and values in all layers."""
        weights = [layer.self_attn.k_proj.weight for layer in self.layers]
        return sum(2 * weight.shape[0] * (self.attends_in or weight.dtype).itemsize for weight in weights)

    @property
    def mask_format(self) -> torch.dtype:
        """The number format of masks."""
        return self.attends_in or self.embeddings.weight.dtype

    @abstractmethod
    def head_size(self, index: int) -> int:
        """The size of a head of keys and values in layer `index`."""

    @property
    def kv_shapes(self) -> list[tuple[int, int]]:
        """Number and size of the heads of keys and values in each layer."""
        sizes = [self.head_size(index) for index in range(len(self.layers))]
        rows = [layer.self_attn.k_proj.weight.shape[0] for layer in self.layers]
        return [(count // size, size) for count, size in zip(rows, sizes, strict=True)]

    def seen(self, index: int, length: int) -> int:
        """Tokens of a context of `length` that a canvas sees in layer `index`."""
        return length

    def attention(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        """Shapes as in `Attend`; mask [B or 1, 1, T or 1, S], bool (True attends) or what is added to the scores; or
        [.., .., H / K * T, S], where that was done for all layers already."""
        batch, heads, width, size = query.shape
        groups = heads // key.shape[1]
        # Heads that share keys become more queries of one head: nothing is copied.
        folded = query.reshape(batch, key.shape[1], groups * width, size)
        if mask is not None and 1 < mask.shape[2] < groups * width:
            mask = mask.repeat(1, 1, groups, 1)
        found = F.scaled_dot_product_attention(folded, key, value, attn_mask=mask, scale=self.scale)
        return found.reshape(batch, heads, width, size)

    @property
    def conditions_by(self) -> Tensor:
        """The embeddings [V, E] that self-conditioning averages; [V, 0]: the model has none."""
        table = self.embeddings.weight
        return table.new_empty(len(table), 0, dtype=torch.float32)

    @abstractmethod
    def logits(self, hidden: Tensor, tokens: slice | Tensor = ALL) -> Tensor:
        """Float32 logits [..., W] of hidden states [..., E], for all tokens or some."""

    @abstractmethod
    def before(self, layer: Any, hidden: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries [B, H, T, D], keys and values [B, K, T, D] of one layer."""

    @abstractmethod
    def after(self, layer: Any, hidden: Tensor, attended: Tensor, index: int) -> Tensor:
        """The layer's output [B, T, E] from its input and its attention [B, H, T, D]."""

    def through(
        self,
        layers: Sequence[Any],
        hidden: Tensor,
        rotation_of: Callable[[int], Rotation],
        attend: Attend,
        wanted: Tensor | None,
    ) -> Tensor:
        """Hidden states [B, T, E] after the last layer; [B, W, E] of the places `wanted` [W] alone, where given."""
        device = hidden.device
        for index, layer in enumerate(layers):
            # The layers of a model that does not fit one device lie on several; elsewhere these moves do nothing.
            place = layer.input_layernorm.weight.device
            hidden = hidden.to(place)
            cos, sin = rotation_of(index)
            query, key, value = self.before(layer, hidden, cos.to(place), sin.to(place))
            if self.attends_in is not None:
                query, key, value = (each.to(self.attends_in) for each in (query, key, value))
            if wanted is not None and index == len(layers) - 1:
                # No further layer looks at the others.
                at = wanted.to(place)
                hidden, query = hidden.index_select(1, at), query.index_select(2, at)
            hidden = self.after(layer, hidden, attend(index, query, key, value).to(hidden.dtype), index)
        return hidden.to(device)


def lay_out(parts: Sequence[Any], *, twice: bool, apart: bool = False) -> None:
    """Put the weights of linear layers over the same input side by side, for one product. In float32 on a processor
    they are stored by columns, which is a third faster for few rows; if they may be there `twice`, also in the fastest
    order for many rows, `apart` or together. Packed weights stay as they are."""
    held = parts[0].__dict__.pop("together", None)
    if all(isinstance(part, Int8Linear) for part in parts):
        # It shares what was laid out before with a module that shares its weights.
        parts[0].together = held or laid_out(parts)
        return
    if not all(isinstance(part, nn.Linear) for part in parts):
        return
    weights = [part.weight for part in parts]
    if held is not None and len({each.untyped_storage().data_ptr() for each in (held[0], *weights)}) == 1:
        # So they do already, in a module that shares them.
        parts[0].together = held
        return
    # In bfloat16 columns take thirty times as long, where the processor has no such products.
    if weights[0].device.type == "cpu" and weights[0].dtype == torch.float32:
        weight = torch.cat([weight.t() for weight in weights], dim=1).t()
    elif len(parts) > 1:
        weight = torch.cat(weights)
    else:
        return
    bias = None if parts[0].bias is None else torch.cat([part.bias for part in parts])
    sizes = [len(each) for each in weights]
    for part, own in zip(parts, weight.split(sizes), strict=True):
        part.weight = nn.Parameter(own, requires_grad=False)
    faster = _for_many_rows(weight, sizes if apart else [len(weight)]) if twice else []
    parts[0].together = (weight, bias, sizes, faster)


def _for_many_rows(weight: Tensor, sizes: Sequence[int]) -> list[Ordered | None]:
    """Copies of a weight [N, K] that multiply many rows faster: of parts with so many of its rows, or one of it in 8
    bits. None: there is no gain. What came in float32 keeps all its digits."""
    may = weight.device.type == "cpu" and weight.dtype == torch.float32 and weight.numel() >= _LEAST_IN_8_BIT
    if may and formats().int8_before_float32 and in_bfloat16(weight) is not None:
        return [Int8Together.of(weight)]
    return [reordered(part) for part in weight.split([*sizes])]


def side_by_side(parts: Sequence[Any], hidden: Tensor) -> Sequence[Tensor]:
    """The outputs of several linear layers over the same input."""
    together = getattr(parts[0], "together", None)
    if together is None:
        return [part(hidden) for part in parts]
    product = joined(parts, hidden)
    sizes = together.sizes if isinstance(together, Int8Together) else together[2]
    return product.split(sizes, dim=-1) if len(sizes) > 1 else [product]


def joined(parts: Sequence[Any], hidden: Tensor) -> Tensor:
    """The outputs of several linear layers over the same input, side by side in one tensor."""
    together = getattr(parts[0], "together", None)
    if together is None:
        return torch.cat([part(hidden) for part in parts], dim=-1)
    if isinstance(together, Int8Together):
        return together(hidden)
    weight, bias, _, faster = together
    return linear(hidden, weight, bias, faster[0] if len(faster) == 1 else None)


def alone(part: Any, hidden: Tensor) -> Tensor:
    """The output of one linear layer."""
    return side_by_side((part,), hidden)[0]


def feed_forward(block: Any, hidden: Tensor, activation: Activation) -> Tensor:
    """A gated block of three matrices, [..., E] to [..., E]."""
    in_order = _gated_in_order(block)
    if in_order and not hidden.requires_grad:
        return gated(hidden, *in_order, activation.fused)
    if isinstance(getattr(block.gate_proj, "together", None), Int8Together):
        rows = hidden.flatten(0, -2).split(_ROWS)
        return torch.cat([_gated_in_8_bit(block, part, activation) for part in rows]).view(hidden.shape)
    gate, up = side_by_side((block.gate_proj, block.up_proj), hidden)
    return alone(block.down_proj, activation.plain(gate) * up)


def _gated_in_8_bit(block: Any, rows: Tensor, activation: Activation) -> Tensor:
    gate, up = side_by_side((block.gate_proj, block.up_proj), rows)
    return alone(block.down_proj, activation.plain(gate).mul_(up))


def _gated_in_order(block: Any) -> tuple[Tensor, Tensor, Tensor] | None:
    """The matrices of a gated block (gate, up, down), if all are in the fastest order and in one format."""
    held: list[Any] = [getattr(part, "together", None) for part in (block.gate_proj, block.down_proj)]
    faster: list[Any] = [each for together in held if type(together) is tuple for each in together[3]]
    match [each for each in faster if isinstance(each, Tensor)]:
        case [gate, up, down] if gate.dtype == up.dtype == down.dtype:
            return gate, up, down
        case _:
            return None


def bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """A bool mask (True attends) as 0 or -inf, added to scores: made once, not by torch in each layer."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, -torch.inf)


def frequencies(size: int, theta: float, share: float = 1.0, factor: float = 1.0) -> Tensor:
    """Radians a position [size / 2], float32, of a head; `share` of them are turned, the others stay as they are."""
    turned = int(share * size // 2)
    steps = 1.0 / theta ** (torch.arange(0, 2 * turned, 2).float() / size)
    return torch.cat((steps, torch.zeros(size // 2 - turned))) / factor


def rotation(positions: Tensor, radians: Tensor, dtype: torch.dtype) -> Rotation:
    """The rotation of positions [B, T]."""
    angles = positions[:, :, None, None].float() * radians.to(positions.device)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((cos, cos), dim=-1).to(dtype), torch.cat((-sin, sin), dim=-1).to(dtype)


def rotate(states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """States [B, T, H, D] turned to their positions."""
    turned = torch.addcmul(states * cos, states.roll(states.shape[-1] // 2, dims=-1), sin)
    return turned.type_as(states)
