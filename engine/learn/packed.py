"""The corpus as flat, memory-mapped arrays from which texts are cut.

A folder holds `texts.bin` (UTF-8, all documents), `documents.npy` (a DOCUMENT row each, those of a package side by
side) and `functions.npy` (a FUNCTION row for each function that begins with a docstring).
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from engine.common.errors import BadInput
from engine.learn.corpus import Document, Split
from engine.learn.tokenizer import load_tokenizer

LANGUAGE_IDS = (
    *("python", "javascript", "typescript", "tsx", "go", "rust", "c", "cpp", "java", "csharp", "ruby", "php", "lua"),
    "bash",
)
"""The languages; a DOCUMENT row's `language` is an index into this tuple."""
DOCUMENT = np.dtype([("byte", "i8"), ("nbytes", "i4"), ("language", "u1"), ("weight", "u1"), ("package", "i4")])
FUNCTION = np.dtype([("document", "i4"), ("start", "i4"), ("end", "i4")])
"""`start` and `end` count characters."""
_package, _path = attrgetter("package"), attrgetter("path")
_NEAR = 8
"""How many documents on either side, in the same package, count as neighbours."""
_PYTHON = re.compile(
    r"^(?P<indent>[ \t]*)(?:async +)?def \w+\((?:[^()]|\([^()]*\))*\)[^\n]*:[ \t]*\n"
    r'(?P=indent)[ \t]+[rbu]?(?:"""|\'\'\'|")',
    re.MULTILINE,
)
_SCRIPT = re.compile(
    r"^(?P<indent>[ \t]*)/\*\*[^\n]*\n(?:[ \t]*\*(?!/)[^\n]*\n){0,30}[ \t]*\*/\n"
    r"(?P=indent)(?:export +)?(?:default +)?(?:static +)?(?:async +)?(?:function\b|\w+ *\()[^\n]*\{[ \t]*$",
    re.MULTILINE,
)
_LONGEST_FUNCTION = 4000
"""Characters."""


class PackedCorpus:
    """One split of a corpus. Texts are read when they are used."""

    def __init__(self, corpus: Path, split: Split, tokenizer: Tokenizer | None = None) -> None:
        """Map the files of the corpus in the folder `corpus`, to be cut by its own tokenizer or another one. Raises
        BadInput when they are not all there."""
        folder = corpus / "packed" / split
        try:
            self.documents: NDArray[np.void] = np.load(folder / "documents.npy")
            self.functions: NDArray[np.void] = np.load(folder / "functions.npy")
            self._texts: NDArray[np.uint8] = np.memmap(folder / "texts.bin", dtype=np.uint8, mode="r")
        except FileNotFoundError as error:
            raise BadInput(f"{folder} holds no packed corpus; build the corpus again.") from error
        self.tokenizer = tokenizer or load_tokenizer(corpus / "tokenizer")
        sizes = self.documents["nbytes"].astype(np.int64)
        weights = self.documents["weight"].astype(np.int64)
        self._documents = {power: np.cumsum(sizes * weights**power) for power in (1, 2)}
        self._functions = {power: np.cumsum(weights[self.functions["document"]] ** power) for power in (1, 2)}

    def __len__(self) -> int:
        """The number of documents."""
        return len(self.documents)

    def text(self, index: int) -> str:
        row = self.documents[index]
        return self._texts[row["byte"] : row["byte"] + row["nbytes"]].tobytes().decode()

    def language(self, index: int) -> str:
        """The LSP language identifier of a document."""
        return LANGUAGE_IDS[self.documents[index]["language"]]

    def choose(self, rng: random.Random, best: bool = False) -> int:
        """A random document, in proportion to length and weight; to the square of the weight if `best`."""
        return _drawn(self._documents[2 if best else 1], rng)

    def choose_function(self, rng: random.Random, best: bool = False) -> tuple[int, int, int] | None:
        """A random function that begins with a docstring, as (document, start, end in characters); None where there is
        none."""
        if not len(self.functions):
            return None
        row = self.functions[_drawn(self._functions[2 if best else 1], rng)]
        return int(row["document"]), int(row["start"]), int(row["end"])

    def neighbours(self, index: int) -> list[int]:
        """Other documents of the same package, the nearest first."""
        packages = self.documents["package"]
        near = (at for step in range(1, _NEAR) for at in (index - step, index + step) if 0 <= at < len(packages))
        return [at for at in near if packages[at] == packages[index]]


def packed_ns(corpus: Path, split: Split) -> int:
    """When a split was packed, in nanoseconds since 1970; 0 where it was not."""
    path = corpus / "packed" / split / "documents.npy"
    return path.stat().st_mtime_ns if path.exists() else 0


def _drawn(cumulative: NDArray[np.int64], rng: random.Random) -> int:
    return int(np.searchsorted(cumulative, rng.randrange(int(cumulative[-1])), side="right"))


def pack(documents: Iterable[Document], folder: Path) -> None:
    """Write `documents` into `folder`, for `PackedCorpus`."""
    folder.mkdir(parents=True, exist_ok=True)
    # Written last: without it a cut run's folder counts as no corpus.
    (folder / "documents.npy").unlink(missing_ok=True)
    rows: list[tuple[int, ...]] = []
    functions: list[tuple[int, int, int]] = []
    packages: dict[str, int] = {}
    byte = 0
    with (folder / "texts.bin").open("wb") as texts:
        # Neighbours in a folder lie side by side.
        for document in (each for _, found in groupby(documents, _package) for each in sorted(found, key=_path)):
            nbytes = texts.write(document.text.encode())
            language = LANGUAGE_IDS.index(document.language)
            package = packages.setdefault(document.package, len(packages))
            functions += [(len(rows), *place) for place in documented_functions(document.text, document.language)]
            rows.append((byte, nbytes, language, document.weight, package))
            byte += nbytes
    if not rows:
        raise BadInput(f"There are no documents to pack into {folder}; collect a corpus first.")
    np.save(folder / "functions.npy", np.array(functions, dtype=FUNCTION))
    np.save(folder / "documents.npy", np.array(rows, dtype=DOCUMENT))


def documented_functions(text: str, language: str) -> Iterator[tuple[int, int]]:
    """(start, end) in characters of functions that begin with a docstring, or follow a documenting comment."""
    for match in (_PYTHON if language == "python" else _SCRIPT).finditer(text):
        indent = re.escape(match["indent"])
        inside = r"[ \t]" if language == "python" else r"[ \t}]"
        over = re.compile(rf"^(?!{indent}{inside})(?!\s*$)", re.MULTILINE).search(text, match.end())
        start, end = match.start(), over.start() if over else len(text)
        if end - start <= _LONGEST_FUNCTION:
            yield start, start + len(text[start:end].rstrip())
