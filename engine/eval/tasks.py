"""Gaps with known answers: the format of HumanEval-Infilling."""

from __future__ import annotations

import gzip
import json
import random
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.core.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTest:
    """`test` defines `check(candidate)`, which throws."""

    test: str
    entry_point: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One gap. `prefix + truth + suffix` is the whole text."""

    name: str
    kind: str
    """What sort of gap, as the benchmark calls it."""
    language: str
    prefix: str
    suffix: str
    truth: str
    check: UnitTest | None = None
    """None: nothing to run, the text alone is compared."""


def read_tasks(path: Path) -> list[Task]:
    """The tasks of a JSONL file, gzipped or not. Raises BadInput."""
    tasks: dict[str, Task] = {}
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


def choose(tasks: Sequence[Task], limit: int | None, seed: int) -> list[Task]:
    """`limit` of them, drawn by `seed`, in their order; all without a limit."""
    if limit is None or limit >= len(tasks):
        return list(tasks)
    drawn = sorted(random.Random(f"{seed}/tasks").sample(range(len(tasks)), limit))
    return [tasks[index] for index in drawn]


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")
    except OSError as error:
        raise BadInput(f"{path} can't be read ({error.strerror or error}): name a file of tasks.") from None
    except (EOFError, zlib.error, UnicodeDecodeError):
        raise BadInput(f"{path} is damaged: fetch it again.") from None


def _task(line: str, place: str) -> Task:
    try:
        fields: Any = json.loads(line)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise BadInput(f"{place} is no task: a line is one JSON object.")
    name = _field(fields, "task_id", place)
    return Task(
        name=name,
        kind=name.partition("/")[0],
        language="python",
        prefix=_field(fields, "prompt", place),
        suffix=_field(fields, "suffix", place),
        truth=_field(fields, "canonical_solution", place),
        check=UnitTest(test=_field(fields, "test", place), entry_point=_field(fields, "entry_point", place)),
    )


def _field(fields: Mapping[str, Any], name: str, place: str) -> str:
    if name not in fields:
        raise BadInput(f"{place} lacks {name!r}: it is not in HumanEval-Infilling's format.")
    value = fields[name]
    # Half a surrogate pair, which JSON can name, is no text for a tokenizer.
    if not isinstance(value, str) or any("\ud800" <= character <= "\udfff" for character in value):
        raise BadInput(f"{place} has no text as its {name!r}: give a string of Unicode characters.")
    return value
