"""Read a masked-diffusion coder: transformers' own Qwen2 or Llama with the published weights, and its tokenizer.

No code that lies beside them is run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from tokenizers import AddedToken, Regex, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from torch import Tensor
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from engine.checkpoints.directory import Checkpoint, read_json, reading, weight_files
from engine.checkpoints.placement import Placement
from engine.core.errors import ModelError
from engine.models.masked.config import Architecture, our_name
from engine.models.masked.description import added_tokens
from engine.models.tokenizer import settled

_QWEN_PIECES = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How Qwen2 cuts a text before its merges: https://github.com/QwenLM/Qwen/blob/main/tokenization_note.md"""
_HEAD, _TABLE = "lm_head.weight", "model.embed_tokens.weight"


def read_module(checkpoint: Checkpoint, architecture: Architecture, placement: Placement) -> Any:
    """The weights, in evaluation mode, on their devices. Raises ModelError for those that do not fit the config."""
    with torch.device("meta"):
        module: Any = new_module(architecture)
    expected: dict[str, Tensor] = module.state_dict()
    found: dict[str, Tensor] = {}
    for file in weight_files(checkpoint.path, checkpoint.name):
        found |= _read(file, expected, placement, checkpoint.name)
    if architecture.tied and _TABLE in found:
        found[_HEAD] = found[_TABLE]
    missing = min(expected.keys() - found.keys(), default=None)
    if missing:
        raise ModelError(f"{checkpoint.name} lacks {missing}: pull or copy it again.")
    module.load_state_dict(found, assign=True)
    return module.requires_grad_(False).eval()


def read_tokenizer(checkpoint: Checkpoint) -> PreTrainedTokenizerBase:
    """The tokenizer; all tokens that were added to its vocabulary are control tokens. Raises ModelError."""
    with reading(f"The tokenizer of {checkpoint.name}"):
        file = checkpoint.path / "tokenizer.json"
        backend = _from_one_file(file, checkpoint.name) if file.exists() else _from_vocabulary(checkpoint)
        tokenizer: Any = PreTrainedTokenizerFast(tokenizer_object=backend)
        # A control token's name in a file is text.
        tokenizer.backend_tokenizer.encode_special_tokens = True
        return settled(tokenizer)


def new_module(architecture: Architecture) -> Any:
    """transformers' class in this shape, its weights where and in what format torch makes them now."""
    classes: dict[str, tuple[Any, Any]] = {
        "qwen2": (Qwen2ForCausalLM, Qwen2Config),
        "llama": (LlamaForCausalLM, LlamaConfig),
    }
    kind, config = classes[architecture.kind]
    return kind(
        config(
            vocab_size=architecture.vocab,
            hidden_size=architecture.hidden,
            intermediate_size=architecture.intermediate,
            num_hidden_layers=architecture.layers,
            num_attention_heads=architecture.heads,
            num_key_value_heads=architecture.kv_heads,
            rms_norm_eps=architecture.norm_eps,
            rope_parameters={"rope_type": "default", "rope_theta": architecture.rope_theta},
            tie_word_embeddings=architecture.tied,
            pad_token_id=None,
        )
    )


def _read(file: Path, expected: dict[str, Tensor], placement: Placement, name: str) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    with reading(name), safe_open(file, framework="pt") as tensors:
        for theirs in tensors.keys():  # noqa: SIM118 (it is no mapping)
            ours = our_name(theirs)
            if ours not in expected:
                if _is_buffer(ours):
                    continue
                raise ModelError(f"{name} holds {theirs}, which its config.json knows nothing of: pull it again.")
            tensor: Tensor = tensors.get_tensor(theirs)
            _check_shape(tensor, expected[ours], theirs, name)
            found[ours] = tensor.to(_device(ours, placement), placement.dtype)
    return found


def _check_shape(tensor: Tensor, expected: Tensor, tensor_name: str, name: str) -> None:
    if tensor.shape != expected.shape:
        raise ModelError(
            f"{tensor_name} of {name} is {tuple(tensor.shape)}, and its config.json asks for {tuple(expected.shape)}: "
            "pull or copy the model again."
        )


def _is_buffer(name: str) -> bool:
    """What older versions of transformers wrote beside the weights, and what a tied head repeats."""
    return name.endswith("rotary_emb.inv_freq")


def _device(tensor: str, placement: Placement) -> str:
    parts = tensor.split(".")
    return placement.layers[int(parts[2])] if parts[1] == "layers" else placement.device


def _from_one_file(file: Path, name: str) -> Tokenizer:
    held = read_json(file, name)
    for token in held.get("added_tokens", []):
        token["special"] = True
    return _exact(Tokenizer.from_str(json.dumps(held)))


def _from_vocabulary(checkpoint: Checkpoint) -> Tokenizer:
    """Qwen2's tokenizer from its two files, as the Dream family publishes it."""
    path = checkpoint.path
    backend = Tokenizer(BPE.from_file(str(path / "vocab.json"), str(path / "merges.txt")))
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_QWEN_PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    added = added_tokens(path, checkpoint.name)
    for text, token in sorted(added.items(), key=lambda entry: entry[1]):
        backend.add_special_tokens([AddedToken(text, normalized=False)])
        if backend.token_to_id(text) != token:
            raise ValueError(f"{text} is {backend.token_to_id(text)} by its place and {token} by its name")
    return backend


def _exact(backend: Tokenizer) -> Tokenizer:
    """Without Unicode normalisation: a file's bytes must survive, and code that is not in its normal form is rare."""
    backend.normalizer = None  # type: ignore[assignment]
    return backend
