"""Gaps in somebody's real code: seeded, placed by syntax, with the code itself as the answer."""

from __future__ import annotations

import os
import random
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.core.errors import BadInput
from engine.eval.tasks import Task
from engine.syntax.holes import Kind, holes
from engine.syntax.languages import language_of

KINDS: tuple[Kind, ...] = ("rest_of_line", "line", "block", "arguments")
STANDARD_COUNT = 100
LONGEST = 240
"""Characters of a gap; what is longer is more than one asks a cursor for."""
_SHORTEST_FILE, _LONGEST_FILE = 200, 400_000
"""Characters; what is shorter says nothing about the gap, what is longer is seldom written by hand."""


def code_holes(folder: Path, language: str | None, count: int | None, seed: int) -> list[Task]:
    """`count` gaps in the files below `folder`, each file giving one before any gives a second. Raises BadInput."""
    if not folder.is_dir():
        raise BadInput(f"{folder} is no folder: name one with code in it.")
    wanted = language_of(language) if language else None
    if language and not wanted:
        raise BadInput(f"The language {language} is unknown: name it as an editor does, such as python.")
    rng = random.Random(f"{seed}/code")
    files = sorted(_files(folder, wanted))
    rng.shuffle(files)
    found = _rounds([_holes_of(path, folder, rng.random()) for path in files], count or STANDARD_COUNT)
    if not found:
        raise BadInput(f"{folder} has no code to cut gaps into{f' in {wanted}' if wanted else ''}: name another.")
    return found


def _files(folder: Path, wanted: str | None) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__", "node_modules")))
        for name in names:
            language = language_of(path=name)
            if language and not name.startswith(".") and wanted in (None, language):
                yield Path(place, name)


def _holes_of(path: Path, folder: Path, draw: float) -> Iterator[Task]:
    try:
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return
    language = language_of(path=path.name) or ""
    if not _SHORTEST_FILE <= len(text) <= _LONGEST_FILE:
        return
    # A gap of another text is another task, though it has the same place.
    contents = f"{zlib.crc32(text.encode()):08x}"
    for hole in holes(text, language, random.Random(draw), KINDS, count=2 * len(KINDS), longest=LONGEST):
        yield Task(
            name=f"{path.relative_to(folder).as_posix()}:{hole.start}-{hole.end} of {contents}",
            kind=hole.kind,
            language=language,
            prefix=text[: hole.start],
            suffix=text[hole.end :],
            truth=text[hole.start : hole.end],
        )


def _rounds(sources: Sequence[Iterator[Task]], count: int) -> list[Task]:
    """One of each source, round after round."""
    left = deque(sources)
    found: list[Task] = []
    while left and len(found) < count:
        source = left.popleft()
        if (task := next(source, None)) is not None:
            found.append(task)
            left.append(source)
    return found
