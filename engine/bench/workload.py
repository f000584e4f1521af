"""What a benchmark gives a model to do: a gap in real code, contexts of a length, canvases of a width."""

from __future__ import annotations

import inspect
import json.decoder
import random

import torch

from engine.bench.numbered import NumberedVocabulary
from engine.key_values import ContextCache
from engine.models.base import Context, Rows
from engine.models.diffusion_gemma import DiffusionGemma
from engine.request import FillRequest

_TEXT_TOKENS = 2000
_CACHE_NBYTES = 8 << 30


def request_for(model: DiffusionGemma, width: int) -> FillRequest:
    """A gap of `width` tokens in the middle of real code, or of numbers where the model reads numbers."""
    if isinstance(model.vocabulary, NumberedVocabulary):
        words = [str(token) for token in token_ids(model, _TEXT_TOKENS)]
        return FillRequest(prefix=" ".join(words[:-200]), suffix=" ".join(words[-200:]), width=width)
    text = inspect.getsource(json.decoder)
    at = text.index("\n", len(text) // 2) + 1
    return FillRequest(prefix=text[:at], suffix=text[at:], language="python", width=width)


def token_ids(model: DiffusionGemma, count: int, seed: int = 0) -> list[int]:
    """Tokens at random, no control tokens among them."""
    rng = random.Random(seed)
    return [rng.randrange(16, model.facts.noise.vocab_size) for _ in range(count)]


def forget_contexts(model: DiffusionGemma) -> None:
    """As if no request had come before."""
    model.contexts = ContextCache(len(model.network.decoder.layers), _CACHE_NBYTES)


def rows_of(
    model: DiffusionGemma, context: Context, *, gap: int, pinned: int, batch: int = 1, first: bool = False
) -> Rows:
    """Canvases [gap | pinned] at their `first` step, or later, when the last step's logits condition them."""
    device = model.network.device
    ids = torch.tensor([token_ids(model, gap + pinned, seed) for seed in range(batch)], device=device)
    open_ = torch.zeros(batch, gap + pinned, dtype=torch.bool, device=device)
    open_[:, :gap] = True
    generator = torch.Generator(device=device).manual_seed(0)
    vocab = model.facts.noise.vocab_size
    return Rows(
        contexts=[context] * batch,
        canvas=ids,
        lengths=[gap + pinned] * batch,
        open=open_,
        self_conditioning=None if first else torch.randn(batch * gap, vocab, generator=generator, device=device),
        conditioned=[not first] * batch,
    )
