"""A closed toy language whose every gap has one right answer: chained assignments, a real denoiser's test bed.

    c = 4
    d = c * 7
    e = d * 7
    f = e * 7

A program has one rule; the letters count up. What was cut out follows from a line before it and the line behind it.
Programs that are held out have rules that no other program has: no line of theirs but the first can be known by heart.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise, product
from pathlib import Path
from string import ascii_lowercase

from engine.learn.corpus import Document, Split
from engine.learn.packed import pack
from engine.learn.tokenizer import save_tokenizer, train_tokenizer

RULES = tuple(f"{operator} {number}" for operator, number in product("+-*/%", range(2, 10)))
HELD_OUT = RULES[::6]
"""Of each operator one or two; each number is left in many others."""
LATEST_START = 3
"""Letters that a program may skip at the beginning of the alphabet."""


def toy_program(rng: random.Random, split: Split = "train") -> str:
    """One program."""
    return program(rng.choice(rules(split)), rng.randint(0, LATEST_START), rng.randint(2, 9))


def program(rule: str, skipped: int, first: int) -> str:
    """The program whose first letter, `skipped` letters into the alphabet, is the number `first`."""
    names = ascii_lowercase[skipped:]
    lines = [f"{name} = {before} {rule}\n" for before, name in pairwise(names)]
    return f"{names[0]} = {first}\n" + "".join(lines)


def rules(split: Split) -> Sequence[str]:
    """What the programs of a split do from line to line."""
    return [rule for rule in RULES if (rule in HELD_OUT) == (split == "held-out")]


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
        pack(documents, out / "packed" / split)


def _document(split: Split, rng: random.Random) -> Document:
    return Document(split=split, language="python", package="toy", path="toy.py", text=toy_program(rng, split))
