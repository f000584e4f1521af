"""A closed toy language whose every gap has one right answer: chained assignments, a real denoiser's test bed.

    n3 = 4
    k3 = n3 * 7
    n4 = k3 + 4
    k4 = n4 * 7

Two names take turns, each with its own operator and operand, and the number counts up: what was cut out follows from
any line before it and the lines behind it.
"""

from __future__ import annotations

import random
from pathlib import Path

from engine.train.corpus import Document, Split
from engine.train.packed import pack
from engine.train.tokenizer import save_tokenizer, train_tokenizer

NAMES = "abcdefghijkmnpqrstuvwxyz"
OPERATORS = "+-*/%"
SHORTEST, LONGEST = 40, 90
"""Lines of a program."""


def toy_program(rng: random.Random) -> str:
    """One program."""
    first, second = rng.sample(NAMES, 2)
    rules = [(rng.choice(OPERATORS), rng.randint(2, 9)) for _ in range(2)]
    count = rng.randint(1, 40)
    lines = [f"{first}{count} = {rng.randint(2, 9)}\n"]
    for index in range(rng.randint(SHORTEST, LONGEST)):
        operator, operand = rules[index % 2]
        turned = index % 2
        left = f"{first}{count + 1}" if turned else f"{second}{count}"
        right = f"{second}{count}" if turned else f"{first}{count}"
        lines.append(f"{left} = {right} {operator} {operand}\n")
        count += turned
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
