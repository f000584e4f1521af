"""A recipe that takes seconds: the toy language and a model of a few thousand parameters."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import torch

from engine.learn.contexts import ContextRow, KeysAndValues, attend_within, contexts
from engine.learn.examples import Example
from engine.learn.shapes import Shape, new_model
from engine.learn.training import Sitting
from engine.learn.training_recipe import NoiseKind, Recipe
from engine.models.gemma.network import GemmaNetwork
from tests.engine.toys.language import build_toy_corpus
from tests.engine.toys.recipes import ABSORBING

CPU = Sitting(device=torch.device("cpu"))
_SHAPE = Shape(
    vocab=300,
    hidden=32,
    intermediate=48,
    layers=3,
    heads=2,
    kv_heads=1,
    head_size=16,
    window=24,
    full_every=3,
    canvas=96,
)


def tiny(noise: NoiseKind = "absorbing", steps: int = 8) -> Recipe:
    """Half of the steps without canvases, a quarter while the rate falls."""
    recipe = replace(ABSORBING, shape=_SHAPE, noise=noise, contexts=(96,), step_tokens=192)
    tokens = steps * recipe.step_tokens
    return replace(recipe, tokens=tokens, canvases_from=tokens // 2, decay=tokens // 4, narrow_share=0.0, pinned=8)


@cache
def toy_corpus() -> Path:
    """A small packed corpus of the toy language, made once."""
    folder = Path(mkdtemp(prefix="dg-lsp-toy-"))
    build_toy_corpus(folder, 0, _SHAPE.vocab, programs=40)
    return folder


def random_network(seed: int = 0) -> GemmaNetwork:
    """A network of the tiny shape with random weights in float64, norms and scales included."""
    module = new_model(_SHAPE, seed).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.model.decoder.named_parameters():
            if "post_feedforward_layernorm_2" not in name:
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return GemmaNetwork(module)


def encode_rows(network: GemmaNetwork, ids: torch.Tensor, store: KeysAndValues | None = None) -> torch.Tensor:
    """Hidden states [B, N, E] of rows [B, N] that are one text each, as training reads them."""
    rows = [ContextRow() for _ in ids]
    for row, text in zip(rows, ids.tolist(), strict=True):
        row.add(Example(context=text, gap=None, after=[], inner=[]))
    batch = contexts(rows, ids.shape[1])
    return network.encode(batch.ids, batch.position, attend_within(network, batch, store))
