"""An adapter's directory: peft's files and names, so that other tools read it, and `dg_lsp.json` with what it is for.

peft itself is not used: it knows nothing of weights that lie side by side, nor of an encoder and a decoder that are
one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.checkpoints.directory import METADATA_FILE, Checkpoint, weight_files
from engine.core.errors import EngineError, ModelError, NotRead
from engine.core.files import read_regular
from engine.core.runtime_paths import data_dir

CONFIG_FILE, WEIGHTS_FILE = "adapter_config.json", "adapter_model.safetensors"
VERSION = 1
_NEW, _OLD = ".new", ".old"
"""Behind the name of a directory that is being written, and of one that gives way to it."""
_ROOT = "base_model.model."
"""Before a module's name in peft's keys."""
_ENDS = 1 << 20
"""Bytes at either end of a file of weights that tell it from others."""
_MOST_JSON_NBYTES = 1 << 20
Pair = tuple[Tensor, Tensor]
"""A [R, K] and B [N, R]: the layer's weights [N, K] become W + alpha / R * B A."""


class AdapterFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Of gaps that were filled. Shares in [0, 1]; None where nothing could be told."""

    gaps: int
    exact: float | None
    similarity: float | None
    clean: float | None
    """Those that add no syntax problem."""
    silent: float | None
    forwards: float | None
    """Passes a fill."""
    p50_ms: float | None


class AdapterMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """What dg_lsp.json says of an adapter."""

    model: str
    fingerprint: str
    """Of the weights that it belongs to: see `fingerprint_of`."""
    folder: str
    """Absolute: it serves what lies in it."""
    commit: str | None
    created: float
    """Seconds since 1970."""
    rank: Annotated[int, msgspec.Meta(ge=1)]
    alpha: float
    before: dict[str, AdapterFigures]
    """On "held out" gaps of the folder, and on others "outside" it."""
    after: dict[str, AdapterFigures]
    max_steps: int
    sure: float
    """The sampler's, fitted anew: see engine.models.base.Sampling."""
    threshold: float | None
    """How sure it has to be of what is shown unasked; None: as the model."""
    on: bool
    """Whether it is to be used; one that gained nothing is kept, but off."""
    version: int = VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    metadata: AdapterMetadata
    tensors: dict[str, Pair]
    """By the names of the layers in the base's own network."""


def adapters_dir() -> Path:
    """The folder of all adapters, the user's own; it may not exist yet. None is ever read from a workspace."""
    return data_dir() / "adapters"


def all_adapters() -> list[Path]:
    """The directories of all adapters, by name; one that was being replaced when the disk or the power went is as it
    was before. Raises OSError where they can't be listed."""
    if not adapters_dir().is_dir():
        return []
    names = {each.name.removesuffix(_OLD) for each in adapters_dir().iterdir() if not each.name.endswith(_NEW)}
    return sorted(adapters_dir() / name for name in names)


def adapter_path(folder: Path, fingerprint: str) -> Path:
    """The directory of the adapter of a folder for the weights with that fingerprint."""
    name = folder.resolve()
    told = hashlib.sha256(f"{name}\0{fingerprint}".encode(errors="surrogateescape")).hexdigest()[:12]
    return adapters_dir() / f"{name.name or 'root'}-{told}"


def fingerprint_of(checkpoint: Checkpoint) -> str:
    """Sixteen hexadecimal digits that tell weights from any others, without reading all of large ones."""
    digest = hashlib.sha256()
    for path in sorted(weight_files(checkpoint.path, checkpoint.name)):
        nbytes = path.stat().st_size
        digest.update(f"{path.name} {nbytes}\n".encode())
        with path.open("rb") as file:
            digest.update(file.read(_ENDS))
            file.seek(max(0, nbytes - _ENDS))
            digest.update(file.read(_ENDS))
    return digest.hexdigest()[:16]


