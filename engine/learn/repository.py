"""The training files of a repository: those that the model may see, screened, without duplicates, some of them held
out, recently changed ones read more often."""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

import msgspec

from engine.common.errors import BadInput, EngineError, NotRead
from engine.common.files import is_utf8, read_regular
from engine.common.processes import python_module
from engine.learn.corpus import Document, Split
from engine.learn.packed import LANGUAGE_IDS
from engine.learn.screening import LARGEST_FILE_NBYTES, path_objection, screened
from engine.syntax.languages import language_of

HELD_OUT = 0.1
"""Share of the files that are held out."""
_FEWEST = 3
"""Least number of files that are held out, up to half of all."""
_LATELY = ((30, 3), (120, 2))
"""Days since a file changed, and how often it is read in the time that older ones are read once."""
_NEW = 3
"""How often a file is read that is new to the adapter which the run goes on from."""
_LIST_S = 120.0
_DAY_S = 86_400


class ListedFile(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    """Path from the folder on, with slashes."""
    changed: int | None = None
    """Time of the last commit that changed it, in seconds since 1970; None: long ago, or unknown."""


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """What `dg-lsp files --json` prints: files that pass the ignore files and the list of secrets."""

    folder: str
    """The absolute path."""
    commit: str | None
    files: tuple[ListedFile, ...]
    unheeded: tuple[str, ...] = ()
    """Ignore files that could not be read, with the reason; files below them are not listed."""


class Learnt(msgspec.Struct, frozen=True, kw_only=True):
    """A record of what an adapter was trained on."""

    adapter: float
    """When it was made."""
    digests: dict[str, str]
    """Digests of the texts as they were then, by path."""
    sides: dict[str, Split]
    """The split of each text by digest, also of those that its predecessors had learnt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    documents: tuple[Document, ...]
    """The documents, ordered by path."""
    left_out: Mapping[str, int]
    """Numbers of files that were left out, by reason."""
    digests: Mapping[str, str]
    """Digests of the documents' texts, by path."""

    def of(self, split: Split) -> list[Document]:
        return [each for each in self.documents if each.split == split]

    @property
    def note(self) -> str:
        """A sentence with the counts of `left_out`, the largest first, and a blank before it; empty without any."""
        counts = ", ".join(f"{count:,} {reason}" for reason, count in Counter(self.left_out).most_common())
        return counts and f" Left out: {counts}."

    @property
    def sides(self) -> dict[str, Split]:
        """The split of each text, by digest."""
        return {self.digests[each.path]: each.split for each in self.documents}

    def weighted(self, weights: Mapping[str, int]) -> Repository:
        """The same with a weight for each file, by path."""
        return replace(self, documents=tuple(replace(each, weight=weights[each.path]) for each in self.documents))


def list_files(folder: Path) -> Listing:
    """List the files below `folder` that the model may see. A process of the language server does it, which knows the
    rules. Raises BadInput for what is no folder, or one whose name no adapter can keep."""
    if not is_utf8(folder.resolve()):
        raise BadInput(f"{folder} has a name that is not UTF-8: rename it.")
    command = [*python_module("dg_lsp"), "files", str(folder.resolve()), "--json"]
    try:
        listed = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_LIST_S, check=False)
    except subprocess.TimeoutExpired:
        raise BadInput(
            f"The files of {folder} were not listed within {_LIST_S:.0f} s: name a smaller folder."
        ) from None
    if listed.returncode:
        said = listed.stderr.decode(errors="replace").strip().removeprefix("dg-lsp: ")
        raise (
            BadInput(said) if listed.returncode == 2 else EngineError(f"The files of {folder} were not listed: {said}")
        )
    try:
        # Unlike msgspec's reader, this one takes names that are not UTF-8.
        return msgspec.convert(json.loads(listed.stdout), Listing)
    except ValueError as error:
        raise EngineError(f"The files of {folder} were not listed: {error}") from None


def read_repository(listing: Listing, learnt: Learnt | None = None) -> Repository:
    """Read the files of a listing, and nothing else. What was `learnt` is not held out, and what was held out is not
    learnt."""
    left_out: Counter[str] = Counter()
    seen: set[int] = set()
    found: list[Document] = []
    digests: dict[str, str] = {}
    for listed in sorted(listing.files, key=lambda each: each.path):
        read = _read(Path(listing.folder), listed.path, seen)
        if isinstance(read, str):
            left_out[read] += 1
            continue
        digests[listed.path] = hashlib.sha256(read.text.encode()).hexdigest()[:16]
        found.append(read)
    held_out = held_out_paths(digests, {} if learnt is None else _known_sides(digests, learnt))
    documents = (replace(each, split="held-out") if each.path in held_out else each for each in found)
    return Repository(documents=tuple(documents), left_out=left_out, digests=digests)


def weights_of(
    listing: Listing, repository: Repository, learnt: Learnt | None, now_s: float | None = None
) -> dict[str, int]:
    """How often each file is read now, by path. `learnt`: what the adapter that a run goes on from has learnt."""
    now_s = time.time() if now_s is None else now_s
    changed = {each.path: each.changed for each in listing.files}
    return {
        path: _recency(changed[path], now_s) * (1 if learnt is None or digest in learnt.sides else _NEW)
        for path, digest in repository.digests.items()
    }


def held_out_paths(paths: Iterable[str], known: Mapping[str, Split] | None = None) -> frozenset[str]:
    """The paths that are held out: a tenth by a hash of folder and name, so that a file keeps its side whatever else
    comes and goes, and at least enough to measure on. Files whose split is `known` keep it, so there may be fewer."""
    paths, known = {*paths}, known or {}
    chosen = {path for path in paths if known.get(path) == "held-out"}
    least = min(_FEWEST, len(paths) // 2)
    for rank, path in sorted((_rank(path), path) for path in paths - known.keys()):
        if rank < HELD_OUT or len(chosen) < least:
            chosen.add(path)
    return frozenset(chosen)


def _rank(path: str) -> float:
    """A hash of a path, in [0, 1)."""
    return int.from_bytes(hashlib.sha256(path.encode(errors="surrogateescape")).digest()[:8]) / (1 << 64)


def _known_sides(digests: Mapping[str, str], learnt: Learnt) -> dict[str, Split]:
    """The split of files whose text, now or before, is known, by path."""
    known: dict[str, Split] = {}
    for path, digest in digests.items():
        if side := learnt.sides.get(digest) or learnt.sides.get(learnt.digests.get(path, "")):
            known[path] = side
    return known


def _read(folder: Path, path: str, seen: set[int]) -> Document | str:
    """A file as a document, or the reason why it is left out; adds to what was `seen` of others."""
    language = language_of(path=path)
    if language is None or language not in LANGUAGE_IDS:
        return "not code"
    if not is_utf8(path):
        return "with a name not in UTF-8"
    if objection := path_objection(PurePath(path)):
        return objection
    try:
        text = read_regular(folder / path, LARGEST_FILE_NBYTES).decode("utf-8-sig").replace("\r\n", "\n")
    except NotRead as refused:
        return refused.why
    except OSError:
        return "can't be read"
    except UnicodeDecodeError:
        return "not UTF-8"
    text, objection = screened(text, language, seen)
    if objection:
        return objection
    return Document(split="train", language=language, package="repository", path=path, text=text)


def _recency(changed: int | None, now_s: float) -> int:
    """How often a file is read in the time that old ones are read once."""
    days = (now_s - changed) / _DAY_S if changed is not None else math.inf
    return next((often for most, often in _LATELY if days <= most), 1)
