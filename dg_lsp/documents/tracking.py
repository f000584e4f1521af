"""Spans of documents that are being worked on, kept in place while the documents change around them."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass

from dg_lsp.documents.documents import Change, Edit


@dataclass(slots=True, kw_only=True)
class Tracked:
    """[start, end) of the document as it is now. `lost`: what is in it has changed, or nobody knows the document."""

    uri: str
    start: int
    end: int
    lost: bool = False

    def follow(self, edit: Edit) -> None:
        """Move by an edit outside of the span; one inside loses it."""
        first, last = edit.start, edit.start + len(edit.removed)
        shift = len(edit.inserted) - len(edit.removed)
        if first >= self.end and not first == self.start == self.end:
            return
        if last <= self.start and not first == self.start == self.end:
            self.start += shift
            self.end += shift
        else:
            self.lost = True


class Tracking:
    """Everything that is tracked in one editor."""

    def __init__(self) -> None:
        self._tracked: list[Tracked] = []

    @contextlib.contextmanager
    def track(self, uri: str, start: int, end: int) -> Generator[Tracked]:
        """Track a span for as long as the context lasts."""
        tracked = Tracked(uri=uri, start=start, end=end)
        self._tracked.append(tracked)
        try:
            yield tracked
        finally:
            self._tracked.remove(tracked)

    def changed(self, change: Change) -> None:
        """A document changed."""
        for tracked in self._tracked:
            if tracked.uri == change.after.uri:
                for edit in change.edits:
                    tracked.follow(edit)

    def forget(self, uri: str) -> None:
        """A document was closed, or its text is no longer known."""
        for tracked in self._tracked:
            tracked.lost |= tracked.uri == uri
