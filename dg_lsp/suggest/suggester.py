"""What to suggest at a gap: the rest of an earlier suggestion where one holds, else what the engine fills in."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from dg_lsp.backend.resident import Resident
from dg_lsp.config.configuration import Configuration
from dg_lsp.documents.documents import Change, Documents, Edit, Snapshot
from dg_lsp.documents.gap import Gap, gap_at, window
from dg_lsp.suggest.context import Surroundings
from dg_lsp.suggest.in_flight import Desk, Rhythm
from dg_lsp.suggest.insertion import is_name, redundant, typed_head
from dg_lsp.suggest.suggestions import Rest, Shelf, Suggestion
from engine.core.request import Candidate, Filled, FillRequest

INLINE, MENU = "inline", "menu"
"""Lanes: work in one does not supersede work in the other."""
INVOKED_PATIENCE = 5
"""Somebody who asked waits so many times longer."""
NEARLY = 0.9
"""Of its deadline, from which on an answer counts as cut short by it."""
EXCLUDED = "Nothing was suggested here: suggestions are off for this file, or it is excluded."
UNSURE = "Nothing was shown: the model was less sure than inline.threshold asks for. Ask for a suggestion to see it."
LATE = "Nothing was shown: there was no valid answer by the deadline (inline.deadline_ms)."
NOTHING_VALID = "Nothing was shown: no answer fitted the code around the cursor."


@dataclass(slots=True, kw_only=True)
class Counts:
    """Since the server started."""

    requests: int = 0
    without_model: int = 0
    """Answered with the rest of an earlier suggestion."""
    stale: int = 0
    """Answers dropped because the document had changed."""
    unsure: int = 0
    """Answers dropped because the model was not sure enough."""


class Suggester:
    """Suggestions for all documents of one editor.

    `may_show(snapshot)`: whether the model may see a document, as `look(uri)` found it.
    `silence(why)` is told why an automatic request showed nothing, and "" when it showed something.
    """

    def __init__(
        self,
        *,
        documents: Documents,
        configuration: Configuration,
        resident: Resident,
        may_show: Callable[[Snapshot], bool],
        look: Callable[[str], Awaitable[None]],
        silence: Callable[[str], None] = lambda why: None,
    ) -> None:
        self.counts = Counts()
        self.rhythm = Rhythm(max_delay_ms=configuration.editor.inline.max_delay_ms)
        self.desk = Desk(resident.fill, self.rhythm)
        self._documents = documents
        self._configuration = configuration
        self._resident = resident
        self._may_show = may_show
        self._look = look
        self._silence = silence
        self.surroundings = Surroundings(documents, may_show)
        self._shelves: dict[str, Shelf] = {}
        self._edits: dict[str, Edit] = {}
        self._turns: dict[str, int] = {}
        self._lanes: dict[str, str] = {}
        """Where each document's editor asked last."""
        self._ids = itertools.count(1)

    async def suggest(self, gap: Gap, *, invoked: bool, lane: str) -> list[Rest]:
        """Suggestions, best first; one at most unless somebody asked. Work in the same lane and document is superseded.

        An answer is dropped when the document changed meanwhile, or suggestions were switched off, but remembered: a
        change may lead to it.
        """
        self.counts.requests += 1
        self._lanes[gap.snapshot.uri] = lane
        work = f"{lane} {gap.snapshot.uri}"
        turn = self._turns[work] = self._turns.get(work, 0) + 1
        await self._look(gap.snapshot.uri)
        if self._turns.get(work) != turn or self._documents.get(gap.snapshot.uri) is not gap.snapshot:
            return []
        held = self._held(gap, invoked=invoked)
        if (held and not invoked) or not self._is_wanted(gap, invoked=invoked):
            self.desk.supersede(work)
            self.counts.without_model += bool(held)
            if held or not self._may_suggest(gap.snapshot):
                self._silence("" if held else EXCLUDED)
            return held[:1]
        filled = None
        if await self._is_ready(invoked=invoked) and self._turns.get(work) == turn:
            filled = await self.desk.fill(work, self._request(gap, invoked=invoked))
        found = self._shelved(gap, filled.candidates if filled else ())
        if self._documents.get(gap.snapshot.uri) is not gap.snapshot:
            self.counts.stale += filled is not None
            return []
        chosen = self._chosen(gap, held, found, invoked=invoked) if self._may_suggest(gap.snapshot) else []
        if filled is not None and not invoked:
            self._silence("" if chosen else UNSURE if found else self._why_nothing(gap, filled))
        return chosen

    def changed(self, change: Change, now_ms: float) -> None:
        """A document changed; after a suggestion was taken, the next one is started on."""
        uri = change.after.uri
        self.rhythm.key(now_ms)
        if not change.edits:
            return
        self._edits[uri] = change.edits[-1]
        finished, lane = self._shelf(uri).finished(change.after.text), self._lanes.get(uri)
        if finished and lane and self._resident.is_ready:
            gap = gap_at(change.after, finished.outcome_end)
            if self._may_suggest(change.after):
                self.desk.begin(f"{lane} {uri}", self._request(gap, invoked=False))

    def closed(self, uri: str) -> None:
        """A document was closed, or is no longer known."""
        for lane in (INLINE, MENU):
            self.desk.supersede(f"{lane} {uri}")
            self._turns.pop(f"{lane} {uri}", None)
        self.surroundings.forget(uri)
        self._shelves.pop(uri, None)
        self._edits.pop(uri, None)
        self._lanes.pop(uri, None)

    def _why_nothing(self, gap: Gap, filled: Filled) -> str:
        return LATE if filled.ms.total >= NEARLY * self._deadline_ms(gap) else NOTHING_VALID

    def _deadline_ms(self, gap: Gap) -> float:
        wanted_ms = self._configuration.settings_of(gap.snapshot.uri).inline.deadline_ms
        return self._resident.deadline_ms if wanted_ms == "auto" else wanted_ms

    def _is_wanted(self, gap: Gap, *, invoked: bool) -> bool:
        return self._may_suggest(gap.snapshot) and (invoked or not self._is_deleting(gap))

    def _may_suggest(self, snapshot: Snapshot) -> bool:
        return not self._configuration.why_off(snapshot.uri, snapshot.language) and self._may_show(snapshot)

    def _is_deleting(self, gap: Gap) -> bool:
        """Whether the last edit took characters from the token at the cursor."""
        edit = self._edits.get(gap.snapshot.uri)
        if edit is None or not edit.deletes_only or edit.start != gap.cursor or gap.selected:
            return False
        return is_name(gap.head[-1:] or " ") or is_name(gap.tail[:1] or " ")

    async def _is_ready(self, *, invoked: bool) -> bool:
        if invoked:
            return await self._resident.wait_until_ready()
        if not self._resident.is_ready:
            self._resident.warm()
        return self._resident.is_ready

    def _request(self, gap: Gap, *, invoked: bool) -> FillRequest:
        settings = self._configuration.settings_of(gap.snapshot.uri)
        self.rhythm.max_delay_ms = settings.inline.max_delay_ms
        context_tokens = settings.context.max_tokens if settings.context.enabled else 0
        prefix, suffix = window(gap)
        guess = self._shelf(gap.snapshot.uri).guess(gap.text, gap.cursor)
        return FillRequest(
            prefix=prefix,
            suffix=suffix,
            language=gap.snapshot.language,
            guess=guess if gap.ends_line else guess.partition("\n")[0],
            snippets=self.surroundings.snippets(gap.snapshot, gap.cursor, context_tokens),
            n=settings.inline.candidates if invoked else 1,
            max_tokens=settings.inline.max_tokens,
            deadline_ms=self._deadline_ms(gap) * (INVOKED_PATIENCE if invoked else 1),
            single_line=not gap.ends_line,
        )

    def _shelved(self, gap: Gap, candidates: Iterable[Candidate]) -> list[Suggestion]:
        made = (self._made(gap, candidate) for candidate in candidates)
        shelf = self._shelf(gap.snapshot.uri)
        # In reverse, so that the best one is the newest.
        return [shelf.put(held) for held in reversed([held for held in made if held.text.strip()])][::-1]

    def _made(self, gap: Gap, candidate: Candidate) -> Suggestion:
        text = candidate.text if gap.ends_line else candidate.text.partition("\n")[0].rstrip("\r")
        return Suggestion(
            id=next(self._ids),
            base=gap.text,
            start=gap.cursor - typed_head(gap.head, text),
            end=gap.cursor + redundant(text, gap.tail, gap.head),
            text=text,
            confidence=candidate.confidence,
        )

    def _held(self, gap: Gap, *, invoked: bool) -> list[Rest]:
        """Earlier suggestions that hold here. What deleting exposed is not offered again while deleting goes on."""
        if not self._may_suggest(gap.snapshot):
            return []
        rests = _fitting(gap, self._shelf(gap.snapshot.uri).rests(gap.text, gap.cursor))
        hidden = not invoked and self._is_deleting(gap)
        return [rest for rest in self._sure(gap, rests, invoked=invoked) if not (rest.reaches_back and hidden)]

    def _chosen(self, gap: Gap, held: list[Rest], found: list[Suggestion], *, invoked: bool) -> list[Rest]:
        new = _fitting(gap, (each.rest(gap.text, gap.cursor) for each in found))
        sure = self._sure(gap, new, invoked=invoked)
        self.counts.unsure += bool(new) and not sure
        unique = dict[str, Rest]()
        for rest in [*held, *sure]:
            unique.setdefault(rest.text, rest)
        limit = self._configuration.settings_of(gap.snapshot.uri).inline.candidates if invoked else 1
        return list(unique.values())[:limit]

    def _sure(self, gap: Gap, rests: Iterable[Rest], *, invoked: bool) -> list[Rest]:
        threshold = 0.0 if invoked else self._configuration.settings_of(gap.snapshot.uri).inline.threshold
        return [rest for rest in rests if rest.suggestion.confidence >= threshold]

    def _shelf(self, uri: str) -> Shelf:
        return self._shelves.setdefault(uri, Shelf())


def _fitting(gap: Gap, rests: Iterable[Rest | None]) -> list[Rest]:
    """What can be shown at a gap; behind a selected completion, only what keeps to the range that it has."""
    fitting = (rest.up_to_cursor(gap.text) if rest and gap.selected else rest for rest in rests)
    return [rest for rest in fitting if rest]
