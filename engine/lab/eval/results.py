"""The results of a run as lines of JSON, one a fill, written at once, so that a run can go on after a cut."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Self

from filelock import FileLock, Timeout

from engine.common.errors import BadInput
from engine.common.files import replacing, writing

_FILE, _ABOUT, _LOCK = "results.jsonl", "run.json", "run.lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    row: str
    task: str
    kind: str
    truth_tokens: int
    text: str
    tokens: int
    """Tokens of the answer; 0: there is none."""
    exact: bool
    similarity: float
    """1 minus the Levenshtein distance by the length of the longer text, in [0, 1]."""
    syntax: str
    """The answer's `Syntax`; empty: there is none."""
    clean: bool | None
    """Whether it adds no syntax problem; None: unknown."""
    passed: bool | None
    """Whether it passes its test; None: there is none."""
    reason: str
    """Why it did not pass."""
    steps: int
    forwards: int
    ms: float


class Results:
    """The results of a run, in memory and, where one is given, in a folder."""

    def __init__(self, folder: Path | None, about: Mapping[str, Any], otherwise: str = "") -> None:
        """`about`: what another run must share to go on here; `otherwise`: another remedy that errors name. Raises
        BadInput where it does not share that, or another run uses the folder, EngineError where the folder can't be
        written to."""
        self._folder, self._otherwise = folder, otherwise
        self._known: dict[tuple[str, str], Result] = {}
        self._file: IO[str] | None = None
        with ExitStack() as held:
            if folder is not None:
                with self._writing():
                    folder.mkdir(parents=True, exist_ok=True)
                    try:
                        held.enter_context(FileLock(folder / _LOCK, blocking=False))
                    except Timeout:
                        raise BadInput(f"Another run is at work in {folder}: wait for its end{otherwise}.") from None
                    _claim(folder, about, otherwise)
                    self._known = {(each.row, each.task): each for each in _read(folder / _FILE, otherwise)}
                    self._file = held.enter_context((folder / _FILE).open("a", encoding="utf-8"))
            self._held = held.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._writing():
            self._held.close()

    def __contains__(self, row_and_task: tuple[str, str]) -> bool:
        return row_and_task in self._known

    def add(self, result: Result) -> None:
        """Add a result and write it at once. Raises EngineError where the folder can't be written to."""
        self._known[result.row, result.task] = result
        if self._file:
            with self._writing():
                self._file.write(json.dumps(asdict(result)) + "\n")
                self._file.flush()

    def of(self, row: str, tasks: set[str]) -> list[Result]:
        return [each for each in self._known.values() if each.row == row and each.task in tasks]

    def _writing(self) -> AbstractContextManager[None]:
        return writing(self._folder, f"make room on its disk{self._otherwise}")


def _claim(folder: Path, about: Mapping[str, Any], otherwise: str) -> None:
    path = folder / _ABOUT
    if not path.exists():
        # In one move: a run that is killed here leaves nothing that the next one can't read.
        with replacing(path) as draft:
            draft.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
        return
    before: Any = None
    with suppress(ValueError):
        before = json.loads(path.read_text(encoding="utf-8"))
    if before != json.loads(json.dumps(about)):
        raise BadInput(f"{folder} holds a run with other settings or weights: remove it{otherwise}.")


def _read(path: Path, otherwise: str) -> list[Result]:
    """The results in a file; a last line that was cut off is removed from it."""
    if not path.exists():
        return []
    lines = path.read_bytes().splitlines(keepends=True)
    whole = lines[:-1] if lines and not lines[-1].endswith(b"\n") else lines
    try:
        found = [Result(**json.loads(line)) for line in whole]
    except (ValueError, TypeError):
        raise BadInput(f"{path} is damaged: remove it{otherwise}.") from None
    with path.open("r+b") as file:
        file.truncate(sum(map(len, whole)))
    return found
