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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """What one line tells."""

    told: Mapping[str, Any]
    place: str

    def text(self, name: str) -> str:
        """Raises BadInput where there is none."""
        if name not in self.told:
            raise BadInput(
                f"{self.place} lacks {name!r}: it is neither in HumanEval-Infilling's format nor in SAFIM's."
            )
        value = self.told[name]
        if not isinstance(value, str) or not _is_utf8(value):
            raise BadInput(f"{self.place} has no text as its {name!r}: give a string of Unicode characters.")
        return value

    def runs(self) -> Runs | None:
        """Of its unit tests, where it has some. Raises BadInput where they make no sense."""
        tests = self.told.get("unit_tests")
        try:
            # In the published files they are a list, in the published data set that list as a string.
            cases: Any = (json.loads(tests) if isinstance(tests, str) else tests) or []
            read = tuple((_string(case["input"]), tuple(map(_string, _listed(case["output"])))) for case in cases)
        except (ValueError, TypeError, KeyError, RecursionError):
            raise BadInput(
                f"{self.place} has unit_tests that can't be run: give a list of objects with an input and a list of "
                f"right outputs."
            ) from None
        return Runs(cases=read) if read else None


def _task(line: str, place: str) -> Task:
    try:
        told: Any = json.loads(line)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise BadInput(f"{place} is no task: a line is one JSON object.")
    return (
        _safim(_Line(told=told, place=place)) if "eval_prompt" in told else _human_eval(_Line(told=told, place=place))
    )


def _human_eval(line: _Line) -> Task:
    name = line.text("task_id")
    return Task(
        name=name,
        kind=name.partition("/")[0],
        language="python",
        prefix=line.text("prompt"),
        suffix=line.text("suffix"),
        truth=line.text("canonical_solution"),
        check=UnitTest(test=line.text("test"), entry_point=line.text("entry_point")),
    )


def _safim(line: _Line) -> Task:
    before, hole, after = line.text("eval_prompt").partition(SAFIM_HOLE)
    if not hole:
        raise BadInput(f"{line.place} has no hole: its eval_prompt must hold {SAFIM_HOLE}.")
    language = line.text("lang")
    runs = line.runs()
    return Task(
        name=str(line.told.get("task_id", line.place)),
        kind="SAFIM",
        language=language_of(language) or language,
        prefix=before,
        suffix=after,
        truth=line.text("ground_truth"),
        check=runs if language == "python" else None,
    )


def _is_utf8(text: str) -> bool:
    """Half a surrogate pair, which JSON can name, is no text for a tokenizer."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _string(value: object) -> str:
    """Raises TypeError."""
    if not isinstance(value, str):
        raise TypeError("not a string")
    return value


def _listed(value: Any) -> list[Any]:
    """Raises TypeError."""
    if not isinstance(value, list):
        raise TypeError("not a list")
    return value
