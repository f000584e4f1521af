"""Titles in the list of code actions, and what the model is told for each rewrite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dg_lsp.documents.documents import Snapshot
from dg_lsp.documents.positions import span_of
from dg_lsp.protocol.params import ReportedProblem
from engine.common.analysis import PlaceholderKind, Rewritable, RewriteKind

REWRITES: dict[RewriteKind, tuple[str, str]] = {
    "body": ("Write the body from the docstring", "Write the body so that it does what the docstring says."),
    "hints": ("Add type hints", "Add type hints to all parameters and the result."),
    "docstring": ("Add a docstring", "Add a docstring that says in a sentence what it does."),
    "comment": ("Add a doc comment", "Add a doc comment that says in a sentence what it does."),
    "empty": ("Handle the empty case", "Handle the case that what is passed in is empty."),
    "fstring": ("Use an f-string", "Use f-strings instead of other formatting."),
    "template": ("Use a template literal", "Use template literals or formatting instead of joining texts by +."),
    "comprehension": ("Use a comprehension", "Use a comprehension instead of the loop."),
    "simplify": ("Simplify", "Simplify the conditions; it must do the same."),
}
"""Title and instruction."""
IMPROVE = "Improve it"
TITLES: dict[PlaceholderKind, str] = {
    "body": "Fill in the body",
    "placeholder": "Fill in the placeholder",
    "arguments": "Fill in the arguments",
}
"""Of placeholders."""
_LONGEST_TITLE = 80
_LONGEST_MESSAGE = 2_000
_MOST = 5
"""Reported problems that get an action."""


def choices(snapshot: Snapshot, applies: Sequence[Rewritable]) -> dict[str, str]:
    """What may be chosen where nobody can type an instruction, by its title: what the grammar says applies, the user's
    own, and anything better."""
    named = dict(REWRITES[each.kind] for each in applies)
    return {**named, **snapshot.policy.settings.rewrites, IMPROVE: ""}


def reported(snapshot: Snapshot, diagnostics: Sequence[ReportedProblem]) -> Iterator[tuple[int, int, str]]:
    """The lines of each reported problem, [start, end), and what it says."""
    for each in diagnostics[:_MOST]:
        if each.message.strip():
            start, end = span_of(snapshot.lines, each.range, snapshot.encoding)
            yield snapshot.lines.line_start(start), snapshot.lines.line_end(end), each.message.strip()


def fix_title(message: str) -> str:
    line = f"Fix: {message.splitlines()[0]}"
    return line if len(line) <= _LONGEST_TITLE else f"{line[: _LONGEST_TITLE - 1]}…"


def fix_instruction(message: str) -> str:
    """Of a long message its beginning and its end: compilers say what is wrong in one, and why in the other."""
    if len(message) > _LONGEST_MESSAGE:
        half = _LONGEST_MESSAGE // 2
        message = f"{message[:half]}\n...\n{message[-half:]}"
    return f"Fix this problem: {message}"
