"""Tokenizers of masked-diffusion coders. All tokens that were added to a vocabulary are control tokens."""

from __future__ import annotations

import json

from tokenizers import AddedToken, Tokenizer
from tokenizers.models import BPE

from engine.models.checkpoints.directory import Checkpoint, loading, read_json
from engine.models.masked.description import added_tokens
from engine.models.tokenizer import QWEN2, byte_level, settled


def read_tokenizer(checkpoint: Checkpoint) -> Tokenizer:
    """The tokenizer of a model directory. Raises ModelError."""
    with loading(f"The tokenizer of {checkpoint.name}"):
        file = checkpoint.path / "tokenizer.json"
        return settled(_from_one_file(checkpoint) if file.exists() else _from_vocabulary(checkpoint))


def _from_one_file(checkpoint: Checkpoint) -> Tokenizer:
    held = read_json(checkpoint.path / "tokenizer.json", checkpoint.name)
    for token in held.get("added_tokens", []):
        token["special"] = True
    # No Unicode normalisation: a file's bytes must survive, and code that is not in its normal form is rare.
    return Tokenizer.from_str(json.dumps({**held, "normalizer": None}))


def _from_vocabulary(checkpoint: Checkpoint) -> Tokenizer:
    """Qwen2's tokenizer from its two files, as the Dream family publishes it."""
    path = checkpoint.path
    backend = byte_level(BPE.from_file(str(path / "vocab.json"), str(path / "merges.txt")), QWEN2)
    added = added_tokens(path, checkpoint.name)
    for text, token in sorted(added.items(), key=lambda entry: entry[1]):
        backend.add_special_tokens([AddedToken(text, normalized=False)])
        if backend.token_to_id(text) != token:
            raise ValueError(f"{text} is {backend.token_to_id(text)} by its place and {token} by its name")
    return backend
