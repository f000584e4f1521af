"""The parts of a file that a model sees beside a selection: definitions of its names, and the function around it. All
lines around it would take time to read, and a small model repeats them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from engine.common.request import FillRequest
from engine.syntax.brackets import indentation

_BEFORE, _AFTER = 1500, 600
"""Most characters before the selection, and after it."""
_BLOCK_LINES = 16
"""A longer class or struct is shown by its first line."""
_WORD = re.compile(r"[^\W\d]\w*")
_IMPORT = re.compile(r"^\s*(import\b|from\b.*\bimport\b|use\b|#include\b|using\b|(const|let|var)\b.*\brequire\()")
_TYPE = re.compile(r"^\s*(?:[\w()]+\s+)*?(?:class|struct|interface|enum|trait|type|impl|mod|namespace|protocol)\b")
_TYPE_NAME = re.compile(_TYPE.pattern + r"(?:<[^>]*>)?\s+(?:\w+\s+for\s+)?([^\W\d]\w*)")
_STATEMENT = re.compile(r"\s*(if|for|while|switch|match|catch|with|return|await|elif|else|yield|throw|new)\b")
_IMPLEMENTATION = re.compile(r"\s*(unsafe\s+)?impl\b")
_GO_METHOD = re.compile(r"func\s+\(\s*(?:\w+\s+)?\*?(\w+)[^)]*\)\s*(\w+)\s*\(")
_FUNCTION = re.compile(r"^\s*(?:[\w()]+\s+)*?(?:def|fn|func|function)\b[^(=]*?([^\W\d]\w*)\s*[(<]")
_METHOD = re.compile(r"^\s*(?:[\w()]+\s+)*?([^\W\d]\w*)\s*(?:<[^>]*>)?\(.*\{\s*$")
_FIELD = re.compile(
    r"^\s*(?:(?:pub|private|public|protected|readonly|static|const|let|var|final|export|self\.|this\.)\s*)*"
    r"([^\W\d]\w*)\s*[?!]?\s*(?::|:?=(?!=)|\s[\w\[\]*.]+(?:\s+`.*)?$)"
)
_OWN = re.compile(r"^\s*(self|this)\.")
_CLOSERS = re.compile(r"^\s*[)\]}]")


def surroundings(request: FillRequest) -> tuple[str, str]:
    """Whole lines of the file in order: those before the selection, and those after it."""
    prefix, suffix = request.prefix, request.suffix
    before, after = prefix.split("\n")[:-1], suffix.split("\n")[1:]
    first_line = prefix[prefix.rfind("\n") + 1 :]
    indent = indentation(first_line + request.old.partition("\n")[0])
    headers = enclosing(before, indent)
    own = next((at for at in headers if not _TYPE.match(before[at])), len(before))
    around = [first_line, *(before[at] for at in headers), suffix.partition("\n")[0]]
    words = set(_WORD.findall("\n".join([request.old, request.instruction, *around])))
    places = [at for at in range(own) if at not in headers]
    kept = {*headers, *_named(before, words, places, indent), *range(own, len(before))}
    rest = _own_rest(after, indentation(before[own])) if own < len(before) else 0
    told = {*_named(after, words, range(rest, len(after)), indent), *range(rest)}
    return _told(before, sorted(kept, reverse=True), _BEFORE), _told(after, sorted(told), _AFTER)


def enclosing(lines: Sequence[str], indent: int) -> list[int]:
    """The opening lines of the blocks around the end of these lines, the outermost first."""
    found: list[int] = []
    for at in range(len(lines) - 1, -1, -1):
        line = lines[at]
        if line.strip() and indentation(line) < indent and not _CLOSERS.match(line):
            found.insert(0, at)
            indent = indentation(line)
    return found


def is_import(line: str) -> bool:
    """Whether a line imports names."""
    return _IMPORT.match(line) is not None


def defined_name(line: str) -> str:
    """The name that a line defines; of an implementation the whole line; empty: none."""
    if _IMPLEMENTATION.match(line):
        return line.strip(" {")
    found = _GO_METHOD.match(line)
    if found:
        return f"{found[1]}.{found[2]}"
    found = _FUNCTION.match(line) or _METHOD.match(line) or _TYPE_NAME.match(line)
    return found[1] if found and not _STATEMENT.match(line) else ""


def _own_rest(lines: Sequence[str], indent: int) -> int:
    """The number of lines after a selection that belong to its function."""
    for at, line in enumerate(lines):
        if line.strip() and indentation(line) <= indent:
            return at + bool(_CLOSERS.match(line))
    return len(lines)


def _named(lines: Sequence[str], words: set[str], places: Iterable[int], indent: int) -> Iterator[int]:
    """Lines that define a word. `indent`: the selection's; a line beside it may be a field."""
    for at in places:
        line = lines[at]
        if _IMPORT.match(line):
            if words.intersection(_WORD.findall(line)):
                yield at
        elif _TYPE.match(line):
            if words.intersection(_WORD.findall(line)):
                block = range(at, at + block_lines(lines[at:]))
                yield from block if len(block) <= _BLOCK_LINES else block[:1]
        elif found := _FUNCTION.match(line) or _METHOD.match(line):
            if found[1] in words:
                yield at
        elif (found := _FIELD.match(line)) and found[1] in words:
            # Others are variables of another function.
            if indentation(line) in (0, indent):
                yield at
            elif _OWN.match(line):
                yield from (above for above in enclosing(lines[:at], indentation(line))[-1:])
                yield at


def block_lines(lines: Sequence[str]) -> int:
    """The number of lines of the block that the first one opens."""
    return 1 + _own_rest(lines[1:], indentation(lines[0]))


def _told(lines: Sequence[str], places: Sequence[int], room: int) -> str:
    """The first of these lines that fit into `room` characters, in the file's order."""
    sizes = accumulate(len(lines[at]) + 1 for at in places)
    kept = [at for at, size in zip(places, sizes, strict=True) if size <= room]
    return "\n".join(lines[at] for at in sorted(kept)).strip("\n")
