"""Which suggestions were accepted, by the changes that follow and the command that editors run after one.

An accepted suggestion, or a word or line of it, is inserted by one edit; typed text comes in single characters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from dg_lsp.documents.documents import Change, Edit
from dg_lsp.suggest.suggestions import Remainder, Suggestion

SuggestionEvent = Literal["shown", "accepted", "partial", "typed", "rejected"]
Record = Callable[[str, SuggestionEvent, int], None]
"""Called with language, event, and the number of characters that the event inserted."""


@dataclass(slots=True, kw_only=True)
class _Watched:
    suggestions: dict[int, Suggestion]
    """The suggestions shown, by id."""
    language: str
    accepted_chars: int = 0
    last_chars: int | None = None
    """The characters of the edit that completed the suggestion by typing; its command may still tell that it was
    accepted."""
    settled: bool = False


class Acceptance:
    """Watches the latest suggestions of each document; those shown together count as one."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._watched: dict[str, _Watched] = {}

    def shown(self, uri: str, language: str, remainders: Sequence[Remainder]) -> None:
        """Suggestions were sent to the editor, best first. More choices for a suggestion on display do not count
        again."""
        suggestions = {remainder.suggestion.id: remainder.suggestion for remainder in remainders}
        held = self._watched.get(uri)
        if held and remainders[0].suggestion.id in held.suggestions:
            held.suggestions |= suggestions
            return
        self.closed(uri)
        self._watched[uri] = _Watched(suggestions=suggestions, language=language)
        self._record(language, "shown", len(remainders[0].text))

    def changed(self, change: Change) -> None:
        held = self._watched.get(change.after.uri)
        if held is None or held.settled or held.last_chars is not None or not change.edits:
            return
        edit, text = change.edits[-1], change.after.text
        if any(suggestion.is_finished(text) for suggestion in held.suggestions.values()):
            held.accepted_chars += _inserted_at_once(edit)
            if held.accepted_chars:
                self._settle(held, "accepted", held.accepted_chars)
            else:
                held.last_chars = _new_chars(edit)
        elif any(
            suggestion.remainder(text, edit.start + len(edit.inserted)) for suggestion in held.suggestions.values()
        ):
            held.accepted_chars += _inserted_at_once(edit)

    def ran(self, id: int) -> None:
        """The editor ran the command of the suggestion with this id."""
        for held in self._watched.values():
            if id in held.suggestions and not held.settled:
                chars = len(held.suggestions[id].text) if held.last_chars is None else held.last_chars
                self._settle(held, "accepted", chars)

    def closed(self, uri: str) -> None:
        """A document was closed, or shows other suggestions from now on."""
        held = self._watched.pop(uri, None)
        if held and not held.settled:
            typed = held.last_chars is not None
            self._settle(
                held, "typed" if typed else "partial" if held.accepted_chars else "rejected", held.accepted_chars
            )

    def close(self) -> None:
        for uri in list(self._watched):
            self.closed(uri)

    def _settle(self, held: _Watched, event: SuggestionEvent, chars: int) -> None:
        held.settled = True
        self._record(held.language, event, chars)


def _inserted_at_once(edit: Edit) -> int:
    """Characters inserted at once; an editor's line break with indent does not count."""
    new = _new_chars(edit)
    return new if new >= 2 and not edit.inserted.isspace() else 0


def _new_chars(edit: Edit) -> int:
    return len(edit.inserted) - len(edit.removed)
