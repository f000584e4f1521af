"""The roles of untrusted code: `solution` answers calls of its functions, `program` runs a Python program that writes
to standard output, `command` runs another one."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from engine.lab.eval.inside.codec import decode, encode, pack


def play() -> None:
    """Answer questions from standard input on standard output; what the solution prints goes nowhere."""
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    namespace: dict[str, Any] = {"__name__": "solution"}
    answers.write(pack(_begin(json.loads(questions.readline()), namespace)))
    for line in questions:
        answers.write(_answer(json.loads(line), namespace))


def play_program(source: int) -> None:
    """Run the program whose text is read from a file descriptor."""
    with os.fdopen(source) as file:
        text = file.read()
    # The hidden name says what a program finds when it is started by hand.
    namespace: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
    sys.argv = ["program.py"]
    exec(compile(text, "program.py", "exec"), namespace)


def play_command(order: int) -> None:
    """Run a command; the command and the files that it finds are read as JSON from a file descriptor."""
    with os.fdopen(order) as file:
        given = json.load(file)
    for name, data in given["files"].items():
        with open(name, "wb") as made:
            made.write(bytes.fromhex(data))
        os.chmod(name, 0o700)
    os.dup2(1, 2)
    os.execv(given["command"][0], given["command"])


def _begin(question: Mapping[str, Any], namespace: dict[str, Any]) -> dict[str, Any]:
    try:
        exec(compile(question["source"], "solution.py", "exec"), namespace)
    except BaseException as error:  # noqa: BLE001 whatever it throws is what it answers
        return {"failed": _said(error)}
    return {"names": {name: _shown(namespace[name]) for name in question["names"] if name in namespace}}


def _shown(value: Any) -> Any:
    if isinstance(value, ModuleType):
        return {"module": value.__name__}
    if callable(value):
        return {"callable": True}
    try:
        return {"value": encode(value)}
    except (TypeError, ValueError, RecursionError):
        return {}


def _answer(question: Mapping[str, Any], namespace: Mapping[str, Any]) -> bytes:
    try:
        arguments = [decode(each) for each in question["arguments"]]
        named = {name: decode(each) for name, each in question["named"].items()}
        return pack({"value": encode(namespace[question["name"]](*arguments, **named))})
    except BaseException as error:  # noqa: BLE001 whatever it throws is what it answers
        return pack({"raised": _said(error)})


def _said(error: BaseException) -> list[str]:
    try:
        return [type(error).__name__, str(error)[:500]]
    except BaseException:  # noqa: BLE001 an exception may refuse to be read
        return [type(error).__name__, ""]
