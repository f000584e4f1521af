"""UTF-8 in, tree-sitter tree out, within a budget."""

from __future__ import annotations

import re
import threading
from contextlib import suppress

from tree_sitter import Language, Parser, Point, Tree

from engine.syntax.budget import Budget

_CHUNK = 16 * 1024
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONE_CR = re.compile(rb"\r(?!\n)")


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
    """The text that `encoded` stands for; no longer and no shorter."""
    return encoded(text).decode()


def parse(data: bytes, grammar: Language, old: Tree | None, budget: Budget) -> Tree | None:
    """The tree of `data`, reusing what is unchanged of `old` (edited already); None if the budget ran out."""
    return _parsers.of(grammar).parse(data, old, budget)


class _Source:
    """Feeds one parser. tree-sitter asks for the budget only now and then, but for text often: so text ends with it."""

    def __init__(self) -> None:
        # The binding keeps one reference too many to each object read() returns: hence always the same object.
        self._chunk = bytearray()
        self._data = memoryview(b"")
        self._budget = Budget()
        self.cancelled = False

    def open(self, data: bytes, budget: Budget) -> None:
        self._data, self._budget, self.cancelled = memoryview(data), budget, False

    def close(self) -> None:
        self._data = memoryview(b"")

    def read(self, start: int, _point: Point) -> bytearray:
        self.cancelled = self.cancelled or self._budget.over()
        self._chunk[:] = b"" if self.cancelled else self._data[start : start + _CHUNK]
        return self._chunk

    def progress(self, _offset: int, _has_error: bool) -> bool:
        self.cancelled = self.cancelled or self._budget.over()
        return self.cancelled


class _Feed:
    """A parser of one language in one thread, and what feeds it."""

    def __init__(self, grammar: Language) -> None:
        self._parser = Parser(grammar)
        self._source = _Source()

    def parse(self, data: bytes, old: Tree | None, budget: Budget) -> Tree | None:
        source = self._source
        source.open(data, budget)
        tree: Tree | None = None
        with suppress(ValueError):  # how the binding says that progress() stopped it
            tree = (
                self._parser.parse(source.read, progress_callback=source.progress)
                if old is None
                else self._parser.parse(source.read, old, progress_callback=source.progress)
            )
        source.close()
        if tree is None or source.cancelled:
            self._parser.reset()
            return None
        return tree


class _Parsers(threading.local):
    """A parser can't be shared by threads, and making one for each parse would cost more than many parses."""

    def __init__(self) -> None:
        self._feeds: dict[Language, _Feed] = {}

    def of(self, grammar: Language) -> _Feed:
        if grammar not in self._feeds:
            self._feeds[grammar] = _Feed(grammar)
        return self._feeds[grammar]


_parsers = _Parsers()
