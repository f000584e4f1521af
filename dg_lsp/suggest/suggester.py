"""Chooses what to suggest at a gap: the rest of an earlier suggestion if one still fits, else a fill by the engine."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from dg_lsp.backend.resident import Resident
from dg_lsp.config.settings import UNFITTED_THRESHOLD
from dg_lsp.documents.documents import Change, Documents, Edit
from dg_lsp.documents.gap import CursorGap, gap_at, text_window
from dg_lsp.suggest.in_flight import InFlight
from dg_lsp.suggest.insertion import typed_head
from dg_lsp.suggest.suggestions import Remainder, Suggestion, SuggestionCache
from dg_lsp.workspace.context import ContextSelector
from dg_lsp.workspace.index import WorkspaceIndex
from engine.common.names import is_name_character
from engine.common.request import Candidate, Filled, FillRequest, Snippet, WorkspaceMatch

INLINE, MENU = "inline", "menu"
"""Lanes: a request in one does not supersede one in the other."""
INVOKED_DEADLINE_FACTOR = 5
"""The deadline of a suggestion that the user requested is this many times longer."""
NEARLY = 0.9
"""From this share of its deadline on, an answer counts as late."""
_Matches = tuple[tuple[WorkspaceMatch, ...], tuple[Snippet, ...]]
"""Workspace matches, and definitions that the gap may need."""
UNSURE = "Nothing was shown: the model's confidence was below inline.threshold. Request a suggestion to see it."
LATE = "Nothing was shown: there was no valid answer by the deadline (inline.deadline_ms)."
NOTHING_VALID = "Nothing was shown: no answer fitted the code around the cursor."


@dataclass(slots=True, kw_only=True)
class Counts:
    """Counts since the server started."""

    requests: int = 0
    without_model: int = 0
    """Answered with the rest of an earlier suggestion."""
    stale: int = 0
    """Answers dropped because the document had changed."""
    unsure: int = 0
    """Answers dropped because the confidence was below the threshold."""


class Suggester:
    """Suggestions for all documents of one editor.

    `on_outcome(why, origin)` is called after each automatic request: `why` it showed nothing, or "" where it showed
    something; `origin`: where a workspace match is from, "" for the model's own text.
    """

    def __init__(
        self,
        *,
        documents: Documents,
        resident: Resident,
        context: ContextSelector,
        index: WorkspaceIndex,
        in_flight: InFlight,
        on_outcome: Callable[[str, str], None] = lambda why, origin: None,
    ) -> None:
        self.counts = Counts()
        self._documents = documents
        self._resident = resident
        self._context = context
        self._index = index
        self._in_flight = in_flight
        self._on_outcome = on_outcome
        self._caches: dict[str, SuggestionCache] = {}
        self._fitted = UNFITTED_THRESHOLD
        """The model's fitted threshold, from its latest answer."""
        self._edits: dict[str, Edit] = {}
        self._lanes: dict[str, str] = {}
        """The lane of each document's latest request."""
        self._expected: dict[str, asyncio.Task[Filled | None]] = {}
        """Requests made ahead of the editor's, by document."""
        self._ids = itertools.count(1)

    async def suggest(self, gap: CursorGap, *, invoked: bool, lane: str) -> list[Remainder]:
        """Suggestions, best first; at most one unless `invoked` by the user. Supersedes work in the same lane and
        document.

        An answer is dropped if the document changed meanwhile or suggestions were switched off. It is kept in the
        cache, as typing may lead to it.
        """
        uri, off = gap.snapshot.uri, gap.snapshot.policy.off
        self.counts.requests += 1
        self._lanes[uri] = lane
        held = [] if off else self._held(gap, invoked=invoked)
        if off or (not invoked and (held or self._is_deleting(gap))):
            self._in_flight.supersede(f"{lane} {uri}")
            self.counts.without_model += bool(held)
            if (held or off) and not invoked:
                self._on_outcome(off, _origin(held))
            return held[:1]
        make = partial(self._request, gap, invoked=invoked)
        filled = await self._in_flight.fill(f"{lane} {uri}", partial(self._found, gap), make, load=invoked)
        if filled is not None:
            self._fitted = UNFITTED_THRESHOLD if filled.threshold is None else filled.threshold
        now = self._documents.get(uri)
        found = self._remembered(gap, filled.candidates) if filled and now else []
        if now is None or not now.is_as(gap.snapshot):
            self.counts.stale += filled is not None
            return []
        chosen = [] if now.policy.off else self._chosen(gap, held, found, invoked=invoked)
        if filled is not None and not invoked:
            why = "" if chosen else UNSURE if found else self._why_nothing(gap, filled)
            self._on_outcome(why, _origin(chosen))
        return chosen

    def changed(self, change: Change) -> None:
        """A document changed; once a suggestion is accepted, the next one is requested at once."""
        uri = change.after.uri
        if not change.edits:
            return
        self.rearranged(each for each in self._documents.notebooks.cells(change.after.notebook) if each != uri)
        self._edits[uri] = change.edits[-1]
        finished, lane = self._cache(uri).finished(change.after.text), self._lanes.get(uri)
        if finished and lane and self._resident.is_ready and not change.after.policy.off:
            gap = gap_at(change.after, finished.outcome_end)
            make = partial(self._request, gap, invoked=False)
            work = self._in_flight.fill(f"{lane} {uri}", partial(self._found, gap), make)
            self._expected[uri] = asyncio.create_task(work)

    def rearranged(self, cells: Iterable[str]) -> None:
        """The text around these cells changed: drop suggestions in them."""
        for uri in cells:
            self._caches.pop(uri, None)

    def closed(self, uri: str) -> None:
        for lane in (INLINE, MENU):
            self._in_flight.supersede(f"{lane} {uri}")
        self._expected.pop(uri, None)
        self._caches.pop(uri, None)
        self._edits.pop(uri, None)
        self._lanes.pop(uri, None)

    def _why_nothing(self, gap: CursorGap, filled: Filled) -> str:
        return LATE if filled.ms.total >= NEARLY * self._deadline_ms(gap) else NOTHING_VALID

    def _deadline_ms(self, gap: CursorGap) -> float:
        return gap.snapshot.policy.settings.inline.deadline_or(self._resident.deadline_ms)

    def _took_back(self, gap: CursorGap) -> bool:
        """Whether the last edit deleted text after the cursor."""
        edit = self._edits.get(gap.snapshot.uri)
        return edit is not None and edit.takes_back and edit.end == gap.cursor and not gap.selected

    def _is_deleting(self, gap: CursorGap) -> bool:
        """Whether the last edit deleted characters of the token at the cursor."""
        at_token = is_name_character(gap.head[-1:] or " ") or is_name_character(gap.tail[:1] or " ")
        return at_token and self._took_back(gap)

    async def _found(self, gap: CursorGap) -> _Matches:
        return await self._index.matches(gap), await self._index.definitions(gap)

    def _request(self, gap: CursorGap, found: _Matches, *, invoked: bool) -> FillRequest:
        matches, definitions = found
        settings = gap.snapshot.policy.settings
        self._in_flight.debounce.max_delay_ms = settings.inline.max_delay_ms
        prefix, suffix = text_window(gap)
        guess = self._cache(gap.snapshot.uri).guess(gap.text, gap.cursor)
        return FillRequest(
            prefix=prefix,
            suffix=suffix,
            language=gap.snapshot.content_language,
            guess=gap.within(guess),
            snippets=(*definitions, *self._context.snippets(gap.snapshot, gap.cursor, definitions)),
            edits=self._context.edits(gap.snapshot, gap.cursor),
            n=_most(gap, invoked=invoked),
            max_tokens=settings.inline.max_tokens,
            deadline_ms=self._deadline_ms(gap) * (INVOKED_DEADLINE_FACTOR if invoked else 1),
            single_line=not gap.ends_line,
            may_swallow=True,
            workspace_matches=matches,
            folder=gap.snapshot.folder,
        )

    def _remembered(self, gap: CursorGap, candidates: Iterable[Candidate]) -> list[Suggestion]:
        made = (self._made(gap, candidate) for candidate in candidates)
        cache = self._cache(gap.snapshot.uri)
        # Reversed, so that the best one is the newest.
        return [cache.put(held) for held in reversed([held for held in made if held.text.strip()])][::-1]

    def _made(self, gap: CursorGap, candidate: Candidate) -> Suggestion:
        text = gap.within(candidate.text)
        return Suggestion(
            id=next(self._ids),
            base=gap.text,
            start=gap.cursor - typed_head(gap.head, text),
            end=gap.cursor + candidate.swallowed,
            text=text,
            confidence=candidate.confidence,
            origin=f"from {candidate.origin}" if candidate.origin else "",
        )

    def _held(self, gap: CursorGap, *, invoked: bool) -> list[Remainder]:
        """Earlier suggestions that still fit here. Text that was just deleted is not suggested again."""
        remainders = _fitting(gap, self._cache(gap.snapshot.uri).remainders(gap.text, gap.cursor))
        hidden = not invoked and self._took_back(gap)
        sure = self._sure(gap, remainders, invoked=invoked)
        return [remainder for remainder in sure if not (remainder.reaches_back and hidden)]

    def _chosen(
        self, gap: CursorGap, held: list[Remainder], found: list[Suggestion], *, invoked: bool
    ) -> list[Remainder]:
        new = _fitting(gap, (each.remainder(gap.text, gap.cursor) for each in found))
        sure = self._sure(gap, new, invoked=invoked)
        self.counts.unsure += bool(new) and not sure
        unique = dict[str, Remainder]()
        for remainder in [*held, *sure]:
            unique.setdefault(remainder.text, remainder)
        return list(unique.values())[: _most(gap, invoked=invoked)]

    def _sure(self, gap: CursorGap, remainders: Iterable[Remainder], *, invoked: bool) -> list[Remainder]:
        wanted = gap.snapshot.policy.settings.inline.threshold
        threshold = 0.0 if invoked else self._fitted if wanted == "auto" else wanted
        return [remainder for remainder in remainders if remainder.suggestion.confidence >= threshold]

    def _cache(self, uri: str) -> SuggestionCache:
        return self._caches.setdefault(uri, SuggestionCache())


def _most(gap: CursorGap, *, invoked: bool) -> int:
    """How many suggestions are wanted."""
    return gap.snapshot.policy.settings.inline.candidates if invoked else 1


def _origin(shown: Sequence[Remainder]) -> str:
    return shown[0].suggestion.origin if shown else ""


def _fitting(gap: CursorGap, remainders: Iterable[Remainder | None]) -> list[Remainder]:
    """The remainders that can be shown at a gap; after a selected completion, only those within its range."""
    fitting = (each.up_to_cursor(gap.text) if each and gap.selected else each for each in remainders)
    return [each for each in fitting if each]
