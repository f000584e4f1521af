"""What the engine sees in documents without its model: broken lines, places to fill."""

from __future__ import annotations

from collections.abc import Sequence

from dg_lsp.backend.resident import Resident
from dg_lsp.documents.documents import Snapshot
from dg_lsp.edits.edits import LARGEST_CHARS, EditRequest, fix_request
from engine.common.analysis import Analysis, SyntaxErrorRegion

NOTHING = Analysis(errors=())
FAR_CHARS = 2000
"""Between broken lines and a place where the cause may lie, at the most."""
CAUSES = 3


class Analyses:
    """Asks the engine, if it runs, and remembers the latest answer: editors ask again and again."""

    def __init__(self, resident: Resident) -> None:
        self._resident = resident
        self._latest: tuple[Snapshot, int, Analysis] | None = None

    async def at(self, snapshot: Snapshot, cursor: int) -> Analysis:
        """What a document offers at a cursor; nothing where no engine runs. Raises EngineFailure."""
        if self._latest and self._latest[0].is_as(snapshot) and self._latest[1] == cursor:
            return self._latest[2]
        client = self._resident.client
        if client.state.name not in ("unloaded", "loading", "ready") or len(snapshot.text) > LARGEST_CHARS:
            return NOTHING
        found = await client.analyze(snapshot.as_code(snapshot.text), cursor, snapshot.content_language)
        self.found(snapshot, cursor, found)
        return found

    def found(self, snapshot: Snapshot, cursor: int, analysis: Analysis) -> None:
        self._latest = (snapshot, cursor, analysis)

    def forget(self) -> None:
        self._latest = None


def errors_in(analysis: Analysis, start: int, end: int) -> list[SyntaxErrorRegion]:
    """Those that a span touches."""
    return [each for each in analysis.errors if each.start <= end and each.end >= start]


def error_request(
    snapshot: Snapshot, analysis: Analysis, errors: Sequence[SyntaxErrorRegion], n: int = 1
) -> EditRequest:
    """Mend some errors of those that were found, wherever near them their causes lie; the others, but for one
    in which the likeliest cause of these lies, stay as they are."""
    start, end = min(each.start for each in errors), max(each.end for each in errors)
    likeliest = [each.spots[0] for each in errors if each.spots]
    others = [each for each in analysis.errors if not any(each.start <= spot <= each.end for spot in likeliest)]
    low = max([start - FAR_CHARS, *(each.end for each in others if each.end < start)])
    high = min([end + FAR_CHARS, *(each.start for each in others if each.start > end)])
    causes = [spot for each in errors for spot in each.spots[:CAUSES]]
    near = [start, end, *(spot for spot in causes if low < spot < high)]
    lines = snapshot.lines
    return fix_request(snapshot, lines.line_start(min(near)), lines.line_end(min(max(near), len(snapshot.text))), n)
