"""The next edit: where else the latest edit belongs, as the engine finds it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dg_lsp.backend.resident import Resident
from dg_lsp.documents.diffs import Replacement
from dg_lsp.documents.documents import Change, Documents, Edit, Snapshot
from dg_lsp.documents.positions import Lines
from dg_lsp.workspace.history import EditHistory
from engine.common.request import FillRequest

LARGEST_CHARS = 1_000_000
KEPT_DISMISSED = 64
MOST_PLACES = 16
"""Most places that one next edit may hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextEdit:
    """A next edit in `snapshot`. `id` is unique in the session."""

    id: int
    snapshot: Snapshot
    places: tuple[Replacement, ...]
    """Places that do not overlap: the first one to show, then the others, the likeliest first."""


@dataclass(slots=True, kw_only=True)
class _Shown:
    id: int
    lines: Lines
    """The text that `places` are offsets of."""
    places: Sequence[Replacement]
    """Places that the user has not decided about."""
    promised: bool = False
    """Whether all edits since they were shown accepted other places of the same next edit."""


class NextEdits:
    """Next edits of all documents. A place that was dismissed, or where the user typed something else, is not proposed
    again. Once a place is accepted, the next request returns the others, for clients that show one at a time."""

    def __init__(self, *, documents: Documents, resident: Resident, history: EditHistory) -> None:
        self._documents = documents
        self._resident = resident
        self._history = history
        self._ids = itertools.count(1)
        self._shown: dict[str, _Shown] = {}
        """The latest next edit of each document."""
        self._dismissed: dict[tuple[str, str, str], None] = {}
        """Dismissed places, newest last."""

    async def at(self, snapshot: Snapshot, cursor: int) -> NextEdit | None:
        """The next edit for a cursor; None where there is none, or the document changed meanwhile."""
        edits = self._history.recent(snapshot, None)
        if snapshot.policy.off or not edits or len(snapshot.text) > LARGEST_CHARS:
            return None
        shown = self._shown.get(snapshot.uri)
        if shown and shown.promised and shown.lines is snapshot.lines:
            return self._offered(snapshot, shown.places, promised=True)
        code = snapshot.as_code(snapshot.text)
        request = FillRequest(
            task="next",
            prefix=code[:cursor],
            suffix=code[cursor:],
            language=snapshot.content_language,
            edits=edits,
            n=MOST_PLACES,
            folder=snapshot.folder,
            deadline_ms=snapshot.policy.settings.inline.deadline_or(self._resident.deadline_ms),
        )
        filled = await self._resident.fill(request, f"next {snapshot.uri}")
        now = self._documents.get(snapshot.uri)
        if filled is None or now is None or now.lines is not snapshot.lines or now.policy.off:
            return None
        offered = [
            Replacement(
                start=each.replaces[0],
                end=each.replaces[1],
                text=snapshot.as_written(each.text, snapshot.text[slice(*each.replaces)]),
            )
            for each in filled.candidates
            if each.replaces
        ]
        places = [each for each in offered if _what(snapshot.uri, snapshot.lines, each) not in self._dismissed]
        return self._offered(snapshot, places) if places else None

    def changed(self, change: Change) -> None:
        """Take a change as accepting shown places, one or all of them, or as rejecting those that it touches."""
        uri = change.after.uri
        held = self._shown.pop(uri, None)
        if held is None or held.lines is not change.before.lines:
            return
        places = list(held.places)
        if change.after.text != _applied(change.before.text, places):
            lines, accepts = held.lines, True
            for edit in change.edits:
                accepts = accepts and any(_is_accepted(lines, place, edit) for place in places)
                places = self._left(uri, lines, places, edit)
                lines = lines.replace(edit.start, edit.start + len(edit.removed), edit.inserted)
            self._shown[uri] = replace(held, lines=change.after.lines, places=places, promised=accepts and bool(places))

    def dismiss(self, id: int) -> None:
        """The user dismissed a next edit."""
        for uri, shown in list(self._shown.items()):
            if shown.id == id:
                del self._shown[uri]
                for place in shown.places:
                    self._never_again(uri, shown.lines, place)

    def closed(self, uri: str) -> None:
        self._shown.pop(uri, None)

    def _offered(self, snapshot: Snapshot, places: Sequence[Replacement], *, promised: bool = False) -> NextEdit:
        found = NextEdit(id=next(self._ids), snapshot=snapshot, places=tuple(places))
        self._shown[snapshot.uri] = _Shown(id=found.id, lines=snapshot.lines, places=places, promised=promised)
        return found

    def _left(self, uri: str, lines: Lines, places: Sequence[Replacement], edit: Edit) -> list[Replacement]:
        """The places that an edit of `lines` leaves undecided, with their offsets after the edit."""
        end, shift = edit.start + len(edit.removed), len(edit.inserted) - len(edit.removed)
        left: list[Replacement] = []
        for place in places:
            if end < place.start:
                left.append(replace(place, start=place.start + shift, end=place.end + shift))
            elif edit.start > place.end:
                left.append(place)
            elif not _is_accepted(lines, place, edit):
                self._never_again(uri, lines, place)
        return left

    def _never_again(self, uri: str, lines: Lines, place: Replacement) -> None:
        self._dismissed[_what(uri, lines, place)] = None
        for oldest in list(self._dismissed)[:-KEPT_DISMISSED]:
            del self._dismissed[oldest]


def _is_accepted(lines: Lines, place: Replacement, edit: Edit) -> bool:
    """Whether an edit does just what a place proposes."""
    end = edit.start + len(edit.removed)
    now = lines.text[place.start : edit.start] + edit.inserted + lines.text[end : place.end]
    return place.start <= edit.start and end <= place.end and now == place.text


def _what(uri: str, lines: Lines, place: Replacement) -> tuple[str, str, str]:
    """A key of an edit by its line's text, so that it is recognized wherever the line moves."""
    return uri, lines.text[lines.line_start(place.start) : lines.line_end(place.end)], place.text


def _applied(text: str, places: Sequence[Replacement]) -> str:
    for place in sorted(places, key=lambda place: -place.start):
        text = text[: place.start] + place.text + text[place.end :]
    return text
