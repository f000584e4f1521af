"""Gaps of every day, written by hand, each with what makes an answer right.

A file has one case after the other:

    === LANGUAGE/NAME
    --- file
    the file, the gap's own text between two markers ▮
    --- test
    Python that fails where the file is wrong
    --- answer
    a text that is right, any number of them, where nothing can be run
"""

from __future__ import annotations

import re
from pathlib import Path

from engine.common.marked import gap_at_markers
from engine.lab.eval.tasks import EvalTask

_CASES = Path(__file__).with_name("cases.txt")
_CASE = re.compile(r"^=== ([\w/-]+)$", re.M)
_SECTION = re.compile(r"^--- (\w+)$", re.M)


def hand_cases() -> list[EvalTask]:
    """All cases, in their order."""
    _, *parts = _CASE.split(_CASES.read_text(encoding="utf-8"))
    return [_case(name, text) for name, text in zip(parts[::2], parts[1::2], strict=True)]


def _case(name: str, text: str) -> EvalTask:
    _, *parts = _SECTION.split(text)
    sections = [(kind, part.strip("\n")) for kind, part in zip(parts[::2], parts[1::2], strict=True)]
    (file,) = (part for kind, part in sections if kind == "file")
    marked = gap_at_markers(f"{file}\n")
    return EvalTask(
        name=name,
        kind=name.partition("/")[2],
        language=name.partition("/")[0],
        prefix=marked.prefix,
        suffix=marked.suffix,
        truth=marked.old,
        asserts="".join(part for kind, part in sections if kind == "test"),
        right=tuple(part for kind, part in sections if kind == "answer"),
    )
