"""A closed toy language whose every gap has one right answer: chained assignments, a real denoiser's test bed.

    cost11 = 4
    cost12 = cost11 * 7
    cost13 = cost12 * 7
    cost14 = cost13 * 7

A program has one name and one rule; the number counts up. What was cut out follows from a line before it and the
line behind it.
"""

from __future__ import annotations

import random
from pathlib import Path

from engine.train.corpus import Document, Split
from engine.train.packed import pack
from engine.train.tokenizer import save_tokenizer, train_tokenizer

NAMES = ("sum", "left", "right", "total", "count", "size", "rate", "cost", "step", "part", "mean", "last")
OPERATORS = "+-*/%"
SHORTEST, LONGEST = 40, 48
"""Lines of a program."""


def toy_program(rng: random.Random) -> str:
    """One program."""
    name = rng.choice(NAMES)
    rule = f"{rng.choice(OPERATORS)} {rng.randint(2, 9)}"
    first = rng.randint(1, 12)
    lines = [f"{name}{first} = {rng.randint(2, 9)}\n"]
    for number in range(first + 1, first + rng.randint(SHORTEST, LONGEST)):
        lines.append(f"{name}{number} = {name}{number - 1} {rule}\n")
    return "".join(lines)


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
