"""Parsers that are none of ours: what a language's own implementation says of a whole text."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Self

_NODE = """
const vm = require('node:vm');
const ways = [
  (text) => new vm.SourceTextModule(text),
  (text) => vm.compileFunction(text, ['exports', 'require', 'module', '__filename', '__dirname']),
];
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const [way, text] = JSON.parse(line);
  let good = true;
  try { ways[way](text); } catch { good = false; }
  process.stdout.write(good + '\\n');
});
"""
_MODULE, _SCRIPT = 0, 1

Parses = Callable[[str], bool]


class Parsers:
    """Python's parser, and V8's if there is a `node`. Within a `with` block."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._node: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._node and self._node.stdin:
            self._node.stdin.close()
        self._stack.close()

    def of(self, language: str, text: str) -> Parses | None:
        """The parser that takes `text`, which is good code; None where there is none, or it does not."""
        ways: list[Parses] = []
        if language == "python":
            ways = [parses_as_python]
        elif language == "javascript" and shutil.which("node"):
            ways = [lambda text: self._asked(_SCRIPT, text), lambda text: self._asked(_MODULE, text)]
        return next((parses for parses in ways if parses(text)), None)

    def _asked(self, way: int, text: str) -> bool:
        if self._node is None:
            command = ["node", "--no-warnings", "--experimental-vm-modules", "-e", _NODE]
            self._node = self._stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
        assert self._node.stdin
        assert self._node.stdout
        self._node.stdin.write(json.dumps([way, text]) + "\n")
        self._node.stdin.flush()
        return self._node.stdout.readline() == "true\n"


def parses_as_python(text: str) -> bool:
    """Whether `ast.parse` takes it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
