"""Train a small model of the masked family: a Llama without the causal mask, by the optimisers of the recipe."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

from engine.learn.masked_rows import masked_loss
from engine.learn.optimise import Optimiser, Rates, schedule
from engine.learn.packed import PackedCorpus
from engine.learn.tokenizer import SPECIAL_TOKENS
from engine.models.checkpoints.directory import METADATA_FILE, SINGLE_FILE, LengthStrategy
from engine.models.masked.config import read_architecture
from engine.models.masked.description import OWN_TYPE
from engine.models.masked.network import MaskedNetwork
from tests.engine.toys.masked_rows import EXPAND, toy_rows

_ROPE_THETA = 10000.0
_CONTEXT = 192
"""Tokens that the model reads, gap included: see tests.engine.toys.masked_rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedRecipe:
    """Sizes in features, and what is trained on."""

    vocab: int = 400
    hidden: int = 128
    intermediate: int = 320
    layers: int = 3
    heads: int = 2
    rows: int = 16
    steps: int = 900
    rates: Rates = field(default_factory=Rates)


def train_masked(
    recipe: MaskedRecipe, corpus: Path, seed: int, say: Callable[[str], None], every: int = 50
) -> LlamaForCausalLM:
    """A model trained on the packed corpus in the folder `corpus`, on this processor."""
    module = new_masked_model(recipe, seed)
    network = masked_network(module, recipe)
    optimiser = Optimiser(dict(module.named_parameters()), recipe.rates)
    packed, rng = PackedCorpus(corpus, "train"), random.Random(f"{seed}/masked")
    for step in range(recipe.steps):
        loss = masked_loss(network, toy_rows(packed, rng, recipe.rows))
        loss.backward()
        optimiser.step(schedule(step, 4 * (1 - step / recipe.steps), max(1, recipe.steps // 100)))
        if (step + 1) % every == 0:
            say(f"step {step + 1} of {recipe.steps}: {loss.item():.3f} nats")
    return module


def new_masked_model(recipe: MaskedRecipe, seed: int) -> LlamaForCausalLM:
    """A freshly initialised model, its head tied to its embeddings."""
    config = LlamaConfig(
        vocab_size=recipe.vocab,
        hidden_size=recipe.hidden,
        intermediate_size=recipe.intermediate,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        rope_parameters={"rope_type": "default", "rope_theta": _ROPE_THETA},
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(config)


def masked_network(module: LlamaForCausalLM, recipe: MaskedRecipe) -> MaskedNetwork:
    """Our passes over transformers' module."""
    return MaskedNetwork(module, read_architecture(_config(recipe), "the recipe"))


def export_masked(
    module: LlamaForCausalLM, recipe: MaskedRecipe, tokenizer: Path, out: Path, length: LengthStrategy
) -> None:
    """Write config, weights in bfloat16, tokenizer and facts into the directory `out`, which is made."""
    out.mkdir(parents=True, exist_ok=True)
    stored = {name: tensor.detach().bfloat16() for name, tensor in module.named_parameters()}
    save_file(stored, out / SINGLE_FILE, metadata={"format": "pt"})
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(tokenizer / name, out / name)
    for name, content in (("config.json", _config(recipe)), (METADATA_FILE, _facts(length))):
        (out / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _config(recipe: MaskedRecipe) -> dict[str, Any]:
    return {
        "model_type": OWN_TYPE,
        "vocab_size": recipe.vocab,
        "hidden_size": recipe.hidden,
        "intermediate_size": recipe.intermediate,
        "num_hidden_layers": recipe.layers,
        "num_attention_heads": recipe.heads,
        "rms_norm_eps": 1e-6,
        "rope_theta": _ROPE_THETA,
        "tie_word_embeddings": True,
    }


def _facts(length: LengthStrategy) -> dict[str, Any]:
    return {
        "length": length,
        "cut_anywhere": True,
        "widths": [8],
        # It is as sure of wide gaps as of narrow ones.
        "prior": {"fast": 0.0, "fast_rate": 1.0, "slow": 0.0, "slow_rate": 1.0, "floor": 1.0},
        "masked": {
            "mask": "<mask>",
            "shifted": False,
            "context": _CONTEXT,
            "begin": "<bos>",
            "end": "<eos>",
            "ends_suffix": True,
            "expand": SPECIAL_TOKENS[EXPAND],
            # A model this small fills gaps of the right width only.
            "requests_first": True,
            "temperature": 1.0,
            "top_p": 0.95,
            "entropy_bound": 0.1,
        },
    }
