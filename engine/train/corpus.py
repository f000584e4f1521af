"""The training text: permissively licensed source code that is on this machine, screened, balanced and split."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

import cattrs
import platformdirs

from engine.errors import BadInput
from engine.train.screening import (
    LANGUAGES,
    LARGEST_FILE_NBYTES,
    SeenText,
    is_secondary,
    path_objection,
    text_objection,
    without_legal_header,
)
from engine.train.shares import PackageSizes, package_limits
from engine.train.sources import STANDARD_LIBRARY, SourcePackage, Sources, find_packages

Split = Literal["train", "held-out"]

DOCUMENTS_FILE, MANIFEST_FILE = "documents.jsonl.gz", "manifest.json"

_SECONDARY_SHARE, _SECONDARY_FREE = 0.2, 40_000
"""Tests and declarations: at most this share of a package's other characters, or so many characters."""
_HELD_OUT_SHARE = 0.03
_HELD_OUT_FEWEST = {"python": 4, "npm": 1}
_HELD_OUT_SIZES = range(15_000, 500_000)
"""Characters of a package that may be held out: enough to measure on, small enough not to be missed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One source file. Line ends are LF; legal notices at the top are cut off."""

    split: Split
    language: str
    package: str
    path: str
    text: str
    weight: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """What one package gave to the corpus."""

    name: str
    version: str
    licence: str
    ecosystem: str
    split: Split
    files: int
    characters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a corpus is made of, for the model card."""

    seed: int
    packages: tuple[ManifestEntry, ...]
    left_out: dict[str, int]
    """Files left out, by reason."""

    def characters(self, split: Split) -> int:
        """Characters of all documents of a split."""
        return sum(entry.characters for entry in self.packages if entry.split == split)


def corpus_folder(name: str) -> Path:
    """Where a corpus of this name is kept on this machine."""
    return platformdirs.user_cache_path("dg-lsp") / "train" / name


def build_corpus(sources: Sources, out: Path, seed: int) -> Manifest:
    """Collect, screen, balance and split source code, and write it to the folder `out`.

    The same files and seed give the same corpus. Raises BadInput when the sources hold no usable code.
    """
    left_out: Counter[str] = Counter()
    seen = SeenText()
    screened = [(package, _screened(package, seen, left_out)) for package in find_packages(sources)]
    chosen = _balanced([(package, found) for package, found in screened if found], seed, left_out)
    if not chosen:
        raise BadInput("The given folders hold no permissively licensed source code; name other folders.")
    held_out = _held_out(chosen, seed)
    chosen = [(package, [_in_split(document, package, held_out) for document in found]) for package, found in chosen]
    manifest = Manifest(
        seed=seed,
        packages=tuple(_entry(package, found) for package, found in chosen),
        left_out=dict(left_out.most_common()),
    )
    _write(out, manifest, [document for _, found in chosen for document in found])
    return manifest


def read_documents(path: Path, split: Split) -> Iterator[Document]:
    """The documents of one split of the corpus in folder `path`, always in the same order."""
    with gzip.open(path / DOCUMENTS_FILE, "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            document = Document(**json.loads(line))
            if document.split == split:
                yield document


def read_manifest(path: Path) -> Manifest:
    """The manifest of the corpus in folder `path`."""
    return cattrs.structure(json.loads((path / MANIFEST_FILE).read_text(encoding="utf-8")), Manifest)


_Found = tuple[SourcePackage, list[Document]]


def _screened(package: SourcePackage, seen: SeenText, left_out: Counter[str]) -> list[Document]:
    documents: list[Document] = []
    for relative in package.files:
        text_or_reason = path_objection(relative)
        if text_or_reason is None:
            text_or_reason, document = _read(package, package.root / relative, relative.as_posix(), seen)
            if document:
                documents.append(document)
        if text_or_reason:
            left_out[text_or_reason] += 1
    return documents


def _read(package: SourcePackage, path: Path, name: str, seen: SeenText) -> tuple[str | None, Document | None]:
    try:
        if path.stat().st_size > LARGEST_FILE_NBYTES:
            return "too large", None
        text = path.read_text(encoding="utf-8-sig")
    except OSError:
        return "missing", None
    except UnicodeDecodeError:
        return "not UTF-8", None
    language = LANGUAGES[path.suffix]
    objection = text_objection(text)
    if objection is None:
        text = without_legal_header(text, language)
        objection = seen.add(text) if text.strip() else "too short"
    if objection:
        return objection, None
    return None, Document(split="train", language=language, package=package.name, path=name, text=text)


def _balanced(found: Sequence[_Found], seed: int, left_out: Counter[str]) -> list[_Found]:
    thinned = [(package, _thinned(documents, package, seed)) for package, documents in found]
    thinned = [(package, documents) for package, documents in thinned if documents]
    sizes = [
        PackageSizes(
            ecosystem=package.ecosystem,
            characters=_characters(documents),
            favoured=package.name == STANDARD_LIBRARY,
        )
        for package, documents in thinned
    ]
    limits = package_limits(sizes)
    kept = [(package, _up_to(documents, limit)) for (package, documents), limit in zip(thinned, limits, strict=True)]
    left_out["over the package's share"] += _files(found) - _files(kept)
    return [(package, documents) for package, documents in kept if documents]


def _thinned(documents: list[Document], package: SourcePackage, seed: int) -> list[Document]:
    shuffled = random.Random(f"{seed}/{package.ecosystem}/{package.name}").sample(documents, len(documents))
    primary = [document for document in shuffled if not is_secondary(Path(document.path))]
    secondary = [document for document in shuffled if is_secondary(Path(document.path))]
    allowed = max(int(_SECONDARY_SHARE * _characters(primary)), _SECONDARY_FREE)
    kept = {document.path for document in (*primary, *_up_to(secondary, allowed))}
    return [document for document in shuffled if document.path in kept]


def _up_to(documents: Sequence[Document], characters: int) -> list[Document]:
    kept: list[Document] = []
    total = 0
    for document in documents:
        if total + len(document.text) <= characters:
            kept.append(document)
            total += len(document.text)
    return kept


def _held_out(found: Sequence[_Found], seed: int) -> frozenset[tuple[str, str]]:
    held_out: set[tuple[str, str]] = set()
    for ecosystem, fewest in _HELD_OUT_FEWEST.items():
        sizes = {p.name: _characters(documents) for p, documents in found if p.ecosystem == ecosystem}
        names = sorted(name for name, size in sizes.items() if size in _HELD_OUT_SIZES and name != STANDARD_LIBRARY)
        random.Random(f"{seed}/held-out/{ecosystem}").shuffle(names)
        taken = 0
        for count, name in enumerate(names):
            if count >= fewest and taken >= _HELD_OUT_SHARE * sum(sizes.values()):
                break
            taken += sizes[name]
            held_out.add((ecosystem, name))
    return frozenset(held_out)


def _in_split(document: Document, package: SourcePackage, held_out: frozenset[tuple[str, str]]) -> Document:
    return replace(document, split="held-out" if (package.ecosystem, package.name) in held_out else "train")


def _entry(package: SourcePackage, documents: Sequence[Document]) -> ManifestEntry:
    return ManifestEntry(
        name=package.name,
        version=package.version,
        licence=package.licence,
        ecosystem=package.ecosystem,
        split=documents[0].split,
        files=len(documents),
        characters=_characters(documents),
    )


def _write(out: Path, manifest: Manifest, documents: Sequence[Document]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    partial = out / f"{DOCUMENTS_FILE}.partial"
    with gzip.open(partial, "wt", encoding="utf-8", newline="\n", compresslevel=5) as file:
        for document in documents:
            file.write(json.dumps(asdict(document), ensure_ascii=False) + "\n")
    partial.replace(out / DOCUMENTS_FILE)
    listed = json.dumps(asdict(manifest), indent=1, ensure_ascii=False)
    (out / MANIFEST_FILE).write_text(listed + "\n", encoding="utf-8")


def _characters(documents: Sequence[Document]) -> int:
    return sum(len(document.text) for document in documents)


def _files(found: Sequence[_Found]) -> int:
    return sum(len(documents) for _, documents in found)
