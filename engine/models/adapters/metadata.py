"""Metadata of adapters, without weights: where they lie, their base model and folder, what they gained, whether they
are active."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
from filelock import FileLock, Timeout

from engine.common.errors import BadInput, EngineError, ModelError, NotRead
from engine.common.files import read_regular, replacing, writing
from engine.common.runtime_paths import data_dir
from engine.models.checkpoints.directory import METADATA_FILE, Checkpoint, weight_files

VERSION = 1
_LOCK = "lock"
NEW, OLD = ".new", ".old"
"""Suffixes of a directory that is being written, and of one that is being replaced."""
_ENDS = 1 << 20
"""Bytes at either end of a file of weights that go into its fingerprint."""
_MOST_JSON_NBYTES = 1 << 20
_NAME_CHARS = 48
"""Most characters of a folder's name in the name of its adapter, which gets a prefix as well."""


class AdapterFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of filled gaps: shares in [0, 1], None where nothing could be measured."""

    gaps: int
    exact: float | None
    similarity: float | None
    clean: float | None
    """Share of fills that add no syntax problem."""
    silent: float | None
    forwards: float | None
    """Forward passes a fill."""
    p50_ms: float | None


class AdapterMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """The content of an adapter's dg_lsp.json."""

    model: str
    fingerprint: str
    """The fingerprint of the weights that it belongs to: see `fingerprint_of`."""
    folder: str
    """The absolute path of the folder that it serves."""
    commit: str | None
    created: Annotated[float, msgspec.Meta(ge=0, le=4e9)]
    """Time in seconds since 1970."""
    rank: Annotated[int, msgspec.Meta(ge=1)]
    alpha: float
    before: dict[str, AdapterFigures]
    """Figures of the model before: on "held out" gaps of the folder, and on others "outside" it."""
    after: dict[str, AdapterFigures]
    max_steps: int
    sure: float
    """The sampler's `sure` (see engine.models.base.Sampling), fitted anew."""
    threshold: float | None
    """Least confidence of what is shown without being requested; None: the model's own."""
    on: bool
    """Whether it is active: one that gained nothing is saved but disabled."""
    version: int = VERSION


def adapters_dir() -> Path:
    """The user's folder of adapters; it may not exist yet. Adapters are never read from a workspace."""
    return data_dir() / "adapters"


def all_adapters() -> list[Path]:
    """The directories of all adapters, by name. One whose replacement was cut off is put back first. Raises EngineError
    where they can't be listed."""
    try:
        if not adapters_dir().is_dir():
            return []
        there = [each.name for each in adapters_dir().iterdir() if each.is_dir() and not each.name.endswith(NEW)]
    except OSError as error:
        raise EngineError(
            f"{adapters_dir()} can't be listed ({error.strerror or error}): check its permissions."
        ) from None
    return sorted(adapters_dir() / name for name in {each.removesuffix(OLD) for each in there})


def adapter_path(folder: Path, fingerprint: str) -> Path:
    """The directory of the adapter of a folder for the weights with that fingerprint."""
    name = folder.resolve()
    told = hashlib.sha256(f"{name}\0{fingerprint}".encode(errors="surrogateescape")).hexdigest()[:12]
    return adapters_dir() / f"{name.name[:_NAME_CHARS] or 'root'}-{told}"


def work_dir(directory: Path) -> Path:
    """The folder beside an adapter with what is needed to resume or repeat its training."""
    return data_dir() / "tune" / directory.name


def unfinished() -> list[str]:
    """Names of adapters whose training is paused or under way."""
    there = {each.name for each in all_adapters()}
    return sorted({run.parent.name for run in (data_dir() / "tune").glob("*/run-*")} - there)


def fingerprint_of(checkpoint: Checkpoint) -> str:
    """Sixteen hexadecimal digits that identify weights; large files are not read whole."""
    digest = hashlib.sha256()
    of_gguf = {tensor.file for tensor in checkpoint.tensors} if checkpoint.fields else set[Path]()
    for path in sorted(of_gguf or weight_files(checkpoint.path, checkpoint.name)):
        nbytes = path.stat().st_size
        digest.update(f"{path.name} {nbytes}\n".encode())
        with path.open("rb") as file:
            digest.update(file.read(_ENDS))
            file.seek(max(0, nbytes - _ENDS))
            digest.update(file.read(_ENDS))
    return digest.hexdigest()[:16]


def read_metadata(directory: Path) -> AdapterMetadata:
    """Read an adapter's metadata. Raises ModelError for one that is missing, damaged, or of another version of the
    format."""
    directory = last_good(directory)
    with readable(directory):
        metadata = msgspec.json.decode(read_regular(directory / METADATA_FILE, _MOST_JSON_NBYTES), type=AdapterMetadata)
    if metadata.version != VERSION:
        raise ModelError(f"The adapter in {directory} has another format ({metadata.version}): train it again.")
    return metadata


@contextmanager
def readable(directory: Path) -> Generator[None]:
    """Check that a folder can be read. Raises ModelError."""
    try:
        yield
    except (OSError, NotRead, ValueError) as error:
        raise damaged(directory, str(error)) from None


def damaged(directory: Path, why: str) -> ModelError:
    return ModelError(f"The adapter in {directory} is damaged ({why}): remove it, and train it again by `dg-lsp tune`.")


def last_good(directory: Path) -> Path:
    old = directory.with_name(directory.name + OLD)
    return old if old.exists() and not directory.exists() else directory


def switch_adapter(directory: Path, *, on: bool) -> None:
    """Activate or deactivate an adapter. Raises ModelError for one that can't be read, EngineError where the disk
    refuses."""
    metadata, directory = msgspec.structs.replace(read_metadata(directory), on=on), last_good(directory)
    with writing(directory, "check its permissions and the space on its disk"):
        with replacing(directory / METADATA_FILE) as draft:
            draft.write_bytes(msgspec.json.format(msgspec.json.encode(metadata)))
        # So that an engine looks again.
        os.utime(adapters_dir())


@contextmanager
def claimed(work: Path) -> Generator[None]:
    """Within the block no other process makes or removes the adapter of the folder `work`. Raises BadInput where one
    does."""
    work.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with FileLock(work / _LOCK, blocking=False):
            yield
    except Timeout:
        raise BadInput("This folder is being tuned already: wait for its end, or pause it by Ctrl-C.") from None


def remove_adapter(directory: Path) -> None:
    """Remove an adapter and its training state. Raises BadInput while it is trained, EngineError where the disk
    refuses."""
    work = work_dir(directory)
    try:
        with claimed(work):
            for each in (directory, directory.with_name(directory.name + OLD), *work.glob("*/")):
                if each.exists():
                    shutil.rmtree(each)
        # On Windows a lock that is held can't be removed.
        shutil.rmtree(work)
    except OSError as error:
        raise EngineError(f"{directory} can't be removed ({error.strerror or error}): check its permissions.") from None
