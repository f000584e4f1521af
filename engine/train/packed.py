"""The corpus as flat, memory-mapped arrays: tokens for next-token batches, texts for gaps cut at any character.

A folder holds `tokens.npy` (uint16, all documents, each <bos> ... <eos>), `texts.bin` (UTF-8, all documents),
`documents.npy` (one DOCUMENT row each) and `token_nbytes.npy` (see `token_nbytes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from engine.errors import BadInput
from engine.train.corpus import Document
from engine.train.tokenizer import BOS, EOS, token_nbytes

LANGUAGE_IDS = ("python", "javascript", "typescript")
"""The index in this tuple is the `language` of a DOCUMENT row."""
DOCUMENT = np.dtype(
    [("token", np.int64), ("tokens", np.int32), ("byte", np.int64), ("nbytes", np.int32), ("language", np.uint8)]
)
_BATCH = 256


class PackedCorpus:
    """One split, ready to sample from. Nothing is read before it is asked for."""

    def __init__(self, folder: Path) -> None:
        """Map the files in `folder`. Raises BadInput when they are not all there."""
        try:
            self.tokens: NDArray[np.uint16] = np.load(folder / "tokens.npy", mmap_mode="r")
            self.documents: NDArray[np.void] = np.load(folder / "documents.npy")
            self.token_nbytes: NDArray[np.uint8] = np.load(folder / "token_nbytes.npy")
            self._texts: NDArray[np.uint8] = np.memmap(folder / "texts.bin", dtype=np.uint8, mode="r")
        except FileNotFoundError as error:
            raise BadInput(f"{folder} holds no packed corpus; build the corpus again.") from error

    def __len__(self) -> int:
        """Documents."""
        return len(self.documents)

    def ids(self, index: int) -> NDArray[np.uint16]:
        """Tokens of a document with <bos> first and <eos> last, a view of `tokens`."""
        row = self.documents[index]
        return self.tokens[row["token"] : row["token"] + row["tokens"]]

    def utf8(self, index: int) -> bytes:
        """The UTF-8 text of a document."""
        row = self.documents[index]
        return self._texts[row["byte"] : row["byte"] + row["nbytes"]].tobytes()

    def text(self, index: int) -> str:
        """The text of a document."""
        return self.utf8(index).decode()

    def language(self, index: int) -> str:
        """The language of a document, an LSP language identifier."""
        return LANGUAGE_IDS[self.documents[index]["language"]]

    def token_starts(self, index: int) -> NDArray[np.int64]:
        """Where in the document's UTF-8 each of its tokens starts, [tokens]."""
        nbytes = self.token_nbytes[self.ids(index)]
        return np.cumsum(nbytes, dtype=np.int64) - nbytes


def pack(documents: Iterable[Document], tokenizer: Tokenizer, folder: Path) -> None:
    """Encode `documents` into `folder`, in their order, for `PackedCorpus`."""
    folder.mkdir(parents=True, exist_ok=True)
    # Written last: without it a cut run's folder counts as no corpus.
    (folder / "token_nbytes.npy").unlink(missing_ok=True)
    rows: list[tuple[int, ...]] = []
    parts: list[NDArray[np.uint16]] = []
    token = byte = 0
    with (folder / "texts.bin").open("wb") as texts:
        for document, ids in _encoded(documents, tokenizer):
            nbytes = texts.write(document.text.encode())
            rows.append((token, len(ids), byte, nbytes, LANGUAGE_IDS.index(document.language)))
            parts.append(ids)
            token, byte = token + len(ids), byte + nbytes
    if not rows:
        raise BadInput(f"There are no documents to pack into {folder}; collect a corpus first.")
    np.save(folder / "tokens.npy", np.concatenate(parts))
    np.save(folder / "documents.npy", np.array(rows, dtype=DOCUMENT))
    np.save(folder / "token_nbytes.npy", token_nbytes(tokenizer))


def _encoded(documents: Iterable[Document], tokenizer: Tokenizer) -> Iterator[tuple[Document, NDArray[np.uint16]]]:
    remaining = iter(documents)
    while batch := list(islice(remaining, _BATCH)):
        encodings: list[Any] = tokenizer.encode_batch_fast([d.text for d in batch], add_special_tokens=False)
        for document, encoding in zip(batch, encodings, strict=True):
            yield document, np.array([BOS, *encoding.ids, EOS], dtype=np.uint16)
