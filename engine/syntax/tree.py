"""Parsed texts, and a cache of them. A tree never changes: an edit gives a new one that shares the unchanged parts, so
a keystroke costs an edit and not a parse."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tree_sitter import Language, Node, Tree

from engine.common.interruptible import InterruptibleParser
from engine.common.sequences import common_ends
from engine.syntax.budget import Budget
from engine.syntax.languages import load

_SURROGATE = re.compile("[\ud800-\udfff]")
_LONE_CR = re.compile(rb"\r(?!\n)")
_KEPT_NBYTES = 1 << 20
"""Bytes of text that are kept; its trees take about seventy times as much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntaxTree:
    """A parsed text. Offsets of its methods count characters of `text`; bytes and points stay inside."""

    text: str
    language: str
    """`Grammar.name`"""
    data: bytes
    """The bytes that tree-sitter parsed: see `encoded`."""
    tree: Tree

    @property
    def root(self) -> Node:
        return self.tree.root_node

    def byte(self, offset: int) -> int:
        """Where a character begins in `data`."""
        return offset if self._narrow else len(encoded(self.text[:offset]))

    def offset(self, byte: int) -> int:
        """The character that begins at a byte of `data`, or holds it."""
        return byte if self._narrow else len(self.data[:byte].decode(errors="ignore"))

    def said(self, first: Node, last: Node | None = None) -> str:
        """The text of a node, or from the beginning of one to that of another."""
        end = first.end_byte if last is None else last.start_byte
        return self.data[first.start_byte : end].decode(errors="ignore")

    def edited(self, start: int, end: int, replacement: str, budget: Budget | None = None) -> SyntaxTree | None:
        """The tree of the text with `text[start:end]` replaced; None if the budget ran out."""
        if self.text[start:end] == replacement:
            return self
        text = self.text[:start] + replacement + self.text[end:]
        # A CR at the edge of the edit may become or cease to be alone: then it changes too.
        low = start - (self.text[start - 1 : start] == "\r")
        high = end + (self.text[end : end + 1] == "\n")
        piece = encoded(text[low : high + len(text) - len(self.text)])
        first, last = self.byte(low), self.byte(high)
        data = self.data[:first] + piece + self.data[last:]
        new_last = first + len(piece)
        tree = self.tree.copy()
        tree.edit(first, last, new_last, _point(self.data, first), _point(self.data, last), _point(data, new_last))
        return _parsed(text, data, self.language, tree, budget)

    def updated(self, text: str, budget: Budget | None = None) -> SyntaxTree | None:
        """The tree of another version of the text, cheap if little changed; None as in `edited`."""
        if text == self.text:
            return self
        start, tail = common_ends(self.text, text)
        return self.edited(start, len(self.text) - tail, text[start : len(text) - tail], budget)

    @property
    def _narrow(self) -> bool:
        return len(self.data) == len(self.text)


def parsed(text: str, language: str, budget: Budget | None = None) -> SyntaxTree | None:
    """The tree of a text; None if the language has no grammar or the budget ran out."""
    return _parsed(text, encoded(text), language, None, budget)


def encoded(text: str) -> bytes:
    """UTF-8 that tree-sitter reads as an editor does.

    Surrogates, which have no UTF-8, become U+FFFD. A lone CR, a line break for editors and compilers but blank for
    most grammars, becomes LF. Both keep the number of characters.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:
        data = _SURROGATE.sub("\ufffd", text).encode()
    return _LONE_CR.sub(b"\n", data) if b"\r" in data else data


def plain(text: str) -> str:
    """A text with the characters that `encoded` stands for, of the same length."""
    return encoded(text).decode()


class Trees:
    """Remembers the latest `capacity` texts, and finds the one that a new text is an edit of. Not thread-safe."""

    def __init__(self, capacity: int = 8) -> None:
        self._capacity = capacity
        self._trees: list[SyntaxTree] = []

    def tree(self, text: str, language: str, budget: Budget | None = None) -> SyntaxTree | None:
        """The tree of a text; None if the language has no grammar or the budget ran out."""
        shared = [(sum(common_ends(tree.text, text)), tree) for tree in self._trees if tree.language == language]
        common, near = max(shared, key=lambda pair: pair[0], default=(0, None))
        # A text that shares less is another one, and parsing it anew costs no more than editing.
        near = near if 2 * common > len(text) else None
        tree = near.updated(text, budget) if near else parsed(text, language, budget)
        if tree:
            self._trees = [tree, *(known for known in self._trees if known is not near)][: self._capacity]
            # The latest is remembered however large it is.
            while len(self._trees) > 1 and self.nbytes > _KEPT_NBYTES:
                self._trees.pop()
        return tree

    @property
    def nbytes(self) -> int:
        """Bytes of text held, trees not counted."""
        return sum(len(tree.data) for tree in self._trees)


def around(node: Node | None) -> Iterator[Node]:
    """A node and those around it, the innermost first."""
    while node is not None:
        yield node
        node = node.parent


def _point(data: bytes, byte: int) -> tuple[int, int]:
    return data.count(b"\n", 0, byte), byte - (data.rfind(b"\n", 0, byte) + 1)


def _parsed(text: str, data: bytes, language: str, old: Tree | None, budget: Budget | None) -> SyntaxTree | None:
    """Parse `data`. `old`: a tree that was edited to match; its unchanged parts are reused."""
    grammar = load(language)
    is_over = (budget or Budget()).over
    tree = _parser(grammar, threading.get_ident()).parse(data, is_over, old) if grammar else None
    return tree and SyntaxTree(text=text, language=language, data=data, tree=tree)


@cache
def _parser(grammar: Language, _thread: int) -> InterruptibleParser:
    """A parser can't be shared by threads, and making one for each parse would cost more than many parses."""
    return InterruptibleParser(grammar)
