"""Gaps with known answers: from files in the format of HumanEval-Infilling, or cut into real code by syntax and seed,
with the code itself as the answer."""

from __future__ import annotations

import gzip
import io
import os
import random
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from engine.common.errors import BadInput, NotRead, shortened
from engine.common.files import check_folder, read_regular
from engine.common.request import FillRequest
from engine.common.sizes import decimal_bytes
from engine.lab.eval.holes import Kind, holes
from engine.syntax.languages import language_of

KINDS: tuple[Kind, ...] = ("rest_of_line", "line", "block", "arguments")
STANDARD_COUNT = 100
LONGEST = 240
"""Most characters of a gap; longer text is more than people expect at a cursor."""
_SHORTEST_FILE, _LONGEST_FILE = 200, 400_000
"""Least and most characters of a file. A shorter one says nothing about the gap, a longer one is seldom written by
hand."""
_MOST_NBYTES = 256 << 20
"""Largest file of tasks, packed and unpacked; the published ones have some ten MB."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTest:
    """`test` defines `check(candidate)`, which throws."""

    test: str
    entry_point: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalTask:
    """One gap. `prefix + truth + suffix` is the whole text."""

    name: str
    kind: str
    """The benchmark's name for this sort of gap."""
    language: str
    prefix: str
    suffix: str
    truth: str
    check: UnitTest | None = None
    """The test; None: only the text is compared."""
    asserts: str = ""
    """Python code that fails with a file that is wrong."""
    right: tuple[str, ...] = ()
    """Texts that are right where nothing is run, blank ends aside; empty: only the truth is right."""

    def request(self, **more: Any) -> FillRequest:
        return FillRequest(prefix=self.prefix, suffix=self.suffix, language=self.language, **more)


def read_tasks(path: Path) -> list[EvalTask]:
    """The tasks of a JSONL file, gzipped or not. Raises BadInput."""
    tasks: dict[str, EvalTask] = {}
    # Not splitlines: the texts in a line may hold separators other than the line feed.
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if line.strip():
            task = _task(line, f"{path}:{number}")
            if task.name in tasks:
                raise BadInput(f"{path}:{number} is a second task {task.name}: give each a task_id of its own.")
            tasks[task.name] = task
    if not tasks:
        raise BadInput(f"{path} holds no task: name a file in the format of HumanEval-Infilling.")
    return list(tasks.values())


def choose(tasks: Sequence[T], limit: int | None, seed: int) -> list[T]:
    """`limit` tasks drawn by `seed`, in their order. Without a limit all of them, in an order drawn by `seed`, so that
    a run that is cut off has seen a sample."""
    if limit is None or limit >= len(tasks):
        return random.Random(f"{seed}/order").sample(tasks, len(tasks))
    drawn = sorted(random.Random(f"{seed}/tasks").sample(range(len(tasks)), limit))
    return [tasks[index] for index in drawn]


def _text(path: Path) -> str:
    try:
        data = read_regular(path, _MOST_NBYTES)
        if data[:2] == b"\x1f\x8b":
            with gzip.open(io.BytesIO(data)) as unpacked:
                data = unpacked.read(_MOST_NBYTES + 1)
            if len(data) > _MOST_NBYTES:
                raise NotRead(path, f"is larger than {decimal_bytes(_MOST_NBYTES)} when unpacked")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise BadInput(f"{path} can't be read ({error.strerror or error}): name a file of tasks.") from None
    except (EOFError, zlib.error, UnicodeDecodeError):
        raise BadInput(f"{path} is damaged: fetch it again.") from None


class _TaskLine(Struct):
    task_id: str
    prompt: str
    suffix: str
    canonical_solution: str
    test: str
    entry_point: str


def _task(line: str, place: str) -> EvalTask:
    try:
        read = msgspec.json.decode(line, type=_TaskLine)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{place} is no task in HumanEval-Infilling's format ({shortened(str(error))}).") from None
    return EvalTask(
        name=read.task_id,
        kind=read.task_id.partition("/")[0],
        language="python",
        prefix=read.prompt,
        suffix=read.suffix,
        truth=read.canonical_solution,
        check=UnitTest(test=read.test, entry_point=read.entry_point),
    )


def code_holes(folder: Path, language: str | None, count: int | None, seed: int) -> list[EvalTask]:
    """`count` gaps in the files below `folder`; a file gives a second one only after all have given one. Raises
    BadInput."""
    check_folder(folder)
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


def _holes_of(path: Path, folder: Path, draw: float) -> Iterator[EvalTask]:
    try:
        text = read_regular(path, 4 * _LONGEST_FILE).decode()
    except (OSError, NotRead, UnicodeDecodeError):
        return
    yield from _holes_in(
        path.relative_to(folder).as_posix(), language_of(path=path.name) or "", text, draw, 2 * len(KINDS)
    )


def text_holes(texts: Sequence[tuple[str, str, str]], count: int) -> list[EvalTask]:
    """Up to `count` gaps in texts (name, language, text). A text gives a second one only after all have given one."""
    rng = random.Random("0/texts")
    most = max(2 * len(KINDS), 2 * count // max(1, len(texts)))
    return _rounds([_holes_in(*each, rng.random(), most) for each in texts], count)


def _holes_in(name: str, language: str, text: str, draw: float, most: int) -> Iterator[EvalTask]:
    if not _SHORTEST_FILE <= len(text) <= _LONGEST_FILE:
        return
    # A gap of another text is another task, though it has the same place.
    contents = f"{zlib.crc32(text.encode()):08x}"
    for hole in holes(text, language, random.Random(draw), KINDS, count=most, longest=LONGEST):
        yield EvalTask(
            name=f"{name}:{hole.start}-{hole.end} of {contents}",
            kind=hole.kind,
            language=language,
            prefix=text[: hole.start],
            suffix=text[hole.end :],
            truth=text[hole.start : hole.end],
        )


def _rounds(sources: Sequence[Iterator[EvalTask]], count: int) -> list[EvalTask]:
    """The items of several sources in turn, one of each a round."""
    left = deque(sources)
    found: list[EvalTask] = []
    while left and len(found) < count:
        source = left.popleft()
        if (task := next(source, None)) is not None:
            found.append(task)
            left.append(source)
    return found
