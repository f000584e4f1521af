"""What there is to learn in a repository: the files that may be shown to the model, screened, each text once, some of
them held out, those that changed lately read more often."""

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
from engine.learn.screening import (
    LARGEST_FILE_NBYTES,
    is_near_copy,
    path_objection,
    shingles,
    text_objection,
    without_legal_header,
)
from engine.syntax.languages import language_of

HELD_OUT = 0.1
"""Of the files."""
_FEWEST = 3
"""Files that are held out, where half of all are as many."""
_LATELY = ((30, 3), (120, 2))
"""Days since a file changed, and how often it is read while older ones are read once."""
_NEW = 3
"""Times as often, where an adapter that learnt other files goes on: what it has not seen as it is now."""
_LIST_S = 120.0
_DAY_S = 86_400


class ListedFile(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    """From the folder on, with slashes."""
    changed: int | None = None
    """When it was last committed, in seconds since 1970; None: long ago, or nobody knows."""


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """What `dg-lsp files --json` prints: ignore files and the list of secrets were heeded."""

    folder: str
    """Absolute."""
    commit: str | None
    files: tuple[ListedFile, ...]
    unheeded: tuple[str, ...] = ()
    """Ignore files that could not be heeded, and why; what they are about is not listed."""


class Learnt(msgspec.Struct, frozen=True, kw_only=True):
    """What an adapter was taught."""

    adapter: float
    """When it was made."""
    digests: dict[str, str]
    """Of the texts as they were then, by path."""
    sides: dict[str, Split]
    """By digest, of these texts and of all that those had before which it goes on from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    documents: tuple[Document, ...]
    """By path."""
    left_out: Mapping[str, int]
    """Files, by reason."""
    digests: Mapping[str, str]
    """Of the documents' texts, by path."""

    def of(self, split: Split) -> list[Document]:
        return [each for each in self.documents if each.split == split]

    @property
    def why_left_out(self) -> str:
        """The counts of `left_out`, the largest first."""
        return ", ".join(f"{count:,} {reason}" for reason, count in Counter(self.left_out).most_common())

    @property
    def sides(self) -> dict[str, Split]:
        """By digest."""
        return {self.digests[each.path]: each.split for each in self.documents}

    def weighted(self, weights: Mapping[str, int]) -> Repository:
        """The same, each file read so often, by path."""
        return replace(self, documents=tuple(replace(each, weight=weights[each.path]) for each in self.documents))


def list_files(folder: Path) -> Listing:
    """The files below `folder` that the model may see. The language server's side knows the rules: it is asked in a
    process of its own. Raises BadInput for what is no folder, or one whose name no adapter can keep."""
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
    """Read the files of a listing, and nothing else. Of what is `learnt` none is held out, nor the other way round."""
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
    """How often each file is read, by path, as of now. `learnt`: what an adapter that is to go on was taught."""
    now_s = time.time() if now_s is None else now_s
    changed = {each.path: each.changed for each in listing.files}
    return {
        path: _recency(changed[path], now_s) * (1 if learnt is None or digest in learnt.sides else _NEW)
        for path, digest in repository.digests.items()
    }


def held_out_paths(paths: Iterable[str], known: Mapping[str, Split] | None = None) -> frozenset[str]:
    """Those of which nothing is learnt: a tenth, by a hash of folder and name, so that a file stays on its side
    whatever else comes and goes; of a few files enough to measure on. Files whose side is `known` stay there, so that
    it may be fewer."""
    paths, known = {*paths}, known or {}
    chosen = {path for path in paths if known.get(path) == "held-out"}
    least = min(_FEWEST, len(paths) // 2)
    for rank, path in sorted((_rank(path), path) for path in paths - known.keys()):
        if rank < HELD_OUT or len(chosen) < least:
            chosen.add(path)
    return frozenset(chosen)


def _rank(path: str) -> float:
    """In [0, 1)."""
    return int.from_bytes(hashlib.sha256(path.encode(errors="surrogateescape")).digest()[:8]) / (1 << 64)


def _known_sides(digests: Mapping[str, str], learnt: Learnt) -> dict[str, Split]:
    """Of the files whose text, or the one that they had before, is known, by path."""
    known: dict[str, Split] = {}
    for path, digest in digests.items():
        if side := learnt.sides.get(digest) or learnt.sides.get(learnt.digests.get(path, "")):
            known[path] = side
    return known


def _read(folder: Path, path: str, seen: set[int]) -> Document | str:
    """A file, or why nothing is learnt of it; what was `seen` of others grows."""
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
    if objection := text_objection(text):
        return objection
    text = without_legal_header(text, language)
    own = shingles(text)
    if not own:
        return "too short"
    if is_near_copy(own, seen):
        return "near duplicate"
    seen |= own
    return Document(split="train", language=language, package="repository", path=path, text=text)


def _recency(changed: int | None, now_s: float) -> int:
    """How often a file is read while old ones are read once."""
    days = (now_s - changed) / _DAY_S if changed is not None else math.inf
    return next((often for most, often in _LATELY if days <= most), 1)
