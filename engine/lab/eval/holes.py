"""Gaps in real files, placed by syntax and drawn by a seed, for training and evaluation."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from tree_sitter import Node, Parser

from engine.syntax.languages import ARGUMENTS, BLOCKS, load

Kind = Literal["rest_of_line", "line", "lines", "whole_lines", "block", "arguments", "span"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_LINE = re.compile(r"[^\S\r\n]*(\S[^\r\n]*)")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_OPENERS, _CLOSERS = "([{", ")]}"
_THROWS = 8
_BREAKS = 0.75
"""Share of whole lines that are taken with their line break."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """A gap `text[start:end]`, never blank. Offsets count characters."""

    kind: Kind
    start: int
    end: int


def holes(
    text: str,
    language: str,
    rng: random.Random,
    kinds: Sequence[Kind] | None = None,
    count: int = 8,
    longest: int = 1000,
) -> list[Hole]:
    """Up to `count` different gaps of the given kinds (all by default), each at most `longest` characters long.

    - rest_of_line: from somewhere inside a line to its end
    - line, lines: one line, or 2 to 8 neighbours, without the first one's indentation and the last one's line break
    - whole_lines: 1 to 4 neighbours from the margin on, mostly with the last one's line break
    - block: the inside of a body (function, class, braces), without the white space at its ends
    - arguments: the inside of a call's brackets
    - span: any piece of text, short ones more often than long ones

    The same text, arguments and state of `rng` give the same gaps. `language` is a `Grammar.name`; where it is
    unknown, or a kind does not occur in the file, the other kinds that were asked for make up the number.
    """
    sampler = _Sampler(text, language, rng, longest)
    wanted = rng.sample(kinds or KINDS, len(kinds or KINDS))
    found: dict[tuple[int, int], Hole] = {}
    for attempt in range(6 * count):
        if len(found) >= count:
            break
        kind = wanted[attempt % len(wanted)]
        draw: Callable[[], tuple[int, int] | None] = getattr(sampler, kind)
        place = draw()
        if place and place not in found and place[1] - place[0] <= longest and not text[slice(*place)].isspace():
            found[place] = Hole(kind=kind, start=place[0], end=place[1])
    return list(found.values())


class _Sampler:
    """Draws places; it has a method for each kind, which returns None where the draw failed."""

    def __init__(self, text: str, language: str, rng: random.Random, longest: int) -> None:
        self._text, self._rng, self._longest = text, rng, longest
        self._lines = [match.span(1) for match in _LINE.finditer(text)]
        grammar = load(language)
        self._data = text.encode(errors="replace")
        self._root = Parser(grammar).parse(self._data).root_node if grammar else None

    def rest_of_line(self) -> tuple[int, int] | None:
        if not self._lines:
            return None
        start, end = self._rng.choice(self._lines)
        edges = [edge for token in _TOKEN.finditer(self._text, start, end) for edge in token.span() if edge < end]
        anywhere = self._rng.random() < 0.2 or not edges
        return (self._rng.randrange(start, end) if anywhere else self._rng.choice(edges)), end

    def line(self) -> tuple[int, int] | None:
        return self._rng.choice(self._lines) if self._lines else None

    def lines(self) -> tuple[int, int] | None:
        if len(self._lines) < 2:
            return None
        height = min(self._rng.randint(2, 8), len(self._lines))
        first = self._rng.randrange(len(self._lines) - height + 1)
        return self._lines[first][0], self._lines[first + height - 1][1]

    def whole_lines(self) -> tuple[int, int] | None:
        if not self._lines:
            return None
        first = self._rng.randrange(len(self._lines))
        # One line as often as more.
        last = min(first + max(0, self._rng.randint(-2, 3)), len(self._lines) - 1)
        start, end = self._text.rfind("\n", 0, self._lines[first][0]) + 1, self._lines[last][1]
        kept = self._rng.random() < _BREAKS
        return start, end + len("\n") if kept and self._text.startswith("\n", end) else end

    def span(self) -> tuple[int, int] | None:
        if not self._text:
            return None
        length = min(len(self._text), self._longest, int(2 ** self._rng.uniform(0, 8)))
        start = self._rng.randrange(len(self._text) - length + 1)
        return start, start + length

    def block(self) -> tuple[int, int] | None:
        return self._inside(BLOCKS)

    def arguments(self) -> tuple[int, int] | None:
        return self._inside(ARGUMENTS)

    def _inside(self, types: frozenset[str]) -> tuple[int, int] | None:
        """The inside of a node of these types around a random place."""
        if self._root is None or not self._data:
            return None
        for _ in range(_THROWS):
            at = self._rng.randrange(len(self._data))
            around = [node for node in _path_to(self._root, at) if node.type in types]
            insides = [place for node in around if (place := self._content(node))]
            if insides:
                return self._rng.choice(insides)
        return None

    def _content(self, node: Node) -> tuple[int, int] | None:
        if node.end_byte - node.start_byte > 4 * self._longest:
            return None
        start, end = self._offset(node.start_byte), self._offset(node.end_byte)
        if self._text[start:end][:1] in _OPENERS and self._text[start:end][-1:] in _CLOSERS:
            start, end = start + 1, end - 1
        inside = self._text[start:end]
        stripped = inside.strip()
        if not stripped or len(stripped) > self._longest:
            return None
        start += len(inside) - len(inside.lstrip())
        return start, start + len(stripped)

    def _offset(self, byte: int) -> int:
        return byte if len(self._data) == len(self._text) else len(self._data[:byte].decode(errors="replace"))


def _path_to(root: Node, byte: int) -> list[Node]:
    """The nodes around a byte, the outermost first."""
    cursor = root.walk()
    path: list[Node] = []
    while cursor.node is not None:
        path.append(cursor.node)
        if cursor.goto_first_child_for_byte(byte) is None or cursor.node.start_byte > byte:
            break
    return path
