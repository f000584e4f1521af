"""Lists the models on this machine, and finds the one that a name means. Never uses the network."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from engine.common.errors import ModelError
from engine.common.names import BUNDLED
from engine.common.runtime_paths import data_dir
from engine.models.checkpoints.checkpoint import read_checkpoint
from engine.models.checkpoints.coders import CODERS, PublishedCoder
from engine.models.checkpoints.directory import Checkpoint
from engine.models.checkpoints.gguf import SUFFIX
from engine.models.registry import UnknownFamily

BUNDLED_PATH = Path(__file__).parents[2] / "weights" / BUNDLED
_USUAL = ("q4_k_m", "q8_0", "q5_k_m", "q6_k", "q4_0")
"""What is taken of several GGUF files where none is named: the first of these."""
_PART = re.compile(r"-[0-9]{5}-of-[0-9]{5}$")
_HUB_ID = re.compile(r"\w[\w.-]{,95}/\w[\w.-]{,95}")


class NotCached(ModelError):
    """A model is not in the cache, or so little of it that its family is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cached:
    """What the local Hugging Face cache holds for dg-lsp."""

    checkpoints: tuple[Checkpoint, ...]
    damaged: tuple[str, ...]
    """The faults of models that dg-lsp could run, or of the cache itself."""
    others: int
    """Number of models of other families, and of downloads that have barely begun."""


def find(name: str) -> Checkpoint:
    """The model with this name: "bundled", a coder of the catalogue, a directory, a GGUF or a Hub id. Raises
    ModelError."""
    if name == BUNDLED:
        return bundled()
    folder = folder_here(name)
    if folder is not None:
        return read_checkpoint(folder, name)
    hub_id, tag = tagged(name)
    if is_hub_id(hub_id):
        return read_checkpoint(_cached_snapshot(hub_id, tag), name)
    if (coder := coder_named(name)) is not None:
        return read_checkpoint(coder_file(coder), name)
    raise ModelError(
        f"There is no model {name!r}: name {BUNDLED!r}, a directory, a GGUF, {', '.join(CODERS)}, or a Hub id "
        "(`dg-lsp models` lists them)."
    )


def coder_named(name: str) -> PublishedCoder | None:
    """The coder of the catalogue that a name means."""
    return CODERS.get(name.lower())


def models_dir() -> Path:
    """The folder of pulled files; it may not exist yet."""
    return data_dir() / "models"


def coder_file(coder: PublishedCoder) -> Path:
    """The file of a coder. Raises NotCached where it is missing."""
    path = models_dir() / coder.file
    if not path.is_file():
        raise NotCached(f"{coder.name} is not on this machine: run `dg-lsp pull {coder.name}` first.")
    return path


def bundled() -> Checkpoint:
    """The model that ships in the package. Raises ModelError where the installation lost it."""
    if not BUNDLED_PATH.is_dir():
        raise ModelError("The bundled model is missing from this installation: install dg-lsp again.")
    return read_checkpoint(BUNDLED_PATH, BUNDLED)


def folder_here(name: str) -> Path | None:
    """The directory or GGUF on this machine with this name, None where there is none. Raises ModelError for another
    file."""
    try:
        path = Path(name).expanduser()
        is_file = path.is_file()
        is_folder = path.is_dir() and name != ""  # an empty name would be this directory
    except RuntimeError:
        raise ModelError(f"The home in {name!r} is not known: write the whole path.") from None
    except OSError:  # a name too long for a file, or one after a directory that is closed to us
        return None
    if is_file and path.suffix.lower() != SUFFIX:
        raise ModelError(f"{name} is a file, but no GGUF: name the directory of the model.")
    return path if is_folder or is_file else None


def is_hub_id(name: str) -> bool:
    """Whether a name has the form OWNER/MODEL, by the Hub's own rules."""
    if not _HUB_ID.fullmatch(name):
        return False
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    with suppress(HFValidationError):
        validate_repo_id(name)
        return True
    return False


def tagged(name: str) -> tuple[str, str]:
    """A name such as OWNER/MODEL:q8_0 as a Hub id and what selects one of its GGUF files."""
    hub_id, _, tag = name.partition(":")
    return hub_id, tag


def chosen_gguf(files: Iterable[str], tag: str, hub_id: str) -> list[str]:
    """The files of one GGUF, with all of its parts: the one that `tag` selects, without a tag the usual one; none where
    there is no GGUF. Raises ModelError where the tag selects none, or no usual one is there."""
    models: dict[str, list[str]] = {}
    for file in sorted(files):
        if file.lower().endswith(SUFFIX) and not file.lower().startswith("mmproj"):
            models.setdefault(_PART.sub("", file.lower().removesuffix(SUFFIX)), []).append(file)
    for wanted in (tag.lower(),) if tag else _USUAL:
        found = [stem for stem in models if stem.endswith(wanted)] or [stem for stem in models if wanted in stem]
        if found:
            return models[min(found, key=len)]
    if len(models) == 1 and not tag:
        return next(iter(models.values()))
    if tag or models:
        held = ", ".join(stem.rpartition("-")[2] for stem in models) or "none"
        raise ModelError(
            f"{hub_id} has no GGUF {tag or 'of a usual kind'} (it has: {held}): name one, as {hub_id}:q8_0."
        )
    return []


def cached() -> Cached:
    """The models in the local Hugging Face cache, by name."""
    from huggingface_hub import CacheNotFound, constants, scan_cache_dir

    try:
        repos = [repo for repo in scan_cache_dir(constants.HF_HUB_CACHE).repos if repo.repo_type == "model"]
    except CacheNotFound:
        repos = []
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no folder"
        told = f"The cache {constants.HF_HUB_CACHE} can't be read ({why}): check it, or set HF_HUB_CACHE to another."
        return Cached(checkpoints=(), damaged=(told,), others=0)
    checkpoints: list[Checkpoint] = []
    damaged: list[str] = []
    for name in sorted(repo.repo_id for repo in repos):
        try:
            checkpoints.append(read_checkpoint(_cached_snapshot(name), name))
        except (NotCached, UnknownFamily):
            continue
        except ModelError as error:
            damaged.append(str(error))
    others = len(repos) - len(checkpoints) - len(damaged)
    return Cached(checkpoints=tuple(checkpoints), damaged=tuple(damaged), others=others)


def cached_folder(hub_id: str) -> Path | None:
    """The folder of a Hub id's files in the local Hugging Face cache, None where there is none."""
    from huggingface_hub import try_to_load_from_cache

    config = try_to_load_from_cache(hub_id, "config.json")
    return Path(config).parent if isinstance(config, str) else None


def hub_folder(hub_id: str) -> Path:
    """The folder of a model in the local Hugging Face cache; it may not exist yet."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    return Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=hub_id, repo_type="model")


def _cached_snapshot(hub_id: str, tag: str = "") -> Path:
    folder = None if tag else cached_folder(hub_id)
    if folder is not None:
        return folder
    snapshot = _snapshot(hub_id)
    files = chosen_gguf([file.name for file in snapshot.iterdir()], tag, hub_id) if snapshot else []
    if snapshot is None or not files:
        name = f"{hub_id}:{tag}" if tag else hub_id
        raise NotCached(f"{name} is not in the local Hugging Face cache: run `dg-lsp pull {name}` first.")
    return snapshot / files[0]


def _snapshot(hub_id: str) -> Path | None:
    """The folder of the newest files of a model without a config.json."""
    repo = hub_folder(hub_id)
    with suppress(OSError, ValueError):
        snapshot = repo / "snapshots" / (repo / "refs" / "main").read_text().strip()
        return snapshot if snapshot.is_dir() else None
    return None
