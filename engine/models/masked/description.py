"""Reads the files of a masked-diffusion coder without torch: which published one it is, and its tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import convert

from engine.common.errors import ModelError
from engine.models.checkpoints.directory import Files, LengthStrategy, TensorHeader, read_json_if_there
from engine.models.masked.config import Architecture, our_name, read_architecture
from engine.models.masked.published import PUBLISHED, Published

OWN_TYPE = "masked_llama"
"""The type that this repository's recipe writes: a Llama without the causal mask, with its own metadata."""
MODEL_TYPES = (*dict.fromkeys(each.model_type for each in PUBLISHED), OWN_TYPE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A checkpoint, with the ids of its special tokens."""

    architecture: Architecture
    published: Published
    length: LengthStrategy
    mask: int
    end: int
    begin: int | None
    expand: int | None


def described(files: Files) -> Described:
    """The description of a checkpoint. Raises ModelError for a config or a tokenizer that is unknown or contradicts
    itself."""
    added = added_tokens(files.path, files.name)
    published = _published(files, added)
    architecture = read_architecture(files.config, files.name)
    token = partial(_token, added, files.name, architecture.vocab)
    found = Described(
        architecture=architecture,
        published=published,
        length=files.metadata.get("length", "expand" if published.expand else "calibrated"),
        mask=token(published.mask),
        end=token(published.end),
        begin=token(published.begin) if published.begin else None,
        expand=token(published.expand) if published.expand else None,
    )
    said = files.config.get("mask_token_id", found.mask)
    if said != found.mask:
        raise ModelError(
            f"The config.json of {files.name} says mask_token_id is {said!r}, but in its tokenizer {published.mask} is "
            f"{found.mask}: pull or copy the model again."
        )
    return found


def is_masked(files: Files) -> bool:
    """Whether a checkpoint has a mask token: without one it is a left-to-right model."""
    return "masked" in files.metadata or _found(files, added_tokens(files.path, files.name)) is not None


def loaded(tensors: list[TensorHeader]) -> tuple[TensorHeader, ...]:
    """All tensors, under the names of transformers' classes."""
    return tuple(replace(tensor, name=name) for tensor in tensors if (name := our_name(tensor.name)) is not None)


def added_tokens(path: Path, name: str) -> dict[str, int]:
    """Id of each token that was added to the vocabulary, by its text."""
    found: dict[str, int] = dict(read_json_if_there(path / "added_tokens.json", name))
    decoder: dict[str, Any] = read_json_if_there(path / "tokenizer_config.json", name).get("added_tokens_decoder", {})
    found |= {entry["content"]: int(token) for token, entry in decoder.items()}
    listed: list[dict[str, Any]] = read_json_if_there(path / "tokenizer.json", name).get("added_tokens", [])
    return found | {entry["content"]: entry["id"] for entry in listed}


def _published(files: Files, added: dict[str, int]) -> Published:
    kind = files.config["model_type"]
    if "masked" in files.metadata:
        return convert({"title": files.name, "model_type": kind, **files.metadata["masked"]}, Published)
    if (found := _found(files, added)) is not None:
        return found
    raise ModelError(
        f"{files.name} is a model of type {kind!r} without a mask token, which writes left to right only: "
        "`dg-lsp models` lists models that fill gaps."
    )


def _found(files: Files, added: dict[str, int]) -> Published | None:
    kind = files.config["model_type"]
    return next((each for each in PUBLISHED if each.model_type == kind and (not each.mark or each.mark in added)), None)


def _token(added: dict[str, int], name: str, vocab: int, text: str) -> int:
    if text not in added:
        raise ModelError(f"The tokenizer of {name} has no {text}: pull or copy the model again.")
    if added[text] not in range(vocab):
        raise ModelError(
            f"The config.json of {name} says vocab_size is {vocab}, but {text} is {added[text]} in its tokenizer: "
            "pull or copy the model again."
        )
    return added[text]
