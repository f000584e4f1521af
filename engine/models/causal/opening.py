"""Loads the network and the tokenizer of a pretrained coder."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from tokenizers import Tokenizer

from engine.models.causal.chat_template import ChatTemplate, chat_of
from engine.models.causal.config import markers
from engine.models.causal.tokenizer import read_tokenizer
from engine.models.checkpoints.directory import Checkpoint
from engine.models.checkpoints.placement import Placement
from engine.models.masked.config import read_architecture
from engine.models.masked.network import MaskedModule, MaskedNetwork
from engine.models.prompts.markers import FimTokens
from engine.models.weights import OnPercent, load_weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Coder:
    """A pretrained coder in memory: causal network, tokenizer, markers, chat template."""

    network: MaskedNetwork
    tokenizer: Tokenizer
    fim: FimTokens
    chat: ChatTemplate | None = None
    """None: it was not trained to answer messages."""

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids


def coder_of(checkpoint: Checkpoint, placement: Placement, on_percent: OnPercent | None = None) -> Coder:
    """Load a coder into memory. Raises ModelError for files that hold none."""
    architecture = read_architecture(checkpoint.config, checkpoint.name)
    with torch.device("meta"):
        module = MaskedModule(architecture)
    tokenizer = read_tokenizer(checkpoint)
    module = load_weights(
        module,
        checkpoint,
        placement,
        str,
        on_percent,
        stand_in=lambda name: name.replace("lm_head.", "model.embed_tokens.") if architecture.tied else name,
        groups=MaskedNetwork(module, architecture).linear_layers(),
    )
    return Coder(
        network=MaskedNetwork(module, architecture),
        tokenizer=tokenizer,
        fim=markers(checkpoint),
        chat=chat_of(checkpoint, tokenizer),
    )
