"""What a model directory is: which family runs it, how big it is. Reads JSON and headers only, and imports no torch."""

from __future__ import annotations

from pathlib import Path

from engine.checkpoints.directory import Checkpoint, read_files, read_header, weight_files
from engine.core.errors import ModelError
from engine.models.registry import family_of_type

_TOKENIZER_FILES = (("tokenizer.json",), ("vocab.json", "merges.txt"))
"""A tokenizer is in one file, or in these two."""


def read_checkpoint(path: Path, name: str) -> Checkpoint:
    """Read a model directory. Raises ModelError for what is missing, cut off, unknown or unsafe."""
    files = read_files(path, name)
    family = family_of_type(files.config.get("model_type"), name)
    weights = weight_files(path, name)
    if not any(all((path / file).is_file() for file in several) for several in _TOKENIZER_FILES):
        raise ModelError(f"{name} has no {_TOKENIZER_FILES[0][0]}: copy it there, or pull the model again.")
    return Checkpoint(
        name=name,
        path=path,
        family=family.name,
        length=files.told.get("length") or family.length(files),
        config=files.config,
        layers=family.layers(files),
        tensors=family.loaded([tensor for file in weights for tensor in read_header(file)]),
        nbytes=sum(file.stat().st_size for file in weights),
    )
