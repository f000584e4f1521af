"""What a rewrite may not change, whatever the model says: names that the rest of the file uses, and spans that somebody
keeps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from engine.common.request import FillRequest

_DEFINITION = re.compile(
    r"\b(?:def|class|fn|func|function|struct|enum|trait|interface|type|const|let|var|static)\s+(?:mut\s+)?([^\W\d]\w*)"
)
_PYTHON_DEFINITION = re.compile(r"\bdef\s+(\w+)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_PARAMETER = re.compile(r"(?:^|,)\s*\**(\w+)")
_PIECE = re.compile(r"\w+|\s+|[^\w\s]")


def lost_names(request: FillRequest, new: str) -> list[str]:
    """Names that `old` defines, the file uses elsewhere, and `new` lacks, unless the instruction speaks of them."""
    elsewhere = f"{request.prefix}\n{request.suffix}"
    defined = dict.fromkeys(_DEFINITION.findall(request.old))
    names = [name for name in defined if _stands_in(name, elsewhere) and not _stands_in(name, new)]
    return [name for name in [*names, *_lost_keywords(request, new, elsewhere)] if not _is_told(name, request)]


def _lost_keywords(request: FillRequest, new: str, elsewhere: str) -> list[str]:
    """Parameters that calls elsewhere give by their names."""
    after = {function: _parameters(said) for function, said in _PYTHON_DEFINITION.findall(new)}
    return [
        name
        for function, said in _PYTHON_DEFINITION.findall(request.old)
        for name in _parameters(said)
        if name not in after.get(function, [name])
        and re.search(rf"\b{function}\s*\([^()]*(?:\([^()]*\)[^()]*)*\b{name}\s*=[^=]", elsewhere)
    ]


def _parameters(said: str) -> list[str]:
    return _PARAMETER.findall(said)


def _is_told(name: str, request: FillRequest) -> bool:
    return _stands_in(name, request.instruction) or bool(re.search(r"\brename|\bumbenenn", request.instruction, re.I))


def _stands_in(name: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", text) is not None


def with_kept(old: str, new: str, keep: Sequence[tuple[int, int]]) -> str:
    """`new` without those of its changes that touch a kept span of `old`."""
    if not keep:
        return new
    before, after = _PIECE.findall(old), _PIECE.findall(new)
    pieces, at = list[str](), 0
    for kind, first, last, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        was = "".join(before[first:last])
        touched = any(low < at + len(was) and high > at for low, high in keep) or (
            not was and any(low < at < high for low, high in keep)
        )
        pieces.append(was if kind == "equal" or touched else "".join(after[start:end]))
        at += len(was)
    return "".join(pieces)
