"""Downloads a model from the Hugging Face Hub into its local cache: safetensors or GGUF, never code or pickle."""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from huggingface_hub import (
    HfApi,
    ModelInfo,
    constants,
    get_hf_file_metadata,
    get_session,
    hf_hub_download,
    hf_hub_url,
    set_client_factory,
    try_to_load_from_cache,
)
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HTTPError,  # pyright: ignore[reportPrivateImportUsage] (which package it is from depends on the version)
    RepositoryNotFoundError,
)

from engine.common.errors import EngineError, ModelError
from engine.common.sizes import decimal_bytes
from engine.models.checkpoints.catalog import chosen_gguf, find, hub_folder, is_hub_id, tagged
from engine.models.checkpoints.checkpoint import checkpoint_of_gguf
from engine.models.checkpoints.coders import CODERS, PublishedFile
from engine.models.checkpoints.directory import Checkpoint, loading, read_json
from engine.models.checkpoints.fetching import OnProgress, fetch, needed_nbytes, remote_header
from engine.models.checkpoints.gguf import SUFFIX, joined
from engine.models.checkpoints.packed import layout_of
from engine.models.registry import family_of_type

PATTERNS = ("*.safetensors", "*.json", "*.jinja", "tokenizer.model", "merges.txt")
"""Files that are downloaded, from the top folder only: other folders hold variants for other programs."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
"""Names of files that are accepted; other characters can make a pattern, or a path on some system."""
_COMMIT, _SHA256 = re.compile(r"[0-9a-f]{40}"), re.compile(r"[0-9a-f]{64}")
_TAG = re.compile(r'(?:W/)?"?[A-Za-z0-9][A-Za-z0-9_.-]*"?')
_BECOME_PATHS = {"X-Repo-Commit": _COMMIT, "ETag": _TAG, "X-Linked-ETag": _TAG}
"""Headers that the Hub's library makes paths of, and the form that each must have."""
_SPARE_NBYTES = 1 << 30
"""Bytes left free on the disk."""
_WORKERS = 2
"""Files at once. An interruption loses what each of them had, and the library loads a large file in parallel anyway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The size of a download, known before it starts."""

    hub_id: str
    name: str
    """The name to request it by from now on: the Hub id, with what selects one of its files."""
    commit: str
    files: tuple[str, ...]
    gguf: tuple[PublishedFile, ...]
    """Of these the GGUF files that are missing and whose SHA-256 the Hub names."""
    download_nbytes: int
    """Bytes to download, without what the cache has of them."""
    weights_nbytes: int
    """About the bytes of the weights in memory, in their stored format."""
    free_nbytes: int
    """Free bytes on the disk of the cache."""


def plan_pull(name: str) -> Plan:
    """Ask the Hub for the size of a model; OWNER/MODEL:q8_0 means one of its GGUF files. Raises ModelError for one that
    can't be had or run, EngineError offline."""
    hub_id, tag = tagged(name)
    if not is_hub_id(hub_id):
        raise ModelError(f"{name!r} is no Hub id: give OWNER/MODEL, or {' or '.join(CODERS)}.")
    with _hub_errors(hub_id):
        info = HfApi().model_info(hub_id, files_metadata=True)
    sizes = _our_files(info, tag)
    weights_nbytes = sum(size for file, size in sizes.items() if file.endswith((".safetensors", SUFFIX)))
    _check(info, hub_id, weights_nbytes, is_gguf=any(file.endswith(SUFFIX) for file in sizes))
    commit = info.sha or ""
    if not _COMMIT.fullmatch(commit):
        raise EngineError(_nonsense("commit", commit))
    missing = [file for file in sizes if not isinstance(try_to_load_from_cache(hub_id, file, revision=commit), str)]
    with _hub_errors(hub_id):
        gguf = _published(name, commit, {file: sizes[file] for file in missing if file.endswith(SUFFIX)})
    held = sum(each.nbytes - needed_nbytes(each, _blob(each)) for each in gguf)
    if not held and sum(each.nbytes for each in gguf) == weights_nbytes:
        _check_headers(name, gguf, weights_nbytes)
    return Plan(
        hub_id=hub_id,
        name=name,
        commit=commit,
        files=tuple(sizes),
        gguf=gguf,
        download_nbytes=sum(sizes[file] for file in missing) - held,
        weights_nbytes=weights_nbytes,
        free_nbytes=shutil.disk_usage(_existing(Path(constants.HF_HUB_CACHE))).free,
    )


