"""A closed toy language whose every gap has one right answer: chained assignments, a real denoiser's test bed.

    c = 4
    d = c * 7
    e = d * 7
    f = e * 7

A program has one rule; the letters count up. What was cut out follows from a line before it and the line behind it.
"""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from string import ascii_lowercase

from engine.train.corpus import Document, Split
from engine.train.packed import pack
from engine.train.tokenizer import save_tokenizer, train_tokenizer

OPERATORS = "+-*/%"
LATEST_START = 3
"""Letters that a program may skip at the beginning of the alphabet."""


def toy_program(rng: random.Random) -> str:
    """One program."""
    rule = f"{rng.choice(OPERATORS)} {rng.randint(2, 9)}"
    names = ascii_lowercase[rng.randint(0, LATEST_START) :]
    first = f"{names[0]} = {rng.randint(2, 9)}\n"
    return first + "".join(f"{name} = {before} {rule}\n" for before, name in pairwise(names))


def build_toy_corpus(out: Path, seed: int, vocabulary: int, programs: int = 3000) -> None:
    """Write a corpus of toy programs to the folder `out`, packed, with a tokenizer of its own."""
    rng = random.Random(f"{seed}/toy")
    splits: dict[Split, list[Document]] = {
        "train": [_document("train", rng) for _ in range(programs)],
        "held-out": [_document("held-out", rng) for _ in range(programs // 20)],
    }
    tokenizer = train_tokenizer((document.text for document in splits["train"][:500]), vocabulary)
    save_tokenizer(tokenizer, out / "tokenizer")
    for split, documents in splits.items():
        pack(documents, tokenizer, out / "packed" / split)


def _document(split: Split, rng: random.Random) -> Document:
    return Document(split=split, language="python", package="toy", path="toy.py", text=toy_program(rng))
