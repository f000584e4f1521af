"""Gaps with known answers: the formats of HumanEval-Infilling and SAFIM."""

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
from engine.syntax.languages import language_of

SAFIM_HOLE = "{{completion}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTest:
    """HumanEval's: `test` defines `check(candidate)`, which throws."""

    test: str
    entry_point: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """SAFIM's: a program's standard input and the outputs that are right for it."""

    cases: tuple[tuple[str, tuple[str, ...]], ...]


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
    check: UnitTest | Runs | None = None
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
        raise BadInput(f"{path} holds no task: name a file in the format of HumanEval-Infilling or SAFIM.")
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
    return (_safim if "eval_prompt" in fields else _human_eval)(fields, place)


def _human_eval(fields: Mapping[str, Any], place: str) -> Task:
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


def _safim(fields: Mapping[str, Any], place: str) -> Task:
    before, hole, after = _field(fields, "eval_prompt", place).partition(SAFIM_HOLE)
    if not hole:
        raise BadInput(f"{place} has no hole: its eval_prompt must hold {SAFIM_HOLE}.")
    language = _field(fields, "lang", place)
    runs = _runs(fields.get("unit_tests"), place)
    return Task(
        name=str(fields.get("task_id", place)),
        kind="SAFIM",
        language=language_of(language) or language,
        prefix=before,
        suffix=after,
        truth=_field(fields, "ground_truth", place),
        check=runs if language == "python" else None,
    )


def _field(fields: Mapping[str, Any], name: str, place: str) -> str:
    if name not in fields:
        raise BadInput(f"{place} lacks {name!r}: it is neither in HumanEval-Infilling's format nor in SAFIM's.")
    value = fields[name]
    # Half a surrogate pair, which JSON can name, is no text for a tokenizer.
    if not isinstance(value, str) or any("\ud800" <= character <= "\udfff" for character in value):
        raise BadInput(f"{place} has no text as its {name!r}: give a string of Unicode characters.")
    return value


def _runs(tests: Any, place: str) -> Runs | None:
    """In the published files they are a list, in the published data set that list as a string."""
    read: list[tuple[str, tuple[str, ...]]] = []
    try:
        for case in (json.loads(tests) if isinstance(tests, str) else tests) or []:
            given, outputs = case["input"], case["output"]
            if not isinstance(outputs, list) or not all(isinstance(text, str) for text in (given, *outputs)):
                raise TypeError("not texts")
            read.append((given, tuple(outputs)))
    except (ValueError, TypeError, KeyError, RecursionError):
        raise BadInput(
            f"{place} has unit_tests that can't be run: give a list of objects with an input and a list of right "
            "outputs."
        ) from None
    return Runs(cases=tuple(read)) if read else None
