"""How far a load has come, as transformers' own progress bars would show it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sized
from contextlib import contextmanager
from typing import Any

from transformers.utils import logging

_DESCRIPTION = "Loading weights"


@contextmanager
def reporting(on_percent: Callable[[float], None]) -> Generator[None]:
    """Within the block, loading weights calls `on_percent` with [0, 100] instead of drawing on standard error."""

    def watch(factory: Any, args: Any, options: Any) -> Any:
        bar = logging.EmptyTqdm(*args, **options)
        items = args[0] if args else None
        watched = options.get("desc") == _DESCRIPTION and isinstance(items, Sized)
        return _Watched(bar, items, on_percent) if watched else bar

    previous = logging.set_tqdm_hook(watch)
    try:
        yield
    finally:
        logging.set_tqdm_hook(previous)


class _Watched:
    """A progress bar that nobody sees: everything but iterating is left to `bar`."""

    def __init__(self, bar: Any, items: Any, on_percent: Callable[[float], None]) -> None:
        self._bar = bar
        self._items = items
        self._on_percent = on_percent

    def __iter__(self) -> Iterator[Any]:
        whole = -1
        for done, item in enumerate(self._items):
            percent = 100 * done // len(self._items)
            if percent > whole:
                whole = percent
                self._on_percent(float(percent))
            yield item

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bar, name)
