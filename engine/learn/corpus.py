"""The training text: permissively licensed source code of this machine, screened, balanced and split."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePath
from typing import Literal

import msgspec
import platformdirs

from engine.common.errors import BadInput
from engine.common.files import replacing
from engine.lab.eval.reserved.packages import reserved_modules, reserved_names
from engine.learn.screening import LANGUAGES, LARGEST_FILE_NBYTES, Forbidden, is_secondary, path_objection, screened
from engine.learn.sources import STANDARD_LIBRARY, SourcePackage, Sources, find_packages

Split = Literal["train", "held-out"]

DOCUMENTS_FILE, MANIFEST_FILE = "documents.jsonl.gz", "manifest.json"

_SECONDARY_SHARE = 0.11
"""Most characters of tests, examples and declarations, by the other characters of a package: below 10% of all."""
_PACKAGE_SHARE = 0.04
"""Largest share of one package, by characters as they are and as often as they are read."""
_NPM_SHARE = 0.13
"""Largest share of JavaScript and TypeScript, by characters."""

_UTILITIES = ("algorithms", "boltons", "funcy", "glom", "more-itertools", "pydash", "pygorithm")
_WEIGHTS = {
    STANDARD_LIBRARY: 2,
    **dict.fromkeys(("galois", "lodash", "mlxtend", "mpmath", "networkx", "rxjs", "trimesh"), 3),
    **dict.fromkeys((*_UTILITIES, "sortedcontainers", "textdistance", "ubelt"), 4),
}
HELD_OUT = frozenset({"glom", "manim", "mongoose", "werkzeug"})
"""Packages for measuring, never for training. They are pinned, so that every machine holds out the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One source file. Line ends are LF; legal notices at the top are cut off."""

    split: Split
    language: str
    package: str
    path: str
    text: str
    weight: int = 1
    """How often it is read in the time that others are read once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    name: str
    version: str
    licence: str
    ecosystem: str
    split: Split
    files: int
    characters: int
    weight: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a corpus consists of, for the model card."""

    seed: int
    packages: tuple[ManifestEntry, ...]
    left_out: dict[str, int]
    """Numbers of files that were left out, by reason."""

    def characters(self, split: Split) -> int:
        return sum(entry.characters for entry in self.packages if entry.split == split)


def corpus_folder(name: str) -> Path:
    return platformdirs.user_cache_path("dg-lsp") / "train" / name


def build_corpus(sources: Sources, out: Path, seed: int, forbidden: Forbidden | None = None) -> Manifest:
    """Collect, screen, balance and split source code, and write it to the folder `out`. Reserved packages, packages
    with their names and what is `forbidden` stay out. The same files and seed give the same corpus. Raises BadInput
    when the sources hold no usable code."""
    screen = _Screen(forbidden or Forbidden())
    screened = [(package, screen.documents(package)) for package in find_packages(sources)]
    chosen = _balanced(screened, seed, screen.left_out)
    if not chosen:
        raise BadInput("The given folders hold no permissively licensed source code; name other folders.")
    names = {package.name for package, _ in chosen}
    # Of other texts one package is needed to measure on, whatever its name, and one more to train on.
    held_out = names & HELD_OUT or set(sorted(names)[:1] if len(names) > 1 else ())
    documents: list[Document] = []
    entries: list[ManifestEntry] = []
    for package, found in chosen:
        split: Split = "held-out" if package.name in held_out else "train"
        documents += [replace(document, split=split) for document in found]
        entry = ManifestEntry(
            name=package.name,
            version=package.version,
            licence=package.licence,
            ecosystem=package.ecosystem,
            split=split,
            files=len(found),
            characters=_characters(found),
            weight=weight_of(package.name),
        )
        entries.append(entry)
    manifest = Manifest(seed=seed, packages=tuple(entries), left_out=dict(screen.left_out.most_common()))
    _write(out, manifest, documents)
    return manifest


def read_documents(path: Path, split: Split) -> Iterator[Document]:
    """The documents of one split of the corpus in folder `path`, always in the same order."""
    with gzip.open(path / DOCUMENTS_FILE, "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            document = Document(**json.loads(line))
            if document.split == split:
                yield document


def read_manifest(path: Path) -> Manifest:
    return msgspec.convert(json.loads((path / MANIFEST_FILE).read_text(encoding="utf-8")), Manifest)


_Found = tuple[SourcePackage, list[Document]]


class _Screen:
    """Screens packages, and counts what it leaves out, by reason."""

    def __init__(self, forbidden: Forbidden) -> None:
        self.left_out: Counter[str] = Counter()
        self._forbidden, self._seen = forbidden, set[int]()
        self._names, self._modules = reserved_names(), reserved_modules()

    def documents(self, package: SourcePackage) -> list[Document]:
        found = [self._document(package, path) for path in package.files]
        self.left_out.update(each for each in found if isinstance(each, str))
        return [each for each in found if isinstance(each, Document)]

    def _document(self, package: SourcePackage, path: PurePath) -> Document | str:
        """A file as a document, or the reason why it is left out."""
        if package.ecosystem == "python":
            if package.name in self._names:
                return "reserved package"
            if not self._modules.isdisjoint((*path.parts, path.stem)):
                return "reserved copy"
        if objection := path_objection(path):
            return objection
        try:
            if (package.root / path).stat().st_size > LARGEST_FILE_NBYTES:
                return "too large"
            text = (package.root / path).read_text(encoding="utf-8-sig")
        except OSError:
            return "missing"
        except UnicodeDecodeError:
            return "not UTF-8"
        language, name = LANGUAGES[path.suffix], package.name
        text, objection = screened(text, language, self._seen, self._forbidden)
        if objection:
            return objection
        return Document(
            split="train", language=language, package=name, path=path.as_posix(), text=text, weight=weight_of(name)
        )


def _balanced(found: Sequence[_Found], seed: int, left_out: Counter[str]) -> list[_Found]:
    thinned = [(package, _thinned(documents, package, seed)) for package, documents in found]
    thinned = [(package, documents) for package, documents in thinned if documents]
    limits = package_limits(
        [_characters(documents) for _, documents in thinned],
        [weight_of(package.name) for package, _ in thinned],
        [package.ecosystem == "npm" for package, _ in thinned],
    )
    kept = [(package, _up_to(documents, limit)) for (package, documents), limit in zip(thinned, limits, strict=True)]
    # What was thinned out counts as well.
    left_out["over the package's share"] += sum(len(files) for _, files in found) - sum(len(files) for _, files in kept)
    return [(package, documents) for package, documents in kept if documents]


def _thinned(documents: list[Document], package: SourcePackage, seed: int) -> list[Document]:
    shuffled = random.Random(f"{seed}/{package.ecosystem}/{package.name}").sample(documents, len(documents))
    primary = [document for document in shuffled if not is_secondary(Path(document.path))]
    secondary = [document for document in shuffled if is_secondary(Path(document.path))]
    kept = {document.path for document in (*primary, *_up_to(secondary, int(_SECONDARY_SHARE * _characters(primary))))}
    return [document for document in shuffled if document.path in kept]


def _up_to(documents: Sequence[Document], characters: int) -> list[Document]:
    kept: list[Document] = []
    total = 0
    for document in documents:
        if total + len(document.text) <= characters:
            kept.append(document)
            total += len(document.text)
    return kept


def _write(out: Path, manifest: Manifest, documents: Sequence[Document]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with (
        replacing(out / DOCUMENTS_FILE) as draft,
        gzip.open(draft, "wt", encoding="utf-8", newline="\n", compresslevel=5) as file,
    ):
        for document in documents:
            file.write(json.dumps(asdict(document), ensure_ascii=False) + "\n")
    listed = json.dumps(asdict(manifest), indent=1, ensure_ascii=False)
    (out / MANIFEST_FILE).write_text(listed + "\n", encoding="utf-8")


def _characters(documents: Sequence[Document]) -> int:
    return sum(len(document.text) for document in documents)


def weight_of(name: str) -> int:
    """How often a package is read in the time that others are read once: algorithms and utilities more often."""
    return _WEIGHTS.get(name, 1)


def package_limits(sizes: Sequence[int], weights: Sequence[int], npm: Sequence[bool]) -> list[int]:
    """The most characters that each package may give. `sizes`: characters of each package, with how often they are
    read; `npm`: the packages in JavaScript and TypeScript."""
    # A share must leave room for all to add up: with few packages each may give more.
    share = max(_PACKAGE_SHARE, 6 / max(len(sizes), 1))
    given = [*sizes]
    # Each cut lowers the total that shares are of; it settles at the largest amounts that keep all limits.
    for _ in range(100):
        read = sum(characters * weight for characters, weight in zip(given, weights, strict=True))
        most = [min(share * sum(given), share * read / weight) for weight in weights]
        given = _within_npm_share([min(amounts) for amounts in zip(given, map(int, most), strict=True)], npm)
    return given


def _within_npm_share(given: list[int], npm: Sequence[bool]) -> list[int]:
    scripts = [characters for characters, is_npm in zip(given, npm, strict=True) if is_npm]
    budget = (sum(given) - sum(scripts)) * _NPM_SHARE / (1 - _NPM_SHARE)
    if sum(scripts) <= budget or all(npm):
        return given
    # The largest give way first.
    low, high = 0.0, float(max(given))
    for _ in range(50):
        level = (low + high) / 2
        fits = sum(min(characters, level) for characters in scripts) <= budget
        low, high = (level, high) if fits else (low, level)
    return [min(characters, int(low)) if is_npm else characters for characters, is_npm in zip(given, npm, strict=True)]