def pull(plan: Plan, on_progress: OnProgress = lambda nbytes: None) -> Checkpoint:
    """Download what is missing: GGUF files resumed and reported to `on_progress`, others by the Hub's library, which
    shows a bar of its own and keeps no part of a file over an interruption.

    Raises EngineError where disk or network fail, ModelError for weights in an unknown format (before the download),
    and where the download is not a model.
    """
    if plan.download_nbytes + _SPARE_NBYTES > plan.free_nbytes:
        raise EngineError(
            f"{plan.hub_id} needs {decimal_bytes(plan.download_nbytes + _SPARE_NBYTES)} of disk, and "
            f"{constants.HF_HUB_CACHE} has {decimal_bytes(plan.free_nbytes)}: free some, or set HF_HUB_CACHE."
        )
    with _hub_errors(plan.hub_id), ThreadPoolExecutor(_WORKERS) as pool:
        _distrust_headers()
        if "config.json" in plan.files:
            config = Path(hf_hub_download(plan.hub_id, "config.json"))
            layout_of(read_json(config, plan.hub_id), plan.hub_id)
        before = 0
        for each in plan.gguf:
            fetch(each, lambda nbytes, before=before: on_progress(before + nbytes), _blob(each))
            before += each.nbytes
        # By branch, so that the cache knows the model by its id alone afterwards.
        tasks = [pool.submit(hf_hub_download, plan.hub_id, name) for name in plan.files]
        try:
            folders = {Path(task.result()).parent.name for task in tasks}
        except BaseException:  # at Ctrl-C, too, or the pool would first download the rest
            pool.shutdown(cancel_futures=True)
            raise
    if folders != {plan.commit}:
        raise EngineError(f"{plan.hub_id} changed on the Hub meanwhile: run `dg-lsp pull {plan.hub_id}` again.")
    return find(plan.name)


def _published(name: str, commit: str, sizes: Mapping[str, int]) -> tuple[PublishedFile, ...]:
    """What the Hub says of these files, without those whose SHA-256 it does not name."""
    hub_id, _ = tagged(name)
    tags = {file: get_hf_file_metadata(hf_hub_url(hub_id, file, revision=commit)).etag or "" for file in sizes}
    return tuple(
        PublishedFile(name=name, file=file, hub_id=hub_id, revision=commit, nbytes=sizes[file], sha256=tag)
        for file, tag in tags.items()
        if _SHA256.fullmatch(tag)
    )


def _blob(published: PublishedFile) -> Path:
    """Where the Hub's library looks for a file before it downloads it."""
    return hub_folder(published.hub_id) / "blobs" / published.sha256


def _check_headers(name: str, gguf: tuple[PublishedFile, ...], nbytes: int) -> None:
    """Check what can be known before gigabytes are downloaded. Raises ModelError as opening the model does."""
    with loading(name):
        headers = [header for each in gguf if (header := remote_header(each)) is not None]
        if len(headers) == len(gguf):
            checkpoint_of_gguf(joined(headers), name, nbytes)


def _distrust_headers() -> None:
    """From now on a response whose headers lead out of the cache is an EngineError."""
    session: Any = get_session()

    def check(response: Any) -> None:
        if response.request.method != "HEAD":  # what a file is called by is asked that way
            return
        for header, form in _BECOME_PATHS.items():
            value = response.headers.get(header)
            if value is not None and not form.fullmatch(value):
                raise EngineError(_nonsense(header, value))

    hooks = {**session.event_hooks, "response": [*session.event_hooks["response"], check]}
    # The library closes its client after a broken connection and makes another.
    set_client_factory(
        lambda: type(session)(event_hooks=hooks, follow_redirects=session.follow_redirects, timeout=session.timeout)
    )


def _nonsense(what: str, value: str) -> str:
    return f"The endpoint {constants.ENDPOINT} answers with a {what} that is none ({value[:80]!r}): check HF_ENDPOINT."


def _our_files(info: ModelInfo, tag: str) -> Mapping[str, int]:
    """Names and sizes of the files to download: one GGUF where one is named, or where there is nothing else."""
    every = {file.rfilename: file.size or 0 for file in info.siblings or [] if _NAME.fullmatch(file.rfilename)}
    only_gguf = tag or not any(file.endswith(".safetensors") for file in every)
    if only_gguf and (files := chosen_gguf(every, tag, info.id)):
        return {file: every[file] for file in files}
    return {file: size for file, size in every.items() if any(fnmatchcase(file, pattern) for pattern in PATTERNS)}


def _check(info: ModelInfo, hub_id: str, weights_nbytes: int, *, is_gguf: bool) -> None:
    model_type = (info.config or {}).get("model_type")
    if model_type is not None and not is_gguf:
        family_of_type(model_type, hub_id)
    if not weights_nbytes:
        raise ModelError(
            f"{hub_id} has neither safetensors nor GGUF, and pickle weights can run any code when they are opened: "
            "choose another model, or convert it."
        )


@contextmanager
def _hub_errors(hub_id: str) -> Generator[None]:
    try:
        yield
    except GatedRepoError:
        raise ModelError(
            f"{hub_id} asks you to accept its terms: do so on its page at the Hub, then run `hf auth login`."
        ) from None
    except RepositoryNotFoundError:
        raise ModelError(
            f"The Hub has no model {hub_id} that you may see: check the name, or run `hf auth login`."
        ) from None
    except HfHubHTTPError as error:
        raise EngineError(f"The Hub refused {hub_id} (status {error.response.status_code}): try again later.") from None
    except (HTTPError, OSError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise EngineError(f"The disk is full: free some and run `dg-lsp pull {hub_id}` again.") from None
        # What the library says of the network has no number.
        if isinstance(error, OSError) and error.errno and not isinstance(error, ConnectionError | TimeoutError):
            raise EngineError(
                f"{error.filename or constants.HF_HUB_CACHE} can't be written to ({error.strerror}): check its "
                "permissions, or set HF_HUB_CACHE to another folder."
            ) from None
        raise EngineError(
            f"The Hub can't be reached ({type(error).__name__}): check the network and try again."
        ) from None


def _existing(path: Path) -> Path:
    return path if path.exists() else _existing(path.parent)
