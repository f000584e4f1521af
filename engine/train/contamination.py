"""Text that must not be trained on: benchmark tasks by their 10-grams, reserved sources by their lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from engine.eval.tasks import read_tasks

_WORD = re.compile(r"[^\W\d]\w*")
_GRAM = 10
"""Words; numbers are none, as ten of them in a row say nothing about a task."""
_SHARED_AT_MOST = 0.2
"""Of a file's shingles with reserved sources: single ones are in every code."""


def shingles(text: str) -> set[int]:
    """Hashes of three lines in a row, blank lines and indentation aside; only good within one process."""
    lines = [stripped for line in text.split("\n") if (stripped := line.strip())]
    return set(map(hash, zip(lines, lines[1:], lines[2:], strict=False)))


class Forbidden:
    """Tells texts that hold a part of a benchmark's task or of reserved sources."""

    def __init__(self, benchmarks: Iterable[str] = (), reserved: Iterable[str] = ()) -> None:
        words = [_words(text) for text in benchmarks]
        self._grams = frozenset(gram for run in words for gram in _grams(run))
        self._vocabulary = frozenset(word for run in words for word in run)
        self._reserved = frozenset(shingle for text in reserved for shingle in shingles(text))

    def objection(self, text: str, own: set[int]) -> str | None:
        """Why `text`, whose shingles are `own`, is left out: "contaminated", "reserved content" or None."""
        # Only words in a row that all occur in benchmarks can be a gram of theirs.
        runs = (list(run) for known, run in groupby(_words(text), self._vocabulary.__contains__) if known)
        if any(not self._grams.isdisjoint(_grams(run)) for run in runs):
            return "contaminated"
        if len(own & self._reserved) > _SHARED_AT_MOST * len(own):
            return "reserved content"
        return None


def benchmark_texts(files: Sequence[Path]) -> list[str]:
    """Each task's whole program, and its tests, of files in the format that `dg-lsp eval` reads. Raises BadInput."""
    tasks = [task for path in files for task in read_tasks(path)]
    tests = {task.check.test for task in tasks if task.check}
    return [*{task.prefix + task.truth + task.suffix for task in tasks}, *tests]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _grams(words: list[str]) -> Iterable[int]:
    return map(hash, zip(*(words[start:] for start in range(_GRAM)), strict=False))
