"""What became of suggestions, inferred from the changes that follow and from the command that editors run after one.

Editors take a suggestion in one edit, or a word or line of it; typing the same text by hand comes in single characters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dg_lsp.documents import Change, Edit
from dg_lsp.suggestions import Rest, Suggestion

Event = Literal["shown", "accepted", "partial", "typed", "rejected"]
Record = Callable[[str, Event, int], None]
"""Is told language, event, and how many characters the event put into the document."""


@dataclass(slots=True, kw_only=True)
class _Watched:
    suggestion: Suggestion
    language: str
    taken_chars: int = 0
    settled: bool = False


class Acceptance:
    """Watches the latest suggestion shown in each document."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._watched: dict[str, _Watched] = {}

    def shown(self, uri: str, language: str, rest: Rest) -> None:
        """An editor was given something to show."""
        held = self._watched.get(uri)
        if held and held.suggestion.id == rest.suggestion.id:
            return
        self.closed(uri)
        self._watched[uri] = _Watched(suggestion=rest.suggestion, language=language)
        self._record(language, "shown", len(rest.text))

    def changed(self, change: Change) -> None:
        """A document changed."""
        held = self._watched.get(change.after.uri)
        if held is None or held.settled or not change.edits:
            return
        edit = change.edits[-1]
        if held.suggestion.is_finished(change.after.text):
            taken_chars = held.taken_chars + _taken_at_once(edit)
            self._settle(held, "accepted" if taken_chars else "typed", taken_chars)
        elif held.suggestion.rest(change.after.text, edit.start + len(edit.inserted)):
            held.taken_chars += _taken_at_once(edit)

    def ran(self, id: int) -> None:
        """The editor ran the command of the suggestion with that number."""
        for held in self._watched.values():
            if held.suggestion.id == id and not held.settled:
                self._settle(held, "accepted", len(held.suggestion.text))

    def closed(self, uri: str) -> None:
        """A document was closed, or shows something else from now on."""
        held = self._watched.pop(uri, None)
        if held and not held.settled:
            self._settle(held, "partial" if held.taken_chars else "rejected", held.taken_chars)

    def close(self) -> None:
        """The session ends."""
        for uri in list(self._watched):
            self.closed(uri)

    def _settle(self, held: _Watched, event: Event, chars: int) -> None:
        held.settled = True
        self._record(held.language, event, chars)


def _taken_at_once(edit: Edit) -> int:
    """How many characters came in one go; an editor's own line break with indentation does not count."""
    new = len(edit.inserted) - len(edit.removed)
    return new if new >= 2 and not edit.inserted.isspace() else 0
