"""Analysis of a text without a model: syntax errors and placeholders."""

from __future__ import annotations

from typing import Literal

from engine.common.wire import Wire

PlaceholderKind = Literal["body", "placeholder", "arguments"]


RewriteKind = Literal[
    "body", "hints", "docstring", "comment", "empty", "fstring", "template", "comprehension", "simplify"
]


class SyntaxErrorRegion(Wire, frozen=True, kw_only=True):
    """An error in whole lines `text[start:end]`, without the last line break."""

    start: int
    end: int
    what: str
    """A title: "missing )", or the compiler's message; may be empty."""
    spots: tuple[int, ...]
    """Possible causes, the likeliest first; they may be outside these lines."""


class Placeholder(Wire, frozen=True, kw_only=True):
    """A placeholder: `text[start:end]` is to be replaced by `before`, a fill, `after`."""

    kind: PlaceholderKind
    start: int
    end: int
    before: str = ""
    after: str = ""
    single_line: bool = False


class Rewritable(Wire, frozen=True, kw_only=True):
    """A rewrite by name that fits `text[start:end]`."""

    kind: RewriteKind
    start: int
    end: int


class Analysis(Wire, frozen=True, kw_only=True):
    """Errors in a text; the placeholder and the rewrites by name at a cursor."""

    errors: tuple[SyntaxErrorRegion, ...]
    """All errors in the text, in order."""
    placeholder: Placeholder | None = None
    """The placeholder at the cursor."""
    rewrites: tuple[Rewritable, ...] = ()
    """Rewrites by name, of the selection or of the function whose first line holds the cursor."""
