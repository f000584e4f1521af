"""Random weights in a given shape. Text for such a model needs no tokenizer: every token is its own number."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from engine.checkpoints.directory import Checkpoint, LengthStrategy, TensorHeader
from engine.checkpoints.placement import Placement, place, this_machine
from engine.core.names import Device
from engine.core.request import FillRequest
from engine.models.base import ModelInfo, Noise, Prompt
from engine.models.gemma.config import read_config
from engine.models.gemma.model import RELEASED, DiffusionGemma
from engine.models.gemma.network import GemmaModule, GemmaNetwork
from engine.models.masked.config import read_architecture
from engine.models.masked.model import Masked, sampling_of, widths_of
from engine.models.masked.network import MaskedModule, MaskedNetwork
from engine.models.masked.published import PUBLISHED
from engine.models.vocabulary import Vocabulary

_BLOCK = 1 << 20
"""Random numbers that are drawn; the weights repeat them, as drawing billions takes minutes."""
_SCALE = 0.02
_CONTEXT = 4096


def random_gemma(shape: str, said: dict[str, Any], device: Device, seed: int) -> DiffusionGemma:
    """`said`: in a config.json. Raises ModelError where it can't be placed."""
    config = read_config(said, shape)
    module, shared = _random(shape, lambda: GemmaModule(config), config.num_hidden_layers, device, seed)
    if config.num_experts == 1:
        # A dense model is told by the norm of zeros behind its stand-in for experts.
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


def random_masked(shape: str, said: dict[str, Any], title: str, device: Device, seed: int) -> Masked:
    """`said`: in a config.json; `title`: of a published model. Raises ModelError where it can't be placed."""
    architecture = read_architecture(said, shape)
    module, shared = _random(shape, lambda: MaskedModule(architecture), architecture.layers, device, seed)
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
    """Token 7 is spelled "7 "; the padding token 0 says nothing."""

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


def _random(shape: str, make: Callable[[], Any], layers: int, device: Device, seed: int) -> tuple[Any, dict[str, Any]]:
    """A module with random weights, placed as a checkpoint of its size is, and what the infos of all models share."""
    with torch.device("meta"):
        module = make()
    tensors = [TensorHeader(name=name, dtype="", shape=tuple(each.shape)) for name, each in module.named_parameters()]
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
    _randomise(module, placement, seed)
    return module.eval(), {
        "name": like.name,
        "parameters": like.parameters,
        "device": placement.device,
        "dtype": str(placement.dtype).removeprefix("torch."),
        "pad_id": 0,
    }


def _randomise(module: Any, placement: Placement, seed: int) -> None:
    """Matrices become noise, norms and scales ones, biases zeros."""
    block = torch.randn(_BLOCK, generator=torch.Generator().manual_seed(seed)).mul_(_SCALE).to(placement.dtype)
    for path, part in module.named_modules():
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
