"""What clients send, as the types say in which it is needed.

A type names the fields that are used and no others: whatever else a client says means nothing, be it what the protocol
says or not. What is used and can be done without is `Loose`: where it can't be read, it is as if it had not been said.
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
"""Of a field that has a default, or of what a list holds: dropped where it can't be read."""
_DEEPEST = 10
"""Where a position is in a message, at most."""


def needed(value: Any, kind: type[T]) -> T:
    """A JSON value as what is needed of it. Raises msgspec.ValidationError where that is not there."""
    value = within_texts(value)
    try:
        return _converted(value, kind)
    except msgspec.ValidationError:
        return _converted(_without_loose(value, kind), kind)


def _converted(value: Any, kind: type[T]) -> T:
    # A type that is not msgspec's own reads itself.
    return msgspec.convert(value, kind, dec_hook=lambda own, held: own.read(held))


def _without_loose(value: Any, kind: Any) -> Any:
    """A value but for what is loose in it and can't be read."""
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
        types = {field.encode_name: field.type for field in fields(kind)}
        told = {name: _without_loose(value[name], type_) for name, type_ in types.items() if name in value}
        return {name: part for name, part in told.items() if _is_kept(part, types[name])}
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


def is_invoked(trigger_kind: int) -> bool:
    """Whether somebody called for it; in drafts of LSP 3.18 that was 0."""
    return trigger_kind in (0, InlineCompletionTriggerKind.Invoked)


def within_texts(value: Any, depth: int = _DEEPEST) -> Any:
    """JSON values whose positions, down to that depth, are some that a text may have."""
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
