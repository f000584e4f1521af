"""What the commands that edit are told: one object each, checked key by key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import attrs
from cattrs import transform_error
from cattrs.gen import make_dict_structure_fn, override
from cattrs.v import format_exception
from lsprotocol.types import Position, Range

from dg_lsp.protocol.rpc import converter

A = TypeVar("A")


def _within(low: float, high: float, *, above: bool = False) -> Any:
    def check(_: Any, field: attrs.Attribute[Any], value: Any) -> None:
        if not (low < value if above else low <= value) or not value <= high:
            raise ValueError(f"{field.name} must be {'above' if above else 'at least'} {low:g} and up to {high:g}")

    return check


@attrs.define(frozen=True, kw_only=True)
class RewriteArguments:
    """`dg.rewrite` and `dg.rewriteSelection`."""

    uri: str
    range: Range
    instruction: str = ""
    strength: float = attrs.field(default=0.6, validator=_within(0, 1, above=True))
    n: int | None = attrs.field(default=None, validator=attrs.validators.optional(_within(1, 16)))
    keep: list[Range] = attrs.field(factory=list[Range])
    draft_token: int | str | None = None
    announce: bool = False
    """Show the sentence where nothing was applied."""


@attrs.define(frozen=True, kw_only=True)
class FixArguments:
    """`dg.fix`."""

    uri: str
    range: Range | None = None
    """Without one: the whole document."""
    draft_token: int | str | None = None
    apply: bool = False
    """Apply the best candidate, and answer as `dg.rewriteSelection` does."""
    announce: bool = False


@attrs.define(frozen=True, kw_only=True)
class FillHereArguments:
    """`dg.fillHere`."""

    uri: str
    position: Position
    draft_token: int | str | None = None
    apply: bool = False
    announce: bool = False


def structured(kind: type[A], arguments: list[Any] | None) -> A:
    """The one argument of a command. Raises ValueError with a sentence that names what is wrong."""
    if not arguments or len(arguments) != 1 or not isinstance(arguments[0], Mapping):
        raise ValueError("The command takes one object as its only argument.")
    try:
        return _converter.structure(cast(object, arguments[0]), kind)
    except Exception as error:  # noqa: BLE001 cattrs raises groups of whatever its hooks raised
        reasons = "; ".join(reason[:120] for reason in transform_error(error, format_exception=_reason)[:3])
        raise ValueError(f"The command's argument is not what it should be: {reasons}.") from None


def _reason(error: BaseException, kind: type[Any] | None) -> str:
    return str(error) if type(error) is ValueError else format_exception(error, kind)


def _only(*accepted: type[Any]) -> Any:
    def structure(value: object, kind: Any) -> Any:
        if type(value) not in accepted:
            raise TypeError(f"{value!r} is no {kind}")
        return value

    return structure


def _strict_converter() -> Any:
    made = converter()
    for kind, accepted in ((str, (str,)), (int, (int,)), (float, (float, int)), (bool, (bool,))):
        made.register_structure_hook(kind, _only(*accepted))
    made.register_structure_hook(int | str | None, _only(int, str, type(None)))
    for kind in (RewriteArguments, FixArguments, FillHereArguments):
        made.register_structure_hook(
            kind,
            make_dict_structure_fn(
                kind,
                made,
                draft_token=override(rename="draftToken"),
                _cattrs_forbid_extra_keys=True,
                _cattrs_detailed_validation=True,
            ),
        )
    return made


_converter = _strict_converter()
