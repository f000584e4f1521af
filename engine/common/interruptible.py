"""Parsing with a time limit, since some texts cost a grammar quadratic time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from tree_sitter import Language, Parser, Point, Tree

_CHUNK = 16 * 1024


class InterruptibleParser:
    """tree-sitter asks whether to stop only now and then, but for text often: so text ends with it. For one thread,
    which lets others have a turn at each question; of a text that is handed over as a whole, at none."""

    def __init__(self, grammar: Language) -> None:
        self._parser = Parser(grammar)
        # The binding keeps one reference too many to each object _read() returns: hence always the same object.
        self._chunk = bytearray()
        self._data = memoryview(b"")
        self._must_stop: Callable[[], bool] = bool
        self._cancelled = False

    def parse(self, data: bytes, is_over: Callable[[], bool], old: Tree | None = None) -> Tree | None:
        """The tree; None where the time was up. `old`: the edited previous tree, whose unchanged parts are reused."""
        self._data, self._must_stop, self._cancelled = memoryview(data), is_over, False
        tree: Tree | None = None
        with suppress(ValueError):  # how the binding says that _is_over() stopped it
            tree = (
                self._parser.parse(self._read, progress_callback=self._is_over)
                if old is None
                else self._parser.parse(self._read, old, progress_callback=self._is_over)
            )
        self._data = memoryview(b"")
        if tree is None or self._cancelled:
            self._parser.reset()
            return None
        return tree

    def _read(self, start: int, _point: Point) -> bytearray:
        self._chunk[:] = b"" if self._is_over() else self._data[start : start + _CHUNK]
        return self._chunk

    def _is_over(self, *_progress: object) -> bool:
        self._cancelled = self._cancelled or self._must_stop()
        return self._cancelled
