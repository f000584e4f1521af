"""The next edit: where else in a document what was just edited belongs, as the engine finds it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from dg_lsp.backend.resident import Resident
from dg_lsp.documents.documents import Documents, Snapshot
from dg_lsp.suggest.history import EditHistory
from engine.core.request import FillRequest

LARGEST_CHARS = 1_000_000
KEPT_DISMISSED = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class NextEdit:
    """`snapshot.text[start:end]` could become `text`. `id` is the session's."""

    id: int
    snapshot: Snapshot
    start: int
    end: int
    text: str

    @property
    def what(self) -> tuple[str, str, str]:
        """It is the same edit again wherever the line went."""
        lines = self.snapshot.lines
        line = self.snapshot.text[lines.line_start(self.start) : lines.line_end(self.end)]
        return self.snapshot.uri, line, self.text


class NextEdits:
    """What was dismissed, or was left while somebody went on editing elsewhere, does not come again."""

    def __init__(self, *, documents: Documents, resident: Resident, history: EditHistory) -> None:
        self._documents = documents
        self._resident = resident
        self._history = history
        self._ids = itertools.count(1)
        self._shown: dict[str, NextEdit] = {}
        """The last one of each document."""
        self._dismissed: dict[tuple[str, str, str], None] = {}
        """Newest last."""

    async def at(self, snapshot: Snapshot, cursor: int) -> NextEdit | None:
        """The next edit for somebody whose cursor is there, in the document as it is in `snapshot` still."""
        edits = self._history.recent(snapshot, None)
        if snapshot.policy.off or not edits or len(snapshot.text) > LARGEST_CHARS:
            return None
        request = FillRequest(
            task="next",
            prefix=snapshot.text[:cursor],
            suffix=snapshot.text[cursor:],
            language=snapshot.language,
            edits=edits,
            deadline_ms=snapshot.policy.settings.inline.deadline_or(self._resident.deadline_ms),
        )
        filled = await self._resident.fill(request, f"next {snapshot.uri}")
        now = self._documents.get(snapshot.uri)
        if filled is None or now is None or now.lines is not snapshot.lines or now.policy.off:
            return None
        for candidate in filled.candidates:
            if not candidate.replaces:
                continue
            start, end = candidate.replaces
            found = NextEdit(id=next(self._ids), snapshot=snapshot, start=start, end=end, text=candidate.text)
            if found.what not in self._dismissed:
                self._shown[snapshot.uri] = found
                return found
        return None

    def dismiss(self, id: int) -> None:
        """Somebody does not want it."""
        for uri, shown in list(self._shown.items()):
            if shown.id == id:
                del self._shown[uri]
                self._dismissed[shown.what] = None
                for oldest in list(self._dismissed)[:-KEPT_DISMISSED]:
                    del self._dismissed[oldest]

    def closed(self, uri: str) -> None:
        self._shown.pop(uri, None)
