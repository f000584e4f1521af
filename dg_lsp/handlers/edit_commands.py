"""The commands that edit. They answer with candidates, or apply the best one if requested."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from lsprotocol.converters import get_converter
from lsprotocol.types import (
    ApplyWorkspaceEditParams,
    MessageType,
    Position,
    Range,
    ShowMessageParams,
)
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams

from dg_lsp.backend.client import EngineFailure
from dg_lsp.documents.documents import NOT_OPEN, Policy, Snapshot
from dg_lsp.documents.positions import offset_at, span_of
from dg_lsp.documents.tracking import Followed
from dg_lsp.edits.analyses import error_request, errors_in
from dg_lsp.edits.edits import (
    LARGEST_CHARS,
    EditOutcome,
    EditRequest,
    Proposal,
    fix_request,
    placeholders_request,
    rewrite_request,
)
from dg_lsp.edits.rewrites import IMPROVE, choices
from dg_lsp.edits.workspace_edits import workspace_edit
from dg_lsp.handlers.server import DgServer
from dg_lsp.protocol.arguments import FillHereArguments, FixArguments, RewriteArguments, argument
from dg_lsp.protocol.initialize import FILL_HERE, FIX, REWRITE, REWRITE_SELECTION
from dg_lsp.protocol.messages import DRAFT
from dg_lsp.protocol.params import ExecuteCommandParams
from engine.common.analysis import Placeholder
from engine.common.request import Draft

A = TypeVar("A")
Given = RewriteArguments | FixArguments | FillHereArguments
CANDIDATES = 3
_APPLIED_S = 600.0
"""How long an editor may take to apply an edit, or to answer a question: the user decides."""
_converter = get_converter()


async def rewrite(ls: DgServer, params: ExecuteCommandParams, *, n: int, apply: bool) -> dict[str, Any]:
    """Rewrite a selection; up to `n` candidates unless the arguments give another number."""
    given = _given(RewriteArguments, params)

    async def edit(snapshot: Snapshot) -> EditRequest | str:
        spans = sorted(span_of(snapshot.lines, each, snapshot.encoding) for each in given.selections)
        start, end = spans[0][0], max(end for _, end in spans)
        instruction, strength, count = given.instruction, given.strength, given.n or n
        if given.shown is None:
            if given.choose and not instruction and ls.resident.instructions and ls.editor.can_choose():
                chosen = await _chosen(ls, snapshot, start, end)
                if chosen is None:
                    return ""
                instruction = chosen
            keep = [*_between(spans), *(_kept(snapshot, each) for each in given.keep)]
        else:
            lines, after = snapshot.lines.replace(start, end, given.shown), start + len(given.shown)
            struck = sorted(span_of(lines, each, snapshot.encoding) for each in given.struck)
            keep = [*_between([(start, start), *struck, (after, after)])]
            # One of them may be what was shown.
            strength, count = 1.0, count + 1
        edit = rewrite_request(
            snapshot, start, end, instruction=instruction, strength=strength, n=count, keep=keep, shown=given.shown
        )
        blank = "select text that is not blank." if given.shown is None else "the proposal is blank."
        return edit or f"There is nothing to rewrite: {blank}"

    return await _answered(ls, params, given, edit, apply=apply)


async def _chosen(ls: DgServer, snapshot: Snapshot, start: int, end: int) -> str | None:
    """The instruction that the user chooses; None: none. Raises EngineFailure."""
    found = choices(snapshot, (await ls.analyses.at(snapshot, end, start)).rewrites)
    if len(found) == 1:
        return found[IMPROVE]
    # As with edits: cancelling the command must not cancel the request to the client.
    choosing = asyncio.ensure_future(ls.editor.choose("Rewrite the selection:", [*found]))
    try:
        async with asyncio.timeout(_APPLIED_S):
            return found.get(await asyncio.shield(choosing))
    except TimeoutError:
        return None


def _between(spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The gaps between spans, in order."""
    at = spans[0][1]
    for start, end in spans[1:]:
        if at < start:
            yield at, start
        at = max(at, end)


def _kept(snapshot: Snapshot, what: Range | int) -> tuple[int, int]:
    if isinstance(what, int):
        what = Range(start=Position(line=what, character=0), end=Position(line=what + 1, character=0))
    return span_of(snapshot.lines, what, snapshot.encoding)


async def fix(ls: DgServer, params: ExecuteCommandParams) -> dict[str, Any]:
    """Fix the syntax in a range or a document."""
    given = _given(FixArguments, params)

    async def edit(snapshot: Snapshot) -> EditRequest | str:
        if too_long := _too_long(snapshot):
            return too_long
        n = 1 if given.apply else CANDIDATES
        if given.range is None:
            return fix_request(snapshot, 0, len(snapshot.text), n)
        start, end = span_of(snapshot.lines, given.range, snapshot.encoding)
        start, end = snapshot.lines.line_start(start), snapshot.lines.line_end(end)
        await ls.resident.wait_until_ready()
        analysis = await ls.analyses.at(snapshot, end)
        errors = errors_in(analysis, start, end)
        return error_request(snapshot, analysis, errors, n) if errors else fix_request(snapshot, start, end, n)

    return await _answered(ls, params, given, edit, apply=given.apply)


def _too_long(snapshot: Snapshot) -> str:
    """A sentence if a document is too long to be checked; empty if not."""
    length = len(snapshot.text)
    if length <= LARGEST_CHARS:
        return ""
    return f"This document has {length:,} characters; the limit for this command is {LARGEST_CHARS:,}."


