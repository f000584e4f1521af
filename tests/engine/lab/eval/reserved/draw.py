"""Draws the holes that `engine/lab/eval/reserved/holes.jsonl` lists: `python -m tests.engine.lab.eval.reserved.draw`.

The same seed and releases give the same ones; the committed ones are those of seed 0.
"""

from __future__ import annotations

import io
import itertools
import json
import random
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import PurePath

from engine.lab.eval.holes import Kind, holes
from engine.lab.eval.reserved.packages import (
    HOLES,
    HoleKind,
    Reserved,
    ReservedFile,
    ReservedHole,
    Role,
    reserved_files,
    reserved_sources,
    truth_sha,
)

COUNT = 300
"""Of each split."""
LONGEST = 240
"""Characters of a gap."""
_TURNS: tuple[HoleKind, ...] = (
    *("whole_line", "rest_of_line", "line", "arguments"),
    *("whole_line", "block", "line", "rest_of_line"),
    *("whole_line", "arguments", "line", "block"),
)
"""Half of them single lines, as HumanEval's: with their indentation and line break, or from the indentation on."""
_SIZES = range(500, 100_000)
"""Characters of a file."""
_TRIES = 12
"""Gaps drawn of a kind in a file before the next file is asked."""
_FEWEST_CHARACTERS = 5
_NO_CODE = {tokenize.STRING, tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
_TESTS = {"test", "tests", "testing", "_tests"}


def draw_holes(split: Role, files: dict[str, list[ReservedFile]], seed: int, count: int = COUNT) -> list[ReservedHole]:
    """`count` gaps, package after package in turn, and in each of them file after file."""
    packages = [each for each in reserved_sources() if each.role == split]
    draws = {
        each.name: _Draw(each, files.get(each.name, ()), random.Random(f"{seed}/{each.name}")) for each in packages
    }
    rng = random.Random(f"{seed}/{split}")
    order = rng.sample(list(draws.values()), len(draws))
    # Shuffled, so that no package meets the same kinds each time round.
    kinds: list[HoleKind] = [kind for _ in range(20 * count // len(_TURNS)) for kind in rng.sample(_TURNS, len(_TURNS))]
    turns = zip(itertools.cycle(order), kinds, strict=False)
    seen: set[str] = set()
    found: list[ReservedHole] = []
    for draw, kind in turns:
        hole = draw.one(kind, seen) if len(found) < count else None
        if hole is not None:
            found.append(hole)
    return found


class _Draw:
    """Draws from one package, the file that was asked longest ago first."""

    def __init__(self, package: Reserved, files: Iterable[ReservedFile], rng: random.Random) -> None:
        self._package, self._rng = package, rng
        self._files = list(files)
        rng.shuffle(self._files)
        self._taken: dict[str, list[range]] = {}
        self._code: dict[str, set[int]] = {}
        """Of each file that was asked, see `_code_lines`."""

    def one(self, kind: HoleKind, seen: set[str]) -> ReservedHole | None:
        for index, file in enumerate(self._files):
            if file.path not in self._code:
                self._code[file.path] = _code_lines(file.text)
            for start, end in _places(file.text, self._code[file.path], kind, self._rng):
                sha = truth_sha(file.text[start:end].strip())
                overlaps = any(start < r.stop and r.start < end for r in self._taken.get(file.path, ()))
                if sha not in seen and not overlaps:
                    seen.add(sha)
                    self._taken.setdefault(file.path, []).append(range(start, end))
                    self._files.append(self._files.pop(index))
                    return self._hole(file, start, end, kind)
        return None

    def _hole(self, file: ReservedFile, start: int, end: int, kind: HoleKind) -> ReservedHole:
        return ReservedHole(
            split=self._package.role,
            package=file.package,
            version=file.version,
            path=file.path,
            start=start,
            end=end,
            kind=kind,
            sha=truth_sha(file.text[start:end]),
        )


def _places(text: str, code: set[int], kind: HoleKind, rng: random.Random) -> Iterator[tuple[int, int]]:
    drawn: Kind = "line" if kind == "whole_line" else kind
    for hole in holes(text, "python", rng, [drawn], count=_TRIES, longest=LONGEST):
        start, end = hole.start, hole.end
        truth = text[start:end].strip()
        said = len(truth) >= _FEWEST_CHARACTERS and any(map(str.isalpha, truth)) and not truth.startswith("#")
        if said and text.count("\n", 0, start) + 1 in code:
            if kind == "whole_line":
                start, end = text.rfind("\n", 0, start) + 1, min(end + 1, len(text))
            yield start, end


def _code_lines(text: str) -> set[int]:
    """Numbers of the lines, from 1, on which something besides strings and comments begins."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return set()
    return {token.start[0] for token in tokens if token.type not in _NO_CODE and token.string.strip()}


def _is_test(path: PurePath) -> bool:
    return bool(_TESTS & set(path.parts)) or path.name.startswith("test_") or path.name == "conftest.py"


def main() -> None:
    files: dict[str, list[ReservedFile]] = {}
    for file in reserved_files(earlier=False):
        if len(file.text) in _SIZES and "\r" not in file.text and not _is_test(PurePath(file.path)):
            files.setdefault(file.package, []).append(file)
    found = [hole for split in ("reported", "development") for hole in draw_holes(split, files, seed=0)]
    HOLES.write_text("".join(json.dumps(asdict(hole)) + "\n" for hole in found), encoding="utf-8")


if __name__ == "__main__":
    main()
