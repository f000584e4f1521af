"""Follows the edits in a document while the engine works on a snapshot of it."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass, field

from dg_lsp.documents.documents import Change, Edit, Snapshot


@dataclass(slots=True, kw_only=True)
class Followed:
    """A snapshot and the edits since. `lost`: the document's text can't be derived from it any more."""

    snapshot: Snapshot
    edits: list[Edit] = field(default_factory=list[Edit])
    lost: bool = False

    def span_now(self, start: int, end: int) -> tuple[int, int] | None:
        """Where [start, end) of the snapshot is in the document now; None where its text changed."""
        if self.lost:
            return None
        for edit in self.edits:
            first, last = edit.start, edit.start + len(edit.removed)
            shift = len(edit.inserted) - len(edit.removed)
            # Text typed at an empty span changes it.
            at_place = first == start == end
            if first >= end and not at_place:
                continue
            if last > start or at_place:
                return None
            start, end = start + shift, end + shift
        return start, end


class Tracking:
    def __init__(self) -> None:
        self._followed: list[Followed] = []

    @contextlib.contextmanager
    def follow(self, snapshot: Snapshot) -> Generator[Followed]:
        """Follow a document from its current snapshot for as long as the context lasts."""
        followed = Followed(snapshot=snapshot)
        self._followed.append(followed)
        try:
            yield followed
        finally:
            # By identity: two may be equal.
            self._followed = [each for each in self._followed if each is not followed]

    def changed(self, change: Change) -> None:
        for followed in self._followed:
            if followed.snapshot.uri == change.after.uri:
                followed.edits += change.edits

    def forget(self, uri: str) -> None:
        for followed in self._followed:
            followed.lost |= followed.snapshot.uri == uri
