"""Messages are read leniently: clients get details of the protocol wrong, and must be served all the same.

`needed` reads a message into a type that names the fields that are used and no others; all else is ignored, valid or
not. A field marked `Loose` is dropped where it is invalid.
"""

from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin

import msgspec
from lsprotocol.types import InlineCompletionTriggerKind
from msgspec import Meta, Struct
from msgspec.structs import fields

T = TypeVar("T")
_IS_LOOSE = Meta(extra={"loose": True})
Loose = Annotated[T, _IS_LOOSE]
"""The type of a field with a default, or of a list's items: dropped where invalid."""
_DEEPEST = 10
"""How deeply a position may be nested in a message."""


def needed(value: Any, kind: type[T]) -> T:
    """A JSON value as `kind`. Raises msgspec.ValidationError where a field that is not loose is missing or invalid."""
    value = within_texts(value)
    try:
        return _converted(value, kind)
    except msgspec.ValidationError:
        return _converted(_without_loose(value, kind), kind)


def _converted(value: Any, kind: type[T]) -> T:
    # A type that is not msgspec's own reads itself.
    return msgspec.convert(value, kind, dec_hook=lambda own, held: own.read(held))


def _without_loose(value: Any, kind: Any) -> Any:
    """A value without the loose parts that are invalid."""
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if get_origin(kind) in (Union, UnionType):
        # No type has a choice between two that hold anything.
        return _without_loose(value, next((each for each in get_args(kind) if _holds(each)), None))
    if get_origin(kind) is list:
        (each,) = get_args(kind)
        # Some languages have one empty table for lists and objects.
        parts = [_without_loose(part, each) for part in cast(list[Any], value if isinstance(value, list) else [])]
        return [part for part in parts if _is_kept(part, each)] if isinstance(value, list) or value == {} else value
    if isinstance(kind, type) and issubclass(kind, Struct) and isinstance(value, dict):
        kinds = {field.encode_name: field.type for field in fields(kind)}
        given = {name: _without_loose(value[name], each) for name, each in kinds.items() if name in value}
        return {name: part for name, part in given.items() if _is_kept(part, kinds[name])}
    return value


def _holds(kind: Any) -> bool:
    return get_origin(kind) is list or (isinstance(kind, type) and issubclass(kind, Struct))


def _is_kept(value: Any, kind: Any) -> bool:
    if get_origin(kind) is not Annotated or _IS_LOOSE not in get_args(kind):
        return True
    try:
        _converted(value, kind)
    except msgspec.ValidationError:
        return False
    return True


class TriggerKinds:
    """What one client means by `triggerKind`: drafts of LSP 3.18 counted from 0, and so does who sent that once."""

    def __init__(self) -> None:
        self._invoked: int = InlineCompletionTriggerKind.Invoked

    def is_invoked(self, kind: int) -> bool:
        """Whether somebody called for it."""
        if kind == 0:
            self._invoked = 0
        return kind == self._invoked


def within_texts(value: Any, depth: int = _DEEPEST) -> Any:
    """JSON values, with positions clamped to those that a text may have, down to `depth`."""
    if isinstance(value, list) and depth:
        return [within_texts(held, depth - 1) for held in cast(list[Any], value)]
    if isinstance(value, dict) and depth:
        return {
            key: min(max(held, 0), 2**31 - 1)
            if key in ("line", "character") and type(held) is int
            else within_texts(held, depth - 1)
            for key, held in cast(dict[str, Any], value).items()
        }
    return value