def write_adapter(directory: Path, adapter: Adapter) -> None:
    """Write it whole or not at all; what was there stays until then. Raises EngineError where the disk refuses."""
    draft, old = directory.with_name(directory.name + _NEW), directory.with_name(directory.name + _OLD)
    try:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True, mode=0o700)
        save_file(_keyed(adapter), draft / WEIGHTS_FILE)
        (draft / CONFIG_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(_config(adapter))))
        (draft / METADATA_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(adapter.metadata)))
        for path in draft.iterdir():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        if directory.exists():
            # A directory can't take another's place in one move: between these two, `old` is the one that counts.
            shutil.rmtree(old, ignore_errors=True)
            directory.rename(old)
        draft.rename(directory)
        shutil.rmtree(old, ignore_errors=True)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(draft, ignore_errors=True)
        reason = error.strerror if isinstance(error, OSError) else error
        raise EngineError(
            f"The adapter could not be written to {directory} ({reason}): make room on its disk and try again; the "
            "last good one is as it was."
        ) from None


def read_adapter(directory: Path) -> Adapter:
    """Raises ModelError for one that is not there, damaged, or of another version of the format."""
    metadata, directory = read_metadata(directory), _last_good(directory)
    with _readable(directory):
        tensors = load_file(directory / WEIGHTS_FILE)
    names = sorted({key.removeprefix(_ROOT).rpartition(".lora_")[0] for key in tensors})
    try:
        pairs = {each: tuple(tensors[f"{_ROOT}{each}.lora_{side}.weight"] for side in "AB") for each in names}
    except KeyError as error:
        raise _damaged(directory, f"it lacks {error}") from None
    for name, (a, b) in pairs.items():
        if a.ndim != 2 or b.ndim != 2 or not len(a) == b.shape[1] == metadata.rank:
            raise _damaged(directory, f"{name} has shapes that do not go together")
        if not (torch.isfinite(a).all() and torch.isfinite(b).all()):
            raise _damaged(directory, f"{name} holds what is no number")
    return Adapter(metadata=metadata, tensors={name: (a, b) for name, (a, b) in pairs.items()})


def read_metadata(directory: Path) -> AdapterMetadata:
    """What it is for, without its numbers. Raises ModelError as `read_adapter` does."""
    directory = _last_good(directory)
    with _readable(directory):
        metadata = msgspec.json.decode(read_regular(directory / METADATA_FILE, _MOST_JSON_NBYTES), type=AdapterMetadata)
    if metadata.version != VERSION:
        raise ModelError(f"The adapter in {directory} has another format ({metadata.version}): train it again.")
    return metadata


@contextmanager
def _readable(directory: Path) -> Generator[None]:
    try:
        yield
    except (OSError, NotRead, SafetensorError, ValueError) as error:
        raise _damaged(directory, str(error)) from None


def _damaged(directory: Path, why: str) -> ModelError:
    return ModelError(f"The adapter in {directory} is damaged ({why}): remove it, and train it again by `dg-lsp tune`.")


def _last_good(directory: Path) -> Path:
    old = directory.with_name(directory.name + _OLD)
    return old if old.exists() and not directory.exists() else directory


def remove_adapter(directory: Path) -> None:
    """Raises EngineError where the disk refuses."""
    try:
        for each in (directory, directory.with_name(directory.name + _OLD)):
            if each.exists():
                shutil.rmtree(each)
    except OSError as error:
        raise EngineError(f"{directory} can't be removed ({error.strerror or error}).") from None


def _keyed(adapter: Adapter) -> dict[str, Tensor]:
    return {
        f"{_ROOT}{name}.lora_{side}.weight": tensor.detach().cpu().contiguous()
        for name, pair in adapter.tensors.items()
        for side, tensor in zip("AB", pair, strict=True)
    }


def _config(adapter: Adapter) -> dict[str, object]:
    """What peft wants to know."""
    return {
        "peft_type": "LORA",
        "task_type": None,
        "base_model_name_or_path": adapter.metadata.model,
        "r": adapter.metadata.rank,
        "lora_alpha": adapter.metadata.alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        # Whole names: the last parts alone are those of self-conditioning, too.
        "target_modules": sorted(adapter.tensors),
    }
