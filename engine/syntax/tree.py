"""A parsed text. It never changes: an edit gives a new one that shares what stayed the same."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Language, Node, Tree

from engine.core.sequences import common_head, common_tail
from engine.syntax.budget import Budget
from engine.syntax.languages import load
from engine.syntax.parsing import encoded, parse


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntaxTree:
    """Offsets that go in and come out count characters of `text`; bytes and points stay inside."""

    text: str
    language: str
    """`Grammar.name`"""
    data: bytes
    """What tree-sitter saw: see `encoded`."""
    grammar: Language
    tree: Tree

    @property
    def root(self) -> Node:
        """The outermost node."""
        return self.tree.root_node

    def byte(self, offset: int) -> int:
        """Where a character begins in `data`."""
        return offset if self._narrow else len(encoded(self.text[:offset]))

    def offset(self, byte: int) -> int:
        """Which character begins at, or holds, a byte of `data`."""
        return byte if self._narrow else len(self.data[:byte].decode(errors="ignore"))

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
        tree = self.tree.copy()
        tree.edit(
            first,
            last,
            first + len(piece),
            _point(self.data, first),
            _point(self.data, last),
            _point(data, first + len(piece)),
        )
        return self._with(text, data, tree, budget)

    def updated(self, text: str, budget: Budget | None = None) -> SyntaxTree | None:
        """The tree of another version of the text, which costs little where little changed; None as in `edited`."""
        if text == self.text:
            return self
        start = common_head(self.text, text)
        tail = common_tail(self.text[start:], text[start:])
        return self.edited(start, len(self.text) - tail, text[start : len(text) - tail], budget)

    @property
    def _narrow(self) -> bool:
        return len(self.data) == len(self.text)

    def _with(self, text: str, data: bytes, old: Tree, budget: Budget | None) -> SyntaxTree | None:
        tree = parse(data, self.grammar, old, budget or Budget())
        if tree is None:
            return None
        return SyntaxTree(text=text, language=self.language, data=data, grammar=self.grammar, tree=tree)


def parsed(text: str, language: str, budget: Budget | None = None) -> SyntaxTree | None:
    """The tree of a text; None if the language has no grammar or the budget ran out."""
    grammar = load(language)
    if grammar is None:
        return None
    data = encoded(text)
    tree = parse(data, grammar, None, budget or Budget())
    return tree and SyntaxTree(text=text, language=language, data=data, grammar=grammar, tree=tree)


def _point(data: bytes, byte: int) -> tuple[int, int]:
    return data.count(b"\n", 0, byte), byte - (data.rfind(b"\n", 0, byte) + 1)
