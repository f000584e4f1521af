"""The next edit: calls to change after a signature changed, and further places of the newest replacement in a file.

Text and tree give the places (engine.fill.replays). Their syntax is checked, and the model scores the new line against
the old one in its surroundings. A place is shown only if the evidence is strong: usually nothing follows an edit. Calls
are found by the tree (engine.syntax.signatures), and only checked.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Sequence

from msgspec import structs

from engine.common.request import Candidate, FillRequest, RecentEdit, Syntax, Timings
from engine.fill.deadline import Deadline
from engine.fill.executor import Filling, Step, Work, filled_by
from engine.fill.gap_opening import open_gap
from engine.fill.line_ends import in_line_feeds
from engine.fill.replays import Replay, replaces, replays, resizes, with_roles
from engine.fill.validation import validated_fills
from engine.models.base import PIECE, Model
from engine.models.logits import Logits
from engine.syntax.languages import language_of
from engine.syntax.questions import CallsToChange, Roles, RolesOf, reply_to
from engine.syntax.signatures import SpanEdit

LIKELY = 0.9
"""Least log-odds of a place that is shown: 98% of the development edits that nothing follows show nothing
(cross-validated by package)."""
_READ, _NATS = 0.15, 10.0
"""Log-odds for each nat by which the new line scores higher than the old one, and the most nats that count."""
_TRIED = 8
"""Most lines that the model scores, the likeliest places first, within the deadline."""
_CONTEXT = PIECE // 2
"""Tokens around a place that a coder reads."""
_CALL = 3.0
"""Log-odds that a call follows its signature. Not fitted, as there are few: of 4,585 changed blocks of the reserved
packages 5 led to 11 calls, 10 of which the next release has."""
_ROLES_MS = 100.0
LOOKED_BACK = 4
"""Latest edits of a file that are searched for the newest replacement."""


@in_line_feeds
def next_edit(model: Model, request: FillRequest) -> Filling:
    """Candidates for `request.n` places at most that do not overlap, the likeliest first; each `replaces` a span of
    `prefix + suffix`."""
    began = time.perf_counter()
    deadline = Deadline(request.deadline_ms, began, time.perf_counter)
    text = request.prefix + request.suffix
    candidates: list[Candidate] = []
    easier: dict[tuple[int, str], float] = {}
    """By what lines would be, and where they begin."""
    for call in (yield from _calls(request, text, deadline))[: request.n]:
        if syntax := (yield from _checked(request, text, call, deadline)):
            candidates.append(_candidate(model, call, _CALL, syntax))
    places = yield from _places(request, text, deadline)
    for place in places:
        if len(candidates) == request.n or place.likely + _READ * _NATS < LIKELY or deadline.step_is_done():
            break
        taken = (each.replaces or (0, 0) for each in candidates)
        if any(place.start < end and start < place.end for start, end in taken):
            continue
        likely = place.likely
        # A place that no score could make likely is not scored.
        if likely - _READ * _NATS < LIKELY:
            start, end, new = _replayed(text, place, places)
            if (start, new) not in easier:
                if len(easier) == _TRIED:
                    continue
                easier[start, new] = yield from _easier(model, request, text, (start, end), new, deadline)
                yield None
            likely += _READ * max(-_NATS, min(easier[start, new], _NATS))
        if likely >= LIKELY and (syntax := (yield from _checked(request, text, place, deadline))):
            candidates.append(_candidate(model, place, likely, syntax))
    return filled_by(model, candidates, forwards=0, ms=Timings(total=(time.perf_counter() - began) * 1000))


def _calls(request: FillRequest, text: str, deadline: Deadline) -> Work[Sequence[SpanEdit]]:
    """Calls to change after the newest edit of a signature, without those that were changed since."""
    language = language_of(request.language)
    here = [(each, each.start) for each in request.edits if each.start is not None]
    for edit, start in reversed(here):
        if language and resizes(edit.old, edit.new):
            question = CallsToChange(
                before=text[:start] + edit.old + text[start + len(edit.new) :],
                text=text,
                language=language,
                start=start,
            )
            found = yield from reply_to(question, _ROLES_MS, deadline.left_ms())
            if found and found.edits:
                return found.edits
    return ()


def _places(request: FillRequest, text: str, deadline: Deadline) -> Work[list[Replay]]:
    """Further places of the newest replacement in this file; lines inserted since do not matter. Edits of other files
    are not used: in development packages they predicted nothing."""
    here = [(each, each.start) for each in request.edits if each.start is not None]
    lately = reversed(here[-LOOKED_BACK:])
    newest, at = next(((each, start) for each, start in lately if replaces(each.old, each.new)), (None, 0))
    if newest is None:
        return []
    mine = [(start, start + len(each.new)) for each, start in here]
    earlier = [(each.old, each.new) for each in request.edits if each is not newest]
    found = replays(text, newest.old, newest.new, mine, len(request.prefix), earlier)
    return (yield from _with_roles(request, text, newest, at, found, deadline)) if found else []


def _with_roles(
    request: FillRequest, text: str, edit: RecentEdit, start: int, found: list[Replay], deadline: Deadline
) -> Work[list[Replay]]:
    """Places re-weighted by their roles in the code, if these are known."""
    language = language_of(request.language)
    if language is None:
        return found
    before = text[:start] + edit.old + text[start + len(edit.new) :]
    edited = {each.edit.start: each.edit for each in found}
    spans = tuple((start + each.start, start + each.start + len(each.old)) for each in edited.values())
    places = tuple((each.start, each.end) for each in found)
    said: list[Roles] = []
    for document, wanted_of in ((before, spans), (text, places)):
        roles = yield from reply_to(
            RolesOf(text=document, language=language, spans=wanted_of), _ROLES_MS, deadline.left_ms()
        )
        if roles is None:
            return found
        said.append(roles)
    return with_roles(found, said[1].spans, dict(zip(edited, said[0].spans, strict=True)))


def _candidate(model: Model, place: Replay | SpanEdit, likely: float, syntax: Syntax) -> Candidate:
    return Candidate(
        text=place.new,
        tokens=len(model.tokenize(place.new)),
        confidence=1 / (1 + math.exp(-likely)),
        score=likely,
        syntax=syntax,
        replaces=(place.start, place.end),
    )


def _replayed(text: str, place: Replay, places: Sequence[Replay]) -> tuple[int, int, str]:
    """The lines of a place, [start, end), and their new text. Other spots of these lines that the same edit may change
    are changed too: half a change reads like a mistake."""
    start = text.rfind("\n", 0, place.start) + 1
    stop = text.find("\n", place.end)
    end = stop if stop >= 0 else len(text)
    alike = [each for each in places if each.edit is place.edit and start <= each.start and each.end <= end]
    new, at = "", start
    for each in sorted(alike, key=lambda each: each.start):
        if each.likely + _READ * _NATS >= LIKELY:
            new += text[at : each.start] + each.new
            at = each.end
    return start, end, new + text[at:end]


def _easier(
    model: Model, request: FillRequest, text: str, span: tuple[int, int], new: str, deadline: Deadline
) -> Generator[Step, Logits, float]:
    """Nats by which some lines score higher as `new` than as they are."""
    start, end = span
    lines = structs.replace(request, task="fill", prefix=text[:start], suffix=text[end:])
    # A coder's context begins with what follows a place, so no place finds another one's encoded: with little context,
    # one pass reads it.
    prompt = model.prompt(lines, _CONTEXT if model.fills_causally else None)
    gap = open_gap(model, lines, deadline, prompt=prompt)
    ids = [model.tokenize(gap.prompt.head + line) for line in (new, text[start:end])]
    after, before = yield from gap.score(ids)
    return sum(after) - sum(before)


def _checked(request: FillRequest, text: str, place: Replay | SpanEdit, deadline: Deadline) -> Work[Syntax | None]:
    """The state of the syntax with it; None if it adds a problem."""
    old = text[place.start : place.end]
    edit = structs.replace(request, task="rewrite", prefix=text[: place.start], old=old, suffix=text[place.end :])
    (found,) = yield from validated_fills(edit, [place.new], deadline)
    if found is None or (found.verdict and not found.verdict.is_clean):
        return None
    return "ok" if found.verdict else "unchecked"
