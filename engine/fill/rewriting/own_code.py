"""The part of an answer that belongs to the selection: small models repeat the lines around it, or go on after it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from engine.common.request import FillRequest
from engine.fill.rewriting.surroundings import defined_name, enclosing, is_import
from engine.syntax.brackets import indentation

_BELONGS = re.compile(r"\s*(@|#\[|//|#|/\*|\*|--)")
"""A line that belongs to the definition after it."""
_GOES_ON = re.compile(r"[)\]}]|(?:else|elif|except|finally|catch|then)\b")
_WORD = re.compile(r"[^\W\d]\w*")


def own_code(request: FillRequest, code: str) -> str:
    """`code` without definitions and imports from outside the selection, taken out of the code around it; all of it if
    nothing would be left."""
    prefix, old, suffix = request.prefix, request.old, request.suffix
    before = prefix.split("\n")[:-1]
    indent = indentation(prefix[prefix.rfind("\n") + 1 :] + old.partition("\n")[0])
    around = {name for at in enclosing(before, indent) if (name := defined_name(before[at]))}
    lines = [*before, *suffix.split("\n")]
    outside = {name for line in lines if indentation(line) <= indent and (name := defined_name(line))} - {
        name for line in old.split("\n") if (name := defined_name(line))
    }
    imports = {line.strip() for line in lines if is_import(line)} - {line.strip() for line in old.split("\n")}
    kept = list(_own(code.split("\n"), outside, around, imports))
    own = "\n".join(_useful(kept, old)).strip("\n")
    return own if own.strip() else code


def _own(lines: Sequence[str], outside: set[str], around: set[str], imports: set[str]) -> Iterator[str]:
    for block in _blocks(lines):
        head = next((line for line in block if line.strip() and not _BELONGS.match(line)), "")
        name = defined_name(head)
        if name in around:
            yield from _own(_inside(block, head), outside, around, imports)
        elif name not in outside and head.strip() not in imports:
            yield from block


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Blocks at the least indentation, with the lines before that belong to each, and blank lines after."""
    least = min((indentation(line) for line in lines if line.strip()), default=0)
    block, begun = list[str](), False
    for line in lines:
        starts = bool(line.strip()) and indentation(line) <= least and not _GOES_ON.match(line.strip())
        if starts and begun:
            yield block
            block, begun = [], False
        block.append(line)
        begun = begun or (starts and not _BELONGS.match(line))
    if block:
        yield block


def _inside(block: Sequence[str], head: str) -> list[str]:
    """The body of a definition, without its indentation."""
    body = list(block[block.index(head) + 1 :])
    while body and (not body[-1].strip() or re.match(r"[)\]};]+\s*$", body[-1])):
        body.pop()
    indent = min((indentation(line) for line in body if line.strip()), default=0)
    return [line[indent:] for line in body]


def _useful(lines: Sequence[str], old: str) -> Iterator[str]:
    """Code without new imports that it does not use."""
    for at, line in enumerate(lines):
        if is_import(line) and line.strip() not in old:
            bound = _WORD.findall(line)[-1:]
            rest = "\n".join([*lines[:at], *lines[at + 1 :]])
            if not any(re.search(rf"\b{re.escape(name)}\b", rest) for name in bound):
                continue
        yield line
