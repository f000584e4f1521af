"""Models with random weights in a given shape. Their vocabulary needs no tokenizer: each token is spelled as its
number."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from engine.common.names import Device
from engine.common.request import FillRequest
from engine.models.base import ModelInfo, Noise, Prompt
from engine.models.checkpoints.directory import Checkpoint, LengthStrategy, TensorHeader
from engine.models.checkpoints.packed import INT4_GROUP, NVFP4_GROUP, PartRole
from engine.models.checkpoints.placement import Placement, memory_plan, place, this_machine
from engine.models.gemma.config import read_config
from engine.models.gemma.model import RELEASED, DiffusionGemma
from engine.models.gemma.network import GemmaModule, GemmaNetwork
from engine.models.masked.config import read_architecture
from engine.models.masked.model import Masked, sampling_of, widths_of
from engine.models.masked.network import MaskedModule, MaskedNetwork
from engine.models.masked.published import PUBLISHED
from engine.models.quantized.layers import PackedWeights, WeightFormat, packed_in, packed_weights
from engine.models.vocabulary import Vocabulary
from engine.models.weights import put_in

_BLOCK = 1 << 20
"""Random numbers that are drawn; the weights repeat them, as drawing billions takes minutes."""
_SCALE = 0.02
_INT4_SPREAD, _NVFP4_SPREAD = 4.6, 3.0
"""Standard deviations of the codes, all of which are equally likely."""
_EXPERTS = re.compile(r"\.experts\..*_proj$")
_MATRICES = re.compile(r"\.layers\..*_proj(\.weight)?$")
_CONTEXT = 4096


def random_gemma(
    shape: str, said: dict[str, Any], device: Device, seed: int, layout: WeightFormat | None = None
) -> DiffusionGemma:
    """A DiffusionGemma with random weights. `said`: its config.json; `layout`: its weights in 4 bit. Raises ModelError
    where it can't be placed."""
    config = read_config(said, shape)
    module, shared = _random(shape, lambda: GemmaModule(config), config.num_hidden_layers, device, seed, layout)
    if config.num_experts == 1:
        # A dense model is told by the norm of zeros after its stand-in for experts.
        for layer in module.model.decoder.layers:
            layer.post_feedforward_layernorm_2.weight.fill_(0.0)
    info = ModelInfo(
        **shared,
        family="diffusion_gemma",
        length="discover",
        noise=Noise(mask_id=None, vocab_size=config.vocab_size),
        sampling=RELEASED,
        forbidden_ids=(),
        canvas_length=config.canvas_length,
        widths=(24, 96),
        context_limit=_CONTEXT,
        instructions=True,
    )
    prompt: Any = NumberedPrompt(config.vocab_size, limit=_CONTEXT, pinned=min(48, config.canvas_length // 3))
    return DiffusionGemma(GemmaNetwork(module), info, prompt)


def random_masked(
    shape: str, said: dict[str, Any], title: str, device: Device, seed: int, layout: WeightFormat | None = None
) -> Masked:
    """A masked model with random weights. `said`: its config.json; `title`: the published model; `layout`: its weights
    in 4 bit. Raises ModelError where it can't be placed."""
    architecture = read_architecture(said, shape)
    module, shared = _random(shape, lambda: MaskedModule(architecture), architecture.layers, device, seed, layout)
    published = next(each for each in PUBLISHED if each.title == title)
    length: LengthStrategy = "expand" if published.expand else "calibrated"
    # Which token means what is of no matter here: those at the vocabulary's end are the special ones.
    mask, expand = architecture.vocab - 1, architecture.vocab - 2
    info = ModelInfo(
        **shared,
        family="masked",
        length=length,
        noise=Noise(mask_id=mask, vocab_size=architecture.vocab),
        sampling=sampling_of(published),
        forbidden_ids=(mask, expand) if published.expand else (mask,),
        canvas_length=published.context // 2,
        widths=widths_of(length),
        context_limit=published.context,
        instructions=False,
        expand_id=expand if published.expand else None,
        requests_first=published.requests_first,
    )
    # As the family's own prompt shares out what can be read.
    prompt: Any = NumberedPrompt(architecture.vocab, limit=published.context // 2, pinned=published.context // 4)
    return Masked(MaskedNetwork(module, architecture), info, prompt, shifted=published.shifted)


class NumberedVocabulary(Vocabulary):
    """A vocabulary in which token 7 is spelled "7 "; the padding token 0 is spelled as nothing."""

    def __init__(self, size: int) -> None:
        super().__init__([b"", *(f"{token} ".encode() for token in range(1, size))])


class NumberedPrompt:
    """Lays out requests whose texts are numbers: [prefix] and [gap | near suffix]."""

    def __init__(self, vocab_size: int, *, limit: int, pinned: int) -> None:
        self.vocabulary = NumberedVocabulary(vocab_size)
        self._limit, self._pinned = limit, pinned

    def tokenize(self, text: str) -> list[int]:
        return [int(word) for word in text.split()]

    def lay_out(self, request: FillRequest, limit: int | None = None) -> Prompt:
        return Prompt(
            context=tuple(self.tokenize(request.prefix)[-(limit or self._limit) :]),
            suffix=tuple(self.tokenize(request.suffix)[: self._pinned]),
        )


def _random(
    shape: str, make: Callable[[], Any], layers: int, device: Device, seed: int, layout: WeightFormat | None
) -> tuple[Any, dict[str, Any]]:
    """A module with random weights, placed like a checkpoint of its size, and the fields that the infos of all models
    share."""
    with torch.device("meta"):
        module = make()
    tensors = [_header(name, tuple(each.shape), layout) for name, each in module.named_parameters()]
    like = Checkpoint(
        path=Path(),
        name=f"random {shape}",
        config={},
        family="",
        length="discover",
        layers=layers,
        tensors=tuple(tensors),
        nbytes=0,
    )
    placement = place(like, device, this_machine())
    for tensor in tensors:
        if tensor.pieces:
            where = placement.device if tensor.layer is None else placement.layers[tensor.layer]
            put_in(module, tensor.name, _random_packed(tensor, placement.dtype, where, seed))
    _randomise(module, placement, seed)
    return module.eval(), {
        "name": like.name,
        "parameters": like.parameters,
        "device": placement.device,
        "dtype": str(placement.dtype).removeprefix("torch."),
        "pad_id": 0,
        "memory": memory_plan(like, placement),
    }


def _header(name: str, shape: tuple[int, ...], layout: WeightFormat | None) -> TensorHeader:
    """The header of a weight: NVFP4 for experts alone, as published; int4 for all matrices of layers, as `dg-lsp
    quantize` makes them."""
    pattern, group = (_EXPERTS, NVFP4_GROUP) if layout == "NVFP4" else (_MATRICES, INT4_GROUP)
    if layout is None or not pattern.search(name) or shape[-1] % group:
        return TensorHeader(name=name, dtype="", shape=shape)
    roles: tuple[PartRole, ...] = ("codes", "scales", "multiplier" if layout == "NVFP4" else "zeros")
    piece = {role: TensorHeader(name=role, dtype="", shape=()) for role in roles}
    count = (shape[0] if len(shape) == 3 else 1) * (2 if "gate_up" in name else 1)
    return TensorHeader(name=name, dtype=layout, shape=shape, pieces=(piece,) * count)


def _random_packed(tensor: TensorHeader, dtype: torch.dtype, device: str, seed: int) -> PackedWeights:
    """A packed weight; all experts have the same numbers, each a copy of its own."""
    *_, rows, inputs = tensor.shape
    weights = packed_weights(tensor, torch.bfloat16, dtype, device)
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(0, 256, (_BLOCK,), dtype=torch.uint8, generator=generator)
    codes = drawn.repeat(-(-rows * inputs // 2 // _BLOCK))[: rows * inputs // 2].view(rows, -1)
    if tensor.dtype == "NVFP4":
        scales = torch.ones(rows, inputs // NVFP4_GROUP).to(torch.float8_e4m3fn)
        together = len(tensor.pieces) // weights.experts
        parts = {"codes": codes, "scales": scales, "multiplier": torch.full((together,), _SCALE / _NVFP4_SPREAD)}
    else:
        groups = (rows, inputs // INT4_GROUP)
        zeros = torch.full(groups, 8, dtype=torch.uint8)
        parts = {"codes": codes, "scales": torch.full(groups, _SCALE / _INT4_SPREAD).bfloat16(), "zeros": zeros}
    parts = {name: part.to(device) for name, part in parts.items()}
    for expert in range(weights.experts):
        weights.put(expert, parts)
    return weights


def _randomise(module: Any, placement: Placement, seed: int) -> None:
    """Fill matrices with noise, norms and scales with ones, biases with zeros."""
    block = torch.randn(_BLOCK, generator=torch.Generator().manual_seed(seed)).mul_(_SCALE).to(placement.dtype)
    packed = {id(part) for own in packed_in(module).values() for part in own.modules()}
    for path, part in module.named_modules():
        if id(part) in packed:
            continue
        layer = TensorHeader(name=f"{path}.", dtype="", shape=()).layer
        device = placement.device if layer is None else placement.layers[layer]
        block = block.to(device)
        for name, empty in list(part.named_buffers(recurse=False)):
            setattr(part, name, torch.ones(empty.shape, dtype=placement.dtype, device=device))
        for name, empty in list(part.named_parameters(recurse=False)):
            full = torch.empty(empty.shape, dtype=placement.dtype, device=device)
            if empty.dim() == 1:
                full.fill_(0.0 if name == "bias" else 1.0)
            else:
                flat = full.view(-1)
                whole = len(flat) // _BLOCK * _BLOCK
                flat[:whole].view(-1, _BLOCK).copy_(block)
                flat[whole:] = block[: len(flat) - whole]
            setattr(part, name, nn.Parameter(full, requires_grad=False))
    module.tie_weights()
