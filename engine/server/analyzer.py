"""Analyses of texts for lists of code actions, made by the syntax process after the checks of fills."""

from __future__ import annotations

from collections.abc import Callable

from engine.common.analysis import Analysis
from engine.common.messages import Analyze, AnalyzeReply, EngineMessage, Failed, FailureCode
from engine.server.scheduler import id_in_use
from engine.syntax.checker import Checker, Ticket
from engine.syntax.languages import language_of
from engine.syntax.questions import AnalyzeText, Reply, SyntaxCheck

URGENCY = 2
"""Fills come before."""
ANALYZE_MS = 500.0
"""For one analysis."""
LEFT_MS = 1500.0
"""A list of actions that comes later is of no use."""
_PER_CLIENT = 4
"""Analyses of one client; actions are listed at every move of a cursor, and the oldest is of no use."""
Deliver = Callable[[EngineMessage], None]


class Analyzer:
    """All methods belong to the event loop."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._open: dict[tuple[int, int], Deliver] = {}
        """By client and the client's number, oldest first."""

    def analyze(self, client: int, request: Analyze, deliver: Deliver) -> None:
        """Analyze a text, and deliver the result once."""
        language = language_of(request.language)
        if language is None:
            deliver(AnalyzeReply(id=request.id, analysis=Analysis(errors=())))
            return
        key = (client, request.id)
        if key in self._open:
            refused, why = id_in_use(request.id)
            deliver(Failed(id=request.id, code=refused, message=why))
            return
        own = [key for key in self._open if key[0] == client]
        if len(own) >= _PER_CLIENT:
            self._fail(own[0], "superseded", "Newer texts came to be looked at.")
        self._open[key] = deliver
        question = AnalyzeText(text=request.text, language=language, cursor=request.cursor, start=request.start)
        self._checker.submit(
            Ticket(
                check=SyntaxCheck(question=question, budget_ms=ANALYZE_MS, left_ms=LEFT_MS),
                urgency=URGENCY,
                deliver=lambda reply: self._replied(key, deliver, reply),
                wanted=lambda: self._open.get(key) is deliver,
            )
        )

    def cancel(self, client: int, id: int) -> None:
        """Give up an analysis, if there is one of that id."""
        self._fail((client, id), "cancelled", "The request was cancelled.")

    def drop(self, client: int) -> None:
        """Forget a client that has gone."""
        for key in [key for key in self._open if key[0] == client]:
            del self._open[key]

    def _replied(self, key: tuple[int, int], deliver: Deliver, reply: Reply | None) -> None:
        if self._open.get(key) is not deliver:
            return
        if isinstance(reply, Analysis):
            del self._open[key]
            deliver(AnalyzeReply(id=key[1], analysis=reply))
        else:
            self._fail(key, "late", "The text could not be looked at in time.")

    def _fail(self, key: tuple[int, int], code: FailureCode, message: str) -> None:
        deliver = self._open.pop(key, None)
        if deliver:
            deliver(Failed(id=key[1], code=code, message=message))
