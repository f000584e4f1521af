"""The arguments of the commands that edit: one object each, checked key by key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar, cast

from lsprotocol.types import Position, Range
from msgspec import Meta, Struct

from dg_lsp.protocol.lenience import within_texts
from engine.common.frames import structured

A = TypeVar("A")


class Arguments(Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Arguments of all commands."""

    uri: str
    draft_token: int | str | None = None
    announce: bool = False
    """Show the message to the user where nothing was applied."""


class RewriteArguments(Arguments, frozen=True, kw_only=True):
    """`dg.rewrite` and `dg.rewriteSelection`."""

    range: Range | None = None
    ranges: tuple[Range, ...] = ()
    """Several selections, instead of `range`; the text between them stays."""
    instruction: str = ""
    choose: bool = False
    """Where no instruction is given and the model follows some: have the user choose a named rewrite, if the client
    has `window/showMessageRequest`."""
    strength: Annotated[float, Meta(gt=0, le=1)] = 0.6
    n: Annotated[int, Meta(ge=1, le=16)] | None = None
    keep: tuple[Range | Annotated[int, Meta(ge=0, lt=2**31 - 1)], ...] = ()
    """Parts of the selections that stay: ranges, or line numbers."""
    shown: str | None = None
    """An earlier candidate for these selections: what is `struck` in it is rewritten, the rest stays."""
    struck: tuple[Range, ...] = ()
    """Ranges in the document with `shown` in place."""

    def __post_init__(self) -> None:
        if (self.range is None) == (not self.ranges):
            raise ValueError("give either `range` or `ranges`")
        if (self.shown is None) == bool(self.struck):
            raise ValueError("give `shown` and `struck` together")

    @property
    def selections(self) -> tuple[Range, ...]:
        return self.ranges if self.range is None else (self.range,)


class FixArguments(Arguments, frozen=True, kw_only=True):
    """`dg.fix`."""

    range: Range | None = None
    """None: the whole document."""
    apply: bool = False
    """Apply the best candidate, and answer as `dg.rewriteSelection` does."""


class FillHereArguments(Arguments, frozen=True, kw_only=True):
    """`dg.fillHere`."""

    position: Position | None = None
    positions: tuple[Position, ...] = ()
    """Several, instead of `position`; they are filled in order, each with the earlier ones filled in."""
    apply: bool = False

    def __post_init__(self) -> None:
        if (self.position is None) == (not self.positions):
            raise ValueError("give either `position` or `positions`")


def argument(kind: type[A], arguments: list[Any] | None) -> A:
    """The one argument of a command. Raises ValueError with a sentence about what is invalid."""
    if not arguments or len(arguments) != 1 or not isinstance(arguments[0], Mapping):
        raise ValueError("The command takes one object as its only argument.")
    try:
        return structured(within_texts(cast(object, arguments[0])), kind)
    except ValueError as error:
        raise ValueError(f"The command's argument is invalid: {error}.") from None
