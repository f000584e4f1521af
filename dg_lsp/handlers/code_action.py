"""`textDocument/codeAction`: lists actions without using the model. Choosing one runs a command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lsprotocol.converters import get_converter
from lsprotocol.types import (
    CodeAction,
    CodeActionKind,
    CodeActionTriggerKind,
    Command,
    Range,
)

from dg_lsp.backend.client import EngineFailure
from dg_lsp.documents.documents import Snapshot
from dg_lsp.documents.positions import position_at, range_of, span_of
from dg_lsp.edits.analyses import errors_in
from dg_lsp.edits.rewrites import REWRITES, TITLES, fix_instruction, fix_title, reported
from dg_lsp.handlers.server import DgServer
from dg_lsp.protocol.initialize import ACTION_KINDS, FILL_HERE, FIX, REWRITE_SELECTION
from dg_lsp.protocol.params import CodeActionContext, CodeActionParams
from engine.common.analysis import Analysis

REWRITE_KIND, FIX_KIND, FIX_ALL_KIND = ACTION_KINDS
_converter = get_converter()


async def code_action(ls: DgServer, params: CodeActionParams) -> list[CodeAction]:
    snapshot = await ls.projects.snapshot(params.text_document.uri)
    if snapshot is None or snapshot.policy.off:
        return []
    start, end = span_of(snapshot.lines, params.range, snapshot.encoding)
    found = [
        *_rewrite(ls, snapshot, start, end),
        *_told(ls, snapshot, start, end, params.context),
        *await _found(ls, snapshot, start, end, params.context),
    ]
    if not snapshot.is_as(ls.documents.get(snapshot.uri)):
        return []  # The ranges are of an old text; the editor requests actions again.
    return [action for action in found if is_wanted(str(action.kind), params.context)]


def _rewrite(ls: DgServer, snapshot: Snapshot, start: int, end: int) -> Iterator[CodeAction]:
    if snapshot.text[start:end].strip():
        deaf = " (the model follows no instructions)" if ls.resident.instructions is False else ""
        span = range_of(snapshot.lines, start, end, snapshot.encoding)
        choose = {"choose": True} if ls.resident.instructions else {}
        yield _action(f"Rewrite selection{deaf}", REWRITE_KIND, REWRITE_SELECTION, snapshot, range=span, **choose)


def _told(ls: DgServer, snapshot: Snapshot, start: int, end: int, context: CodeActionContext) -> Iterator[CodeAction]:
    """The user's own rewrites of a selection, and what other servers report in it as something to be fixed."""
    if not ls.resident.instructions:
        return
    if snapshot.text[start:end].strip():
        span = range_of(snapshot.lines, start, end, snapshot.encoding)
        for title, instruction in snapshot.policy.settings.rewrites.items():
            yield _rewriting(title, REWRITE_KIND, snapshot, span, instruction)
    for low, high, message in reported(snapshot, context.diagnostics or []):
        span = range_of(snapshot.lines, low, high, snapshot.encoding)
        yield _rewriting(fix_title(message), FIX_KIND, snapshot, span, fix_instruction(message))


def _named(snapshot: Snapshot, analysis: Analysis) -> Iterator[CodeAction]:
    """The rewrites that the grammar says apply."""
    for each in analysis.rewrites:
        span = range_of(snapshot.lines, each.start, each.end, snapshot.encoding)
        title, instruction = REWRITES[each.kind]
        yield _rewriting(title, REWRITE_KIND, snapshot, span, instruction)


def _rewriting(title: str, kind: str, snapshot: Snapshot, span: Range, instruction: str) -> CodeAction:
    return _action(title, kind, REWRITE_SELECTION, snapshot, range=span, instruction=instruction)


async def _found(
    ls: DgServer, snapshot: Snapshot, start: int, end: int, context: CodeActionContext
) -> list[CodeAction]:
    if not any(is_wanted(kind, context) for kind in ACTION_KINDS):
        return []
    try:
        analysis = await ls.analyses.at(snapshot, end, start if start < end else None)
    except EngineFailure:
        return []  # No message: editors request actions at each move of the cursor.
    actions = [*_named(snapshot, analysis)] if ls.resident.instructions else []
    errors = errors_in(analysis, snapshot.lines.line_start(start), snapshot.lines.line_end(end))
    if errors:
        what = f": {errors[0].what}" if errors[0].what else ""
        span = range_of(snapshot.lines, errors[0].start, errors[-1].end, snapshot.encoding)
        actions.append(_action(f"Fix syntax{what}", FIX_KIND, FIX, snapshot, range=span, apply=True))
    if analysis.errors:
        actions.append(_action("Fix all syntax problems", FIX_ALL_KIND, FIX, snapshot, apply=True))
    if analysis.placeholder and start == end:
        at = position_at(snapshot.lines, end, snapshot.encoding)
        title = TITLES[analysis.placeholder.kind]
        actions.append(_action(title, REWRITE_KIND, FILL_HERE, snapshot, position=at, apply=True))
    return actions


def is_wanted(kind: str, context: CodeActionContext) -> bool:
    """Whether the client wants actions of a kind: it names the kind, or a prefix of it up to a dot.

    "Fix all" is offered only if the user opens the menu: some editors run every offered action of that kind on save.
    """
    if kind == FIX_ALL_KIND and context.trigger_kind == CodeActionTriggerKind.Automatic:
        return False
    if not context.only:
        # Source actions are listed only if the client names their kind.
        return not kind.startswith(str(CodeActionKind.Source.value))
    return any(each == "" or kind == each or kind.startswith(f"{each}.") for each in context.only)


def _action(title: str, kind: str, command: str, snapshot: Snapshot, **arguments: Any) -> CodeAction:
    given = _converter.unstructure({"uri": snapshot.uri, **arguments, "announce": True})
    return CodeAction(title=title, kind=kind, command=Command(title=title, command=command, arguments=[given]))
