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

from engine.errors import BadInput
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
    tasks: list[Task] = []
    for number, line in enumerate(_text(path).splitlines(), start=1):
        if line.strip():
            tasks.append(_task(line, f"{path}:{number}"))
    if not tasks:
        raise BadInput(f"{path} holds no task: name a file in the format of HumanEval-Infilling or SAFIM.")
    return tasks


def choose(tasks: Sequence[Task], limit: int | None, seed: int) -> list[Task]:
    """`limit` of them, drawn by `seed`, in their order; all without a limit."""
    if limit is None or limit >= len(tasks):
        return list(tasks)
    drawn = sorted(random.Random(f"{seed}/tasks").sample(range(len(tasks)), limit))
    return [tasks[index] for index in drawn]


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
    except OSError as error:
        raise BadInput(f"{path} can't be read ({error.strerror or error}): name a file of tasks.") from None
    except (EOFError, zlib.error, UnicodeDecodeError):
        raise BadInput(f"{path} is damaged: fetch it again.") from None


def _task(line: str, place: str) -> Task:
    try:
        told: Any = json.loads(line)
        return _safim(told, place) if "eval_prompt" in told else _human_eval(told)
    except (ValueError, TypeError, AttributeError):
        raise BadInput(f"{place} is no task: a line is one JSON object.") from None
    except KeyError as error:
        raise BadInput(
            f"{place} lacks {error}: it is neither in HumanEval-Infilling's format nor in SAFIM's."
        ) from None


def _human_eval(told: Mapping[str, Any]) -> Task:
    return Task(
        name=told["task_id"],
        kind=told["task_id"].partition("/")[0],
        language="python",
        prefix=told["prompt"],
        suffix=told["suffix"],
        truth=told["canonical_solution"],
        check=UnitTest(test=told["test"], entry_point=told["entry_point"]),
    )


def _safim(told: Mapping[str, Any], place: str) -> Task:
    before, hole, after = told["eval_prompt"].partition(SAFIM_HOLE)
    if not hole:
        raise BadInput(f"{place} has no hole: its eval_prompt must hold {SAFIM_HOLE}.")
    language = told["lang"]
    cases = tuple((case["input"], tuple(case["output"])) for case in told.get("unit_tests") or ())
    return Task(
        name=str(told.get("task_id", place)),
        kind="SAFIM",
        language=language_of(language) or language,
        prefix=before,
        suffix=after,
        truth=told["ground_truth"],
        check=Runs(cases=cases) if cases and language == "python" else None,
    )
