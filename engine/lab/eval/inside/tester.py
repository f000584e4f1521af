"""The role `tester`: runs a test whose candidate is in another process, where it can't touch the test."""

from __future__ import annotations

import builtins
import importlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import IO, Any

from engine.lab.eval.inside.codec import decode, encode, pack

_LONGEST_LINE = 64 << 20


class SolutionFailed(Exception):
    """The solution has ended, or its answer makes no sense."""


@dataclass(slots=True, kw_only=True)
class Solution:
    questions: IO[bytes]
    answers: IO[bytes]

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Ask the solution. Raises SolutionFailed."""
        try:
            self.questions.write(pack(question))
            answer = json.loads(self.answers.readline(_LONGEST_LINE))
        except (OSError, ValueError, RecursionError) as error:
            raise SolutionFailed("it ended before it answered") from error
        if not isinstance(answer, dict):
            raise SolutionFailed("its answer is none")
        return answer

    def function(self, name: str) -> Callable[..., Any]:
        """A function of the solution, as a function here."""

        def call(*arguments: Any, **named: Any) -> Any:
            encoded = {key: encode(value) for key, value in named.items()}
            answer = self.ask({"name": name, "arguments": [encode(each) for each in arguments], "named": encoded})
            if "raised" in answer:
                raise _exception(answer["raised"])
            try:
                return decode(answer["value"])
            except (KeyError, ValueError, TypeError, RecursionError) as error:
                raise SolutionFailed("its answer is no value") from error

        return call


def play(task: int, questions: int, answers: int) -> None:
    """Run the task that is read as JSON from the first file descriptor; the other two lead to the solution. Only the
    verdict goes to standard output."""
    with os.fdopen(task) as file:
        given = json.load(file)
    verdicts = os.fdopen(os.dup(1), "wb", buffering=0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    solution = Solution(questions=os.fdopen(questions, "wb", buffering=0), answers=os.fdopen(answers, "rb"))
    try:
        _test(solution, given["source"], given["test"], given["entry_point"])
        verdict = {"passed": True, "reason": ""}
    except BaseException as error:  # noqa: BLE001 whatever a test throws is a verdict
        verdict = {"passed": False, "reason": f"{type(error).__name__}: {error}"[:500]}
    verdicts.write(pack(verdict))


def _test(solution: Solution, source: str, test: str, entry_point: str) -> None:
    code = compile(test, "test.py", "exec")
    wanted = {entry_point, *_names(code)} - set(dir(builtins))
    answer = solution.ask({"source": source, "names": sorted(wanted)})
    if "failed" in answer:
        raise _exception(answer["failed"])
    namespace: dict[str, Any] = {"__name__": "test", **_known(solution, wanted, answer.get("names"))}
    exec(code, namespace)
    namespace["check"](namespace[entry_point])


def _known(solution: Solution, wanted: set[str], names: Any) -> dict[str, Any]:
    """What the test uses of the solution: functions, plain values and imports."""
    if not isinstance(names, dict):
        raise SolutionFailed("its answer is none")
    known: dict[str, Any] = {}
    for name in wanted & names.keys():
        shown = names[name]
        if "callable" in shown:
            known[name] = solution.function(name)
        elif "module" in shown:
            known[name] = importlib.import_module(str(shown["module"]))
        elif "value" in shown:
            known[name] = decode(shown["value"])
    return known


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _exception(said: Any) -> BaseException:
    """The built-in exception that the solution raised, which tests may expect."""
    name, message = str(said[0]), str(said[1])
    kind = getattr(builtins, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        try:
            return kind(message)
        except TypeError:
            pass  # some want more than a message
    return SolutionFailed(f"{name}: {message}")
