"""The thread that looks at texts for lists of actions, so that neither the clients nor the model wait for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from engine.ipc.messages import EngineMessage, Failed, Survey, Surveyed

_log = logging.getLogger(__name__)
_WAITING = 32
"""Surveys that may wait; actions are listed at every move of a cursor, and an old list is of no use."""


class Surveyor:
    """One thread; all methods belong to the event loop."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="survey")
        self._free = threading.Semaphore(_WAITING)

    def survey(self, asked: Survey, deliver: Callable[[EngineMessage], None]) -> None:
        """Look at a text and deliver what was found, on this object's thread."""
        if not self._free.acquire(blocking=False):
            deliver(Failed(id=asked.id, code="busy", message="The engine is busy looking at other texts."))
            return
        self._pool.submit(self._work, asked, deliver)

    def close(self) -> None:
        """Drop what waits."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _work(self, asked: Survey, deliver: Callable[[EngineMessage], None]) -> None:
        # Grammars take a while to import: not before somebody asks.
        from engine.analysis.survey import survey

        try:
            deliver(Surveyed(id=asked.id, findings=survey(asked.text, asked.cursor, asked.language)))
        except Exception:  # noqa: BLE001 whatever it is, it is this request's alone
            _log.exception("a survey failed")
            deliver(Failed(id=asked.id, code="internal", message="The text could not be looked at; the log has more."))
        finally:
            self._free.release()
