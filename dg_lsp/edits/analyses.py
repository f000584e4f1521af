"""Syntax errors and placeholders in documents, found by the engine without its model."""

from __future__ import annotations

from collections.abc import Sequence

from dg_lsp.backend.resident import Resident
from dg_lsp.documents.documents import Snapshot
from dg_lsp.edits.edits import LARGEST_CHARS, EditRequest, fix_request
from engine.common.analysis import Analysis, SyntaxErrorRegion

NOTHING = Analysis(errors=())
FAR_CHARS = 2000
"""Largest distance between an error and a possible cause."""
CAUSES = 3


class Analyses:
    """Queries the engine, if it runs, and caches the latest answer, since editors repeat their requests."""

    def __init__(self, resident: Resident) -> None:
        self._resident = resident
        self._latest: tuple[Snapshot, tuple[int | None, int], Analysis] | None = None

    async def at(self, snapshot: Snapshot, cursor: int, start: int | None = None) -> Analysis:
        """A document's errors, the placeholder at a cursor, and the rewrites of the selection from `start` to it; none
        where no engine runs. Raises EngineFailure."""
        if self._latest and self._latest[0].is_as(snapshot) and self._latest[1] == (start, cursor):
            return self._latest[2]
        client = self._resident.client
        if client.state.name not in ("unloaded", "loading", "ready") or len(snapshot.text) > LARGEST_CHARS:
            return NOTHING
        found = await client.analyze(snapshot.as_code(snapshot.text), cursor, snapshot.content_language, start)
        self.found(snapshot, cursor, found, start)
        return found

    def found(self, snapshot: Snapshot, cursor: int, analysis: Analysis, start: int | None = None) -> None:
        self._latest = (snapshot, (start, cursor), analysis)

    def forget(self) -> None:
        self._latest = None


def errors_in(analysis: Analysis, start: int, end: int) -> list[SyntaxErrorRegion]:
    """The errors that a span touches."""
    return [each for each in analysis.errors if each.start <= end and each.end >= start]


def error_request(
    snapshot: Snapshot, analysis: Analysis, errors: Sequence[SyntaxErrorRegion], n: int = 1
) -> EditRequest:
    """A request to fix some errors, including nearby places that may cause them. Other errors are left alone, except
    one that holds the likeliest cause."""
    start, end = min(each.start for each in errors), max(each.end for each in errors)
    likeliest = [each.spots[0] for each in errors if each.spots]
    others = [each for each in analysis.errors if not any(each.start <= spot <= each.end for spot in likeliest)]
    low = max([start - FAR_CHARS, *(each.end for each in others if each.end < start)])
    high = min([end + FAR_CHARS, *(each.start for each in others if each.start > end)])
    causes = [spot for each in errors for spot in each.spots[:CAUSES]]
    near = [start, end, *(spot for spot in causes if low < spot < high)]
    lines = snapshot.lines
    return fix_request(snapshot, lines.line_start(min(near)), lines.line_end(min(max(near), len(snapshot.text))), n)