def _not_ready(ls: DgServer) -> str:
    """A sentence if the engine is not ready; empty if it is."""
    if ls.resident.is_ready:
        return ""
    return ls.resident.client.state.message or "The engine is not ready: run `dg-lsp doctor`."


async def fill_here(ls: DgServer, params: ExecuteCommandParams) -> dict[str, Any]:
    """Fill in the placeholder at a position, or at several positions."""
    given = _given(FillHereArguments, params)

    async def edit(snapshot: Snapshot) -> EditRequest | str:
        positions = given.positions if given.position is None else (given.position,)
        cursors = [offset_at(snapshot.lines, each, snapshot.encoding) for each in positions]
        await ls.resident.wait_until_ready()
        places = list[Placeholder]()
        for cursor in sorted(cursors):
            place = (await ls.analyses.at(snapshot, cursor)).placeholder
            if place and (not places or places[-1].end <= place.start != places[-1].start):
                places.append(place)
        if not places:
            return _too_long(snapshot) or _not_ready(ls) or "There is nothing to fill in here."
        return placeholders_request(snapshot, places, snapshot.policy.settings.inline.max_tokens)

    return await _answered(ls, params, given, edit, apply=given.apply)


EDIT_COMMANDS: dict[str, Callable[[DgServer, ExecuteCommandParams], Awaitable[dict[str, Any]]]] = {
    REWRITE_SELECTION: partial(rewrite, n=1, apply=True),
    REWRITE: partial(rewrite, n=CANDIDATES, apply=False),
    FIX: fix,
    FILL_HERE: fill_here,
}


async def _answered(
    ls: DgServer,
    params: ExecuteCommandParams,
    given: Given,
    edit_for: Callable[[Snapshot], Awaitable[EditRequest | str]],
    *,
    apply: bool,
) -> dict[str, Any]:
    """Run a command, from a snapshot to the answer. `edit_for` returns the request, or a sentence why there is none.

    The document is followed before the first await, and nothing is awaited between the last check of it and the answer,
    so that no answer is for another text.
    """
    snapshot = ls.documents.get(given.uri)
    if snapshot is None:
        outcome = EditOutcome(message=NOT_OPEN)
    else:
        with ls.edits.tracking.follow(snapshot) as followed:
            await ls.projects.look(given.uri)
            now = ls.documents.get(given.uri)
            snapshot = replace(snapshot, policy=now.policy if now else Policy(off=NOT_OPEN))
            try:
                edit = snapshot.policy.off or await edit_for(snapshot)
            except EngineFailure as failure:
                edit = str(failure)
            if isinstance(edit, str):
                outcome = EditOutcome(snapshot=snapshot, message=edit)
            else:
                outcome = await _run_edit(ls, params, given, edit, followed)
    return await _applied(ls, given, outcome) if apply else _answer(ls, outcome)


async def _run_edit(
    ls: DgServer, params: ExecuteCommandParams, given: Given, edit: EditRequest, followed: Followed
) -> EditOutcome:
    work = ls.edits.ask(edit, _drafts(ls, given.draft_token))
    try:
        filled = await ls.working.show(edit.title, params.work_done_token, work)
    except EngineFailure as failure:
        return EditOutcome(snapshot=edit.snapshot, message=str(failure))
    if filled is None:
        return EditOutcome(snapshot=edit.snapshot, message="The edit was cancelled.")
    return ls.edits.outcome(edit, followed, filled)


def _drafts(ls: DgServer, token: int | str | None) -> Callable[[Draft], None] | None:
    if token is None:
        return None
    return lambda draft: ls.rpc.notify(DRAFT, {"token": token, "step": draft.step, "text": draft.text})


def _answer(ls: DgServer, outcome: EditOutcome) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "version": outcome.snapshot and outcome.snapshot.version,
        "candidates": [_candidate(ls, outcome, each) for each in outcome.proposals],
    }
    return answer | ({"message": outcome.message} if outcome.message else {})


def _candidate(ls: DgServer, outcome: EditOutcome, proposal: Proposal) -> dict[str, Any]:
    return {
        "text": proposal.text,
        "confidence": proposal.candidate.confidence,
        "syntax": proposal.candidate.syntax,
        "edit": _converter.unstructure(_edit(ls, outcome, proposal)),
    }


def _edit(ls: DgServer, outcome: EditOutcome, proposal: Proposal) -> Any:
    assert outcome.snapshot
    return workspace_edit(outcome.snapshot, proposal.replacements, _label(outcome), ls.editor.hello)


def _label(outcome: EditOutcome) -> str:
    return f"Edited by {outcome.model}"


async def _applied(ls: DgServer, given: Given, outcome: EditOutcome) -> dict[str, Any]:
    applied, message = False, outcome.message
    if outcome.proposals:
        params = ApplyWorkspaceEditParams(edit=_edit(ls, outcome, outcome.proposals[0]), label=_label(outcome))
        # Cancelling the command must not cancel the request to the client.
        applying = asyncio.ensure_future(ls.workspace_apply_edit_async(params))
        try:
            async with asyncio.timeout(_APPLIED_S):
                result = await asyncio.shield(applying)
        except (JsonRpcException, TimeoutError):
            message = "The editor can't apply edits from a language server."
        else:
            applied = result.applied
            message = message if applied else result.failure_reason or "The editor did not apply the edit."
    if message and given.announce:
        ls.window_show_message(ShowMessageParams(type=MessageType.Info, message=message))
    return {"applied": applied} | ({"message": message} if message else {})


def _given(kind: type[A], params: ExecuteCommandParams) -> A:
    try:
        return argument(kind, list(params.arguments or ()))
    except ValueError as error:
        raise JsonRpcInvalidParams(str(error)) from None
