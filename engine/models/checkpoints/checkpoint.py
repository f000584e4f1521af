"""Reads what a model directory or a GGUF is: its family and size. Reads JSON and headers only, and imports no torch."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from engine.common.errors import ModelError
from engine.models.checkpoints.directory import (
    Checkpoint,
    Files,
    LengthStrategy,
    TensorHeader,
    loading,
    read_files,
    read_header,
    weight_files,
)
from engine.models.checkpoints.gguf import GgufFile, gguf_file, read_gguf
from engine.models.checkpoints.packed import check_formats, packed
from engine.models.family import Family
from engine.models.registry import family_of, family_of_gguf

_ADAPTER = "adapter_config.json"
_TOKENIZER_FILES = (("tokenizer.json",), ("vocab.json", "merges.txt"))
"""A tokenizer is in one file, or in these two."""


def read_checkpoint(path: Path, name: str) -> Checkpoint:
    """Read a model directory, or a GGUF. Raises ModelError for what is missing, cut off, unknown, contradictory or
    unsafe."""
    with loading(name):
        only_gguf = any(path.glob("*.gguf")) and not any(path.glob("*.safetensors"))
        is_folder = (path / "config.json").is_file() and not only_gguf
        file = None if is_folder else gguf_file(path)
        if file is None:
            return _read(path, name)
        header = read_gguf(file)
        return checkpoint_of_gguf(header, name, header.nbytes)


def checkpoint_of_gguf(file: GgufFile, name: str, nbytes: int) -> Checkpoint:
    """What the header of a GGUF says, of `nbytes` bytes on disk. Raises ModelError for a model that no family runs."""
    family = family_of_gguf(file, name)
    assert family.gguf is not None
    config, tensors = family.gguf(file)
    files = Files(path=file.path, name=name, config=config, fields=file.fields, small=family.small_files(file))
    return _checkpoint(files, family, family.loaded(tensors), nbytes)


def _read(path: Path, name: str) -> Checkpoint:
    files = read_files(path, name)
    family = family_of(files)
    weights = weight_files(path, name)
    if not any(all((path / file).is_file() for file in several) for several in _TOKENIZER_FILES):
        raise ModelError(f"{name} has no {_TOKENIZER_FILES[0][0]}: copy it there, or pull the model again.")
    if (path / _ADAPTER).exists():
        # transformers would load it on top, or what it names instead.
        raise ModelError(f"{name} is an adapter ({_ADAPTER}): merge it into its model and remove that file.")
    tensors = family.loaded(packed(files, [tensor for file in weights for tensor in read_header(file)]))
    check_formats(tensors, name)
    return _checkpoint(files, family, tensors, sum(file.stat().st_size for file in weights))


def _checkpoint(files: Files, family: Family, tensors: tuple[TensorHeader, ...], nbytes: int) -> Checkpoint:
    name, layers = files.name, family.layers(files)
    _check_layers(layers, tensors, f"{'header' if files.fields else 'config.json'} of {name}")
    length = files.metadata.get("length") or family.length(files)
    if length == "asked":
        length = "predicted"  # as exported models said it earlier
    if length not in get_args(LengthStrategy):
        raise ModelError(
            f"{name} says its length strategy is {length!r}: use one of {', '.join(get_args(LengthStrategy))}."
        )
    return Checkpoint(
        name=name,
        path=files.path,
        family=family.name,
        length=length,
        int8=family.int8,
        config=files.config,
        metadata=files.metadata,
        fields=files.fields,
        small=files.small,
        layers=layers,
        tensors=tensors,
        nbytes=nbytes,
    )


def _check_layers(layers: int, tensors: tuple[TensorHeader, ...], said_by: str) -> None:
    """Check the number of layers, before anything is made for each of them."""
    found = {tensor.layer for tensor in tensors} - {None}
    if len(found) != layers or not all(0 <= each < layers for each in found if each is not None):
        raise ModelError(
            f"The {said_by} says {layers} layers, but its weights have {len(found)}: pull or copy it again."
        )
