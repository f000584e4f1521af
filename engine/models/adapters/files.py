"""An adapter's directory: peft's files and names, so that other tools can read it, and `dg_lsp.json` with its metadata.
peft itself is not used: it does not know layers that lie side by side, nor an encoder and a decoder with the same
weights."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.common.errors import EngineError
from engine.common.files import open_regular
from engine.models.adapters.metadata import NEW, OLD, AdapterMetadata, damaged, last_good, read_metadata, readable
from engine.models.checkpoints.directory import METADATA_FILE

CONFIG_FILE, WEIGHTS_FILE = "adapter_config.json", "adapter_model.safetensors"
_ROOT = "base_model.model."
"""The prefix of a module's name in peft's keys."""
Pair = tuple[Tensor, Tensor]
"""A [R, K] and B [N, R]: the layer's weights [N, K] become W + alpha / R * B A."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    metadata: AdapterMetadata
    tensors: dict[str, Pair]
    """Pairs by the names of the layers in the base's network."""


def write_adapter(directory: Path, adapter: Adapter) -> None:
    """Write an adapter whole or not at all; the previous one stays until then. Raises EngineError where the disk
    refuses."""
    draft, old = directory.with_name(directory.name + NEW), directory.with_name(directory.name + OLD)
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
    """Read an adapter. Raises ModelError for one that is missing, damaged, or of another version of the format."""
    metadata, directory = read_metadata(directory), last_good(directory)
    try:
        # The library would wait for a pipe.
        with readable(directory), open_regular(directory / WEIGHTS_FILE):
            tensors = load_file(directory / WEIGHTS_FILE)
    except SafetensorError as error:
        raise damaged(directory, str(error)) from None
    names = sorted({key.removeprefix(_ROOT).rpartition(".lora_")[0] for key in tensors})
    try:
        pairs = {each: tuple(tensors[f"{_ROOT}{each}.lora_{side}.weight"] for side in "AB") for each in names}
    except KeyError as error:
        raise damaged(directory, f"it lacks {error}") from None
    for name, (a, b) in pairs.items():
        if a.ndim != 2 or b.ndim != 2 or not len(a) == b.shape[1] == metadata.rank:
            raise damaged(directory, f"{name} has shapes that do not go together")
        if not (torch.isfinite(a).all() and torch.isfinite(b).all()):
            raise damaged(directory, f"{name} holds what is no number")
    return Adapter(metadata=metadata, tensors={name: (a, b) for name, (a, b) in pairs.items()})


def _keyed(adapter: Adapter) -> dict[str, Tensor]:
    return {
        f"{_ROOT}{name}.lora_{side}.weight": tensor.detach().cpu().contiguous()
        for name, pair in adapter.tensors.items()
        for side, tensor in zip("AB", pair, strict=True)
    }


def _config(adapter: Adapter) -> dict[str, object]:
    """The adapter_config.json that peft expects."""
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
