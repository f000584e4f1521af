"""Rewrites of selections of any length: one canvas after the other, each after the pieces before it are done."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from engine.common.errors import BadInput
from engine.common.request import Candidate, Draft, Filled, FillRequest, Syntax, Timings
from engine.fill.deadline import Deadline
from engine.fill.executor import Filling, Step, T, Work, filled_by
from engine.fill.line_ends import in_line_feeds
from engine.fill.pipeline import infill
from engine.fill.tokens import token_bounds
from engine.fill.validation import validated_fills
from engine.models.base import Model
from engine.syntax.languages import language_of

_TOKEN_CHARS = 8
"""More characters than a token has on average."""
MOST_CHARS = 1_000_000
"""Most characters of a selection."""
MOST_INSTRUCTION_CHARS = 4_000
"""Most characters of an instruction: it is read completely first, a thousand tokens in some seconds."""
_SHARE = 0.75
"""Share of the room on a canvas that a piece takes; the rest is for growth."""
Clock = Callable[[], float]
_DOUBT: tuple[Syntax, ...] = ("ok", "repaired", "cut", "unchecked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """`old[start:end]` and its replacements, best first; none: it stays."""

    start: int
    end: int
    candidates: tuple[Candidate, ...] = ()

    def ranked(self, rank: int) -> Candidate | None:
        """The candidate of a rank; the last one if there are fewer."""
        return self.candidates[min(rank, len(self.candidates) - 1)] if self.candidates else None


@in_line_feeds
def in_pieces(model: Model, request: FillRequest, clock: Clock = time.perf_counter) -> Filling:
    """Rewrite `request.old` step by step: see engine.fill.executor. Raises BadInput at the first step."""
    check_rewrite(request)
    began = clock()
    done, pieces, filled = "", list[Piece](), list[Filled]()
    for piece in _pieces(model, request):
        part = _part(request, piece, done, index=len(pieces), passed_s=clock() - began)
        if part is not None:
            work = infill(model, part, clock)
            filled.append((yield from drafted_between(done, request.old[piece.end :], work)))
            piece = Piece(start=piece.start, end=piece.end, candidates=filled[-1].candidates)
        pieces.append(piece)
        done += _text(request, piece, 0)
    candidates = yield from _whole(request, pieces, Deadline(request.deadline_ms, began, clock))
    return filled_by(
        model,
        candidates,
        width=sum(each.width for each in filled),
        steps=sum(each.steps for each in filled),
        forwards=sum(each.forwards for each in filled),
        ms=Timings(
            encode=sum(each.ms.encode for each in filled),
            denoise=sum(each.ms.denoise for each in filled),
            total=(clock() - began) * 1000,
        ),
    )


def drafted_between(before: str, after: str, work: Work[T]) -> Work[T]:
    """The same work; its drafts stand between two other texts."""
    try:
        wanted = next(work)
        while True:
            if isinstance(wanted, Step):
                wanted = dataclasses.replace(wanted, draft=partial(_between, before, after, wanted.draft))
            wanted = work.send((yield wanted))
    except StopIteration as end:
        return end.value
    finally:
        work.close()


def _between(before: str, after: str, draft: Callable[[], Draft]) -> Draft:
    drawn = draft()
    return replace(drawn, text=before + drawn.text + after, settled=len(before) + drawn.settled)


def check_rewrite(request: FillRequest) -> None:
    """Raises BadInput if nothing can be rewritten."""
    if not request.old.strip():
        raise BadInput("There is nothing to rewrite: select some text that is not blank.")
    if len(request.old) > MOST_CHARS:
        raise BadInput(
            f"The selection has {len(request.old):,} characters; up to {MOST_CHARS:,} are rewritten: select less."
        )
    if len(request.instruction) > MOST_INSTRUCTION_CHARS:
        raise BadInput(
            f"The instruction has {len(request.instruction):,} characters; up to {MOST_INSTRUCTION_CHARS:,} are read: "
            "say it shorter."
        )
    stays = [False] * len(request.old)
    for start, end in request.keep:
        stays[start:end] = [True] * (end - start)
    if all(stays[at] for at, letter in enumerate(request.old) if not letter.isspace()):
        raise BadInput("All of the selection is to be kept: leave some of it free.")


def _pieces(model: Model, request: FillRequest) -> Iterator[Piece]:
    """Groups of whole lines that fit on a canvas; longer lines are cut between tokens. Each is cut only in its turn, as
    tokenizing holds up other requests."""
    around = model.prompt(replace(request, suffix=request.old + request.suffix, old=""))
    limit = model.info.canvas_length
    room = max(1, int((limit - min(len(around.suffix), limit // 2)) * _SHARE) - len(model.tokenize(around.head)))
    old, at = request.old, 0
    while at < len(old):
        near = old[at : at + room * _TOKEN_CHARS]
        ends = [end for end in token_bounds(model, model.tokenize(near)) if end] or [len(near)]
        if len(ends) <= room and at + len(near) < len(old):
            # The last token may be a part of one.
            ends = ends[:-1] or ends
        end = ends[:room][-1]
        if at + end < len(old):
            end = near.rfind("\n", 0, end) + 1 or end
        yield Piece(start=at, end=at + end)
        at += end


def _part(request: FillRequest, piece: Piece, done: str, index: int, passed_s: float) -> FillRequest | None:
    """The request for one piece after what is `done`; None: nothing of it may change, or no time is left."""
    left_ms = None if request.deadline_ms is None else request.deadline_ms - passed_s * 1000
    old = request.old[piece.start : piece.end]
    keep = tuple(
        (max(start, piece.start) - piece.start, min(end, piece.end) - piece.start)
        for start, end in request.keep
        if start < piece.end and end > piece.start
    )
    kept = sum(end - start for start, end in keep)
    if kept >= len(old) or not old.strip() or (left_ms is not None and left_ms <= 0):
        return None
    return replace(
        request,
        prefix=request.prefix + done,
        old=old,
        suffix=request.old[piece.end :] + request.suffix,
        keep=keep,
        seed=(request.seed + index) % 2**63,
        deadline_ms=left_ms,
    )


def _text(request: FillRequest, piece: Piece, rank: int) -> str:
    chosen = piece.ranked(rank)
    return chosen.text if chosen else request.old[piece.start : piece.end]


def _whole(request: FillRequest, pieces: Sequence[Piece], deadline: Deadline) -> Work[list[Candidate]]:
    """Candidates for the whole text, without those that add a problem: the best of each piece, the second best of each,
    and so on."""
    ranks = max((len(piece.candidates) for piece in pieces), default=0)
    whole = [_combined(request, pieces, rank) for rank in range(ranks)]
    if language_of(request.language) is None or len(pieces) == 1:
        return whole
    validated = yield from validated_fills(request, [each.text for each in whole], deadline)
    verdicts = [found and found.verdict for found in validated]
    return [each for each, verdict in zip(whole, verdicts, strict=True) if verdict and verdict.is_clean]


def _combined(request: FillRequest, pieces: Sequence[Piece], rank: int) -> Candidate:
    chosen = [each for each in (piece.ranked(rank) for piece in pieces) if each]
    tokens = sum(each.tokens for each in chosen)
    logs = sum(each.tokens * math.log(max(each.confidence, 1e-12)) for each in chosen)
    return Candidate(
        text="".join(_text(request, piece, rank) for piece in pieces),
        tokens=tokens,
        confidence=math.exp(logs / max(tokens, 1)),
        score=sum(each.score for each in chosen),
        syntax=_DOUBT[max(_DOUBT.index(each.syntax) for each in chosen)],
        token_confidence=tuple(value for each in chosen for value in each.token_confidence),
    )
