"""Edits: the requests to the engine, and what of its answers still fits the document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from dg_lsp.backend.resident import Resident
from dg_lsp.documents.diffs import Replacement, replacements
from dg_lsp.documents.documents import Documents, Snapshot
from dg_lsp.documents.gap import gap_at, text_window
from dg_lsp.documents.tracking import Followed, Tracking
from dg_lsp.edits.rewrites import TITLES
from dg_lsp.workspace.context import ContextSelector
from engine.common.analysis import Placeholder
from engine.common.newlines import emptied
from engine.common.request import Candidate, Draft, Filled, FillRequest

CHANGED = "The text was changed while the model worked on it, so the edit was dropped: try again."
UNCHANGED = "The model would leave the selection as it is: say more exactly what to change."
REWRITE_DEADLINE_MS = 120_000.0
"""For a rewrite; what can be offered by then is."""
LARGEST_CHARS = 500_000
"""Longer documents are not checked for syntax errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRequest:
    """A request to replace [start, end) of a document by `before`, the answer to `request`, and `after`."""

    snapshot: Snapshot
    start: int
    end: int
    request: FillRequest
    title: str
    nothing: str
    """The message where there is no answer."""
    before: str = ""
    after: str = ""
    refused: str | None = None
    """A replacement that the user has rejected; it is not proposed again."""
    places: tuple[Placeholder, ...] = ()
    """Placeholders in the span, in order. Each is filled with the earlier ones filled in, the rest stays. Empty: the
    span is one gap."""

    def written(self, answer: str) -> str:
        """The replacement of the span."""
        text, start, end = self.snapshot.text, self.start, self.end
        if not answer and self.request.task == "rewrite":
            return emptied(text[:start], self.before + self.after, text[end:])
        return self.snapshot.as_written(self.before + answer + self.after, text[start:end])


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One version of an edit, for the document as it is now."""

    text: str
    """The replacement of the span."""
    candidate: Candidate
    replacements: tuple[Replacement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EditOutcome:
    snapshot: Snapshot | None = None
    """The document that the proposals apply to."""
    proposals: tuple[Proposal, ...] = ()
    message: str = ""
    """A sentence: why there is no proposal, or what was ignored; may be empty."""
    model: str = ""


class Edits:
    def __init__(self, *, documents: Documents, resident: Resident, context: ContextSelector) -> None:
        self.tracking = Tracking()
        self._documents = documents
        self._resident = resident
        self._context = context

    async def ask(self, edit: EditRequest, on_draft: Callable[[Draft], None] | None = None) -> Filled:
        """Request an edit from the engine. A newer edit for the same document replaces it. Raises EngineFailure."""
        if edit.places:
            return await self._in_turn(edit)
        return await self._resident.edit(self._request(edit), f"edit {edit.snapshot.uri}", _around(edit, on_draft))

    def outcome(self, edit: EditRequest, followed: Followed, filled: Filled) -> EditOutcome:
        """The answer applied to the document as it is now; nothing may be awaited between this and its use."""
        now, span = self._documents.get(edit.snapshot.uri), followed.span_now(edit.start, edit.end)
        if now is None or span is None:
            return EditOutcome(snapshot=edit.snapshot, message=CHANGED)
        proposals = [_proposal(edit, span[0], candidate) for candidate in filled.candidates]
        useful = tuple(each for each in proposals if each.replacements and each.text != edit.refused)
        return EditOutcome(
            snapshot=now, proposals=useful, message=self._message(edit, useful, filled), model=filled.model
        )

    async def _in_turn(self, edit: EditRequest) -> Filled:
        now, shift, answers, best = edit.snapshot, 0, list[Filled](), list[Candidate]()
        for each in edit.places:
            place = structs.replace(each, start=each.start + shift, end=each.end + shift)
            part = placeholder_request(now, place, edit.request.max_tokens)
            answers.append(await self.ask(part))
            if candidates := answers[-1].candidates:
                best.append(candidates[0])
                new = part.written(candidates[0].text)
                now = replace(now, lines=now.lines.replace(place.start, place.end, new))
                shift += len(new) - (place.end - place.start)
        doubtful = next((each for each in best if each.syntax != "ok"), None)
        whole = Candidate(
            text=now.as_code(now.text[edit.start : edit.end + shift]),
            tokens=sum(each.tokens for each in best),
            # As sure as the least sure of them.
            confidence=min((each.confidence for each in best), default=0.0),
            score=sum(each.score for each in best),
            syntax=doubtful.syntax if doubtful else "ok",
        )
        return structs.replace(answers[-1], candidates=(whole,) if best else ())

    def _request(self, edit: EditRequest) -> FillRequest:
        return structs.replace(
            edit.request,
            language=edit.snapshot.content_language,
            snippets=self._context.snippets(edit.snapshot, edit.start),
            edits=self._context.edits(edit.snapshot, edit.start),
            folder=edit.snapshot.folder,
        )

    def _message(self, edit: EditRequest, useful: Sequence[Proposal], filled: Filled) -> str:
        if not useful:
            same = edit.request.task == "rewrite" and any(each.text == edit.request.old for each in filled.candidates)
            return UNCHANGED if same and edit.refused is None else edit.nothing
        if edit.request.instruction and self._resident.instructions is False:
            return f"The model {filled.model} follows no instructions: yours was ignored."
        return ""


def rewrite_request(
    snapshot: Snapshot,
    start: int,
    end: int,
    *,
    instruction: str = "",
    strength: float = 0.6,
    n: int = 1,
    keep: Sequence[tuple[int, int]] = (),
    shown: str | None = None,
) -> EditRequest | None:
    """A request to rewrite a selection without its blank ends; None where it is blank. `shown`: an earlier proposal,
    which is rewritten instead and not proposed again. `keep`: spans that stay, with offsets of the document with
    `shown` in it."""
    selected = snapshot.text[start:end] if shown is None else shown
    old = selected.strip()
    if not old:
        return None
    lead = len(selected) - len(selected.lstrip())
    before, after = selected[:lead], selected[lead + len(old) :]
    first, last = start + lead, start + lead + len(old)
    spans = [(max(low, first) - first, min(high, last) - first) for low, high in keep if low < last and high > first]
    return EditRequest(
        snapshot=snapshot,
        start=start,
        end=end,
        before=before,
        after=after,
        refused=shown,
        request=FillRequest(
            task="rewrite",
            prefix=text_window(gap_at(snapshot, start))[0] + snapshot.as_code(before),
            old=snapshot.as_code(old),
            suffix=snapshot.as_code(after) + text_window(gap_at(snapshot, end))[1],
            instruction=instruction,
            strength=strength,
            keep=tuple(spans),
            n=n,
            deadline_ms=REWRITE_DEADLINE_MS,
        ),
        title="Rewriting the selection",
        nothing="The model found no rewrite of the selection without new syntax problems."
        if shown is None
        else "The model found no other rewrite without new syntax problems.",
    )


def placeholder_request(snapshot: Snapshot, place: Placeholder, max_tokens: int) -> EditRequest:
    """A request to fill in one placeholder."""
    before = text_window(gap_at(snapshot, place.start))[0] + place.before
    after = place.after + text_window(gap_at(snapshot, place.end))[1]
    old = "" if place.before else snapshot.as_code(snapshot.text[place.start : place.end])
    return EditRequest(
        snapshot=snapshot,
        start=place.start,
        end=place.end,
        before=place.before,
        after=place.after,
        request=FillRequest(
            prefix=before,
            old=old,
            suffix=after,
            max_tokens=max_tokens,
            single_line=place.single_line,
        ),
        title=TITLES[place.kind],
        nothing="The model found nothing to fill in here.",
    )


def placeholders_request(snapshot: Snapshot, places: Sequence[Placeholder], max_tokens: int) -> EditRequest:
    """A request to fill in placeholders, which do not overlap, in order."""
    first = placeholder_request(snapshot, places[0], max_tokens)
    if len(places) == 1:
        return first
    end, title = places[-1].end, "Fill in what is missing"
    return replace(first, end=end, before="", after="", places=tuple(places), title=title)


def fix_request(snapshot: Snapshot, start: int, end: int, n: int = 1) -> EditRequest:
    """A request to fix the syntax between two offsets; an error there may end outside them."""
    text = snapshot.as_code(snapshot.text)
    return EditRequest(
        snapshot=snapshot,
        start=start,
        end=end,
        request=FillRequest(task="fix", prefix=text[:start], old=text[start:end], suffix=text[end:], n=n),
        title="Fixing the syntax",
        nothing="No fix for the syntax was found.",
    )


def _around(edit: EditRequest, on_draft: Callable[[Draft], None] | None) -> Callable[[Draft], None] | None:
    if on_draft is None:
        return None
    return lambda draft: on_draft(structs.replace(draft, text=edit.written(draft.text)))


def _proposal(edit: EditRequest, at: int, candidate: Candidate) -> Proposal:
    text, old = edit.written(candidate.text), edit.snapshot.text[edit.start : edit.end]
    return Proposal(text=text, candidate=candidate, replacements=tuple(replacements(old, text, at)))
