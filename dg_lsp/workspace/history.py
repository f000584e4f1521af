"""Recent edits in all documents, as a person sees them: one for each place, with its old and new lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from dg_lsp.config.exclusion import name_of
from dg_lsp.documents.documents import Change, Documents, Edit, Snapshot
from dg_lsp.documents.positions import Lines
from engine.common.request import RecentEdit
from engine.common.sequences import common_ends

KEPT_PLACES = 16
KEPT_CHARS = 2000
"""A longer place, before or after, is not kept: it was pasted or generated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Edited lines [start, end) of a document, without the last line break, and the text before the edits."""

    start: int
    end: int
    old: str
    turn: int
    """Increases with every edit in any document."""


@dataclass(slots=True, kw_only=True)
class _Edited:
    lines: Lines
    """The text that `places` are offsets of."""
    places: list[_Place] = field(default_factory=list[_Place])


class EditHistory:
    """Recent edits of all documents. A document that was reopened or lost is noticed by its text. Whether the model may
    see a file is checked only in `recent`: right after opening it is not known."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._edited: dict[str, _Edited] = {}
        self._turn = 0

    def changed(self, change: Change) -> None:
        held = self._edited.pop(change.after.uri, None)
        if held is None or held.lines is not change.before.lines:
            held = _Edited(lines=change.before.lines)
        for index, edit in enumerate(change.edits, 1):
            end = edit.start + len(edit.removed)
            last = index == len(change.edits)
            after = change.after.lines if last else held.lines.replace(edit.start, end, edit.inserted)
            self._turn += 1
            held.places = [*_merged(held, edit, after, self._turn)]
            held.lines = after
        self._edited[change.after.uri] = held
        self._drop_oldest()
        # Drop documents without places: only their text would be kept.
        self._edited = {uri: each for uri, each in self._edited.items() if each.places}

    def recent(self, snapshot: Snapshot, cursor: int | None) -> tuple[RecentEdit, ...]:
        """Recent edits, oldest first. Those on the cursor's line are left out, since they change with each key and
        would invalidate the context after them; None: all, with offsets for those in `snapshot`. Edits of other
        documents are included only if the settings allow their text."""
        lines = snapshot.lines
        first, last = (-1, -1) if cursor is None else (lines.line_start(cursor), lines.line_end(cursor))
        found: list[tuple[int, RecentEdit]] = []
        for uri, held in self._edited.items():
            now, here = self._documents.known(uri), uri == snapshot.uri
            if now is None or now.lines is not held.lines or not now.policy.may_show:
                continue
            if not (here or snapshot.policy.settings.context.enabled):
                continue
            path = PurePosixPath(name_of(now.file_uri)).name
            for place in held.places:
                if here and place.start <= last and place.end >= first:
                    continue
                skipped, old, new = _differing_lines(place.old, held.lines.text[place.start : place.end])
                if old or new:
                    start = place.start + skipped if here and cursor is None else None
                    found.append((place.turn, RecentEdit(path=path, old=old, new=new, start=start)))
        return tuple(edit for _, edit in sorted(found, key=lambda each: each[0]))

    def _drop_oldest(self) -> None:
        turns = sorted(place.turn for held in self._edited.values() for place in held.places)
        if len(turns) > KEPT_PLACES:
            for held in self._edited.values():
                held.places = [place for place in held.places if place.turn >= turns[-KEPT_PLACES]]


def _merged(held: _Edited, edit: Edit, after: Lines, turn: int) -> Iterator[_Place]:
    """The places after `edit` has turned the text into `after`: those whose lines it touches are merged with it."""
    before, edit_end = held.lines, edit.start + len(edit.removed)
    # An edit between a CR and its LF ends after its line.
    first, last = before.line_start(edit.start), max(before.line_end(edit_end), edit_end)
    shift = len(edit.inserted) - len(edit.removed)
    touched: list[_Place] = []
    for place in held.places:
        if place.start <= last and place.end >= first:
            touched.append(place)
        else:
            by = shift if place.start > last else 0
            yield replace(place, start=place.start + by, end=place.end + by)
    start = min([first, *(place.start for place in touched)])
    end = max([last, *(place.end for place in touched)])
    old, at = "", start
    for place in sorted(touched, key=lambda place: place.start):
        old += before.text[at : place.start] + place.old
        at = place.end
    old += before.text[at:end]
    new = after.text[start : end + shift]
    if new != old and max(len(new), len(old)) <= KEPT_CHARS:
        yield _Place(start=start, end=end + shift, old=old, turn=turn)


def _differing_lines(old: str, new: str) -> tuple[int, str, str]:
    """The length of the common first lines, and old and new text without common first and last lines."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    head, tail = common_ends(before, after)
    kept = ("".join(lines[head : len(lines) - tail]) for lines in (before, after))
    was, now = (text.rstrip("\r\n") for text in kept)
    return sum(map(len, before[:head])), was, now
