"""The JSON Schema of the settings, for editors and for `dg-lsp.toml`.

`userOnly` marks what no workspace may set, for editors that tell the user's settings from a workspace's.
`python -m dg_lsp.config.settings_schema > dg_lsp/settings.schema.json` writes the shipped copy anew.
"""

from __future__ import annotations

import json
import sys
from dataclasses import MISSING, Field, fields, is_dataclass
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from dg_lsp.config.settings import Settings, types_of

_SIMPLE = {bool: "boolean", int: "integer", float: "number", str: "string", NoneType: "null"}


def settings_schema() -> dict[str, Any]:
    """The schema as JSON values."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dg-lsp settings",
        **_table(Settings),
    }


def _table(kind: type[Any], *, by_project: bool = True) -> dict[str, Any]:
    properties = {
        held.name: _property(held, types_of(kind)[held.name], by_project=by_project and held.metadata["by_project"])
        for held in fields(kind)
    }
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _property(held: Field[Any], kind: Any, *, by_project: bool) -> dict[str, Any]:
    about = {"description": held.metadata["about"] + ("" if held.metadata["by_project"] else " Not in dg-lsp.toml.")}
    if is_dataclass(kind):
        return {**about, **_table(kind, by_project=by_project)}  # type: ignore[arg-type] a class, since fields are annotated with classes
    limits = {limit: held.metadata[limit] for limit in ("minimum", "maximum") if limit in held.metadata}
    default = held.default if held.default is not MISSING else held.default_factory()  # type: ignore[misc]
    only = {} if by_project else {"userOnly": True}
    return {**about, **_type(kind), **limits, "default": default, **only}


def _type(kind: Any) -> dict[str, Any]:
    if kind in _SIMPLE:
        return {"type": _SIMPLE[kind]}
    if kind == dict[str, bool]:
        return {"type": "object", "additionalProperties": {"type": "boolean"}}
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": list(get_args(kind))}
    return {"anyOf": [_type(choice) for choice in get_args(kind)]}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(settings_schema(), indent=2) + "\n")
