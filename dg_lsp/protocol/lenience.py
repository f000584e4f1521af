"""Messages are read leniently: clients get details of the protocol wrong, and must be served all the same.

`needed` reads a message into a type that names the fields that are used and no others; all else is ignored, valid or
not. A field marked `Loose` is dropped where it is invalid. `converter` reads `initialize`, which pygls needs whole:
invalid parts of it are dropped.
"""

from __future__ import annotations

import re
from collections import abc
from collections.abc import Callable
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, cast, get_args, get_origin

import attrs
import msgspec
from lsprotocol import types
from lsprotocol.types import InlineCompletionTriggerKind
from msgspec import Meta, Struct
from msgspec.structs import fields
from pygls.exceptions import JsonRpcInvalidParams
from pygls.protocol import default_converter

from dg_lsp.protocol.copilot import table, understood

if TYPE_CHECKING:
    from cattrs import Converter

T = TypeVar("T")
_IS_LOOSE = Meta(extra={"loose": True})
Loose = Annotated[T, _IS_LOOSE]
"""The type of a field with a default, or of a list's items: dropped where invalid."""
_NOTHING = object()
_CAPITAL = re.compile("_([a-z])")
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


def converter() -> Converter:
    """pygls' converter, lenient for `initialize`.

    A client has inline completion if its capabilities name it, even as null (lsp-mode). A client that ignores the
    agreed position encoding is offered only the one that it uses. Invalid parts are dropped.
    """
    lenient = default_converter()
    # One error is enough: a text where a list belongs raises one for each of its characters.
    lenient.detailed_validation = False
    as_sent = lenient.get_structure_hook(types.TextDocumentClientCapabilities)

    def capabilities(value: dict[str, Any], kind: Any) -> types.TextDocumentClientCapabilities:
        named = "inlineCompletion" in value
        return as_sent({**value, "inlineCompletion": table(value, "inlineCompletion")} if named else value, kind)

    lenient.register_structure_hook(types.TextDocumentClientCapabilities, capabilities)
    lenient.register_structure_hook(types.WorkspaceFolder, _folder)
    as_initialize = lenient.get_structure_hook(types.InitializeParams)

    def structures(value: Any, kind: Any) -> bool:
        try:
            lenient.structure(value, kind)
        except Exception:  # noqa: BLE001 each kind of value that is wrong raises another
            return False
        return True

    def initialize(value: Any, kind: Any) -> types.InitializeParams:
        params = understood(value)
        try:
            return as_initialize(params, kind)
        except Exception:  # each kind of value that is wrong raises another
            if not isinstance(params, dict):
                raise
        kept = _salvaged_fields(cast(dict[str, Any], params), kind, structures)
        return as_initialize({"capabilities": {}, **kept}, kind)

    lenient.register_structure_hook(types.InitializeParams, initialize)
    return lenient


def _folder(value: Any, _: Any) -> types.WorkspaceFolder:
    """A folder by its URI; its name, for people, may be missing."""
    uri, name = value["uri"], value.get("name")
    if not isinstance(uri, str):
        raise JsonRpcInvalidParams
    return types.WorkspaceFolder(uri=uri, name=name if isinstance(name, str) else uri)


def _salvaged_fields(value: dict[str, Any], kind: Any, structures: Callable[[Any, Any], bool]) -> dict[str, Any]:
    """The fields of a protocol type that a JSON object holds, without what does not structure."""
    kinds = _types_of_fields(kind).items()
    kept = {name: _salvaged(value[name], each, structures) for name, each in kinds if name in value}
    return {name: held for name, held in kept.items() if held is not _NOTHING}


def _salvaged(value: Any, kind: Any, structures: Callable[[Any, Any], bool]) -> Any:
    """A JSON value without its innermost parts that do not structure; _NOTHING where that does not help."""
    kept: list[Any] = [value]
    if not structures(value, kind):
        if get_origin(kind) is Union:
            kept = [_salvaged(value, part, structures) for part in get_args(kind) if part is not type(None)]
        elif get_origin(kind) is abc.Sequence and isinstance(value, list):
            each = (_salvaged(held, get_args(kind)[0], structures) for held in cast(list[Any], value))
            kept = [[held for held in each if held is not _NOTHING]]
        elif attrs.has(kind) and isinstance(value, dict):
            kept = [_salvaged_fields(cast(dict[str, Any], value), kind, structures)]
        kept = [held for held in kept if held is not _NOTHING and structures(held, kind)]
    return kept[0] if kept else _NOTHING


def _types_of_fields(kind: Any) -> dict[str, Any]:
    """The types of a protocol type's fields, by their names in JSON."""
    return {_CAPITAL.sub(lambda found: found[1].upper(), field.name): field.type for field in attrs.fields(kind)}
