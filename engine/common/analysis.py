"""What can be seen in a text without a model: where its syntax is broken, where something is still to be written."""

from __future__ import annotations

from typing import Literal

from engine.common.wire import Wire

PlaceholderKind = Literal["body", "placeholder", "arguments"]


RewriteKind = Literal[
    "body", "hints", "docstring", "comment", "empty", "fstring", "template", "comprehension", "simplify"
]


class SyntaxErrorRegion(Wire, frozen=True, kw_only=True):
    """Whole lines `text[start:end]`, without the last line break, in which something is wrong."""

    start: int
    end: int
    what: str
    """For a title: "missing )", or what the compiler says; empty where there is nothing to say."""
    spots: tuple[int, ...]
    """Where the cause may lie, likeliest first; not all of them need to lie in these lines."""


class Placeholder(Wire, frozen=True, kw_only=True):
    """`text[start:end]` wants to become `before`, something new, `after`."""

    kind: PlaceholderKind
    start: int
    end: int
    before: str = ""
    after: str = ""
    single_line: bool = False


class Rewritable(Wire, frozen=True, kw_only=True):
    """`text[start:end]` could be rewritten in a way that has a name."""

    kind: RewriteKind
    start: int
    end: int


class Analysis(Wire, frozen=True, kw_only=True):
    """What a text offers to somebody at a place in it."""

    errors: tuple[SyntaxErrorRegion, ...]
    """Of the whole text, in order."""
    placeholder: Placeholder | None = None
    """At the place."""
    rewrites: tuple[Rewritable, ...] = ()
    """Of what is selected, or of the function whose first line holds the place."""
