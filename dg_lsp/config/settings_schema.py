"""The JSON Schema of the settings, for editors and for `dg-lsp.toml`.

`userOnly` marks settings that no workspace may set, for editors that distinguish the two.
`python -m dg_lsp.config.settings_schema > dg_lsp/settings.schema.json` updates the shipped copy.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec

from dg_lsp.config.settings import Settings


def settings_schema() -> dict[str, Any]:
    """The schema as JSON values. Tables are inlined, since not every editor follows references."""
    (root,), tables = msgspec.json.schema_components([Settings])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dg-lsp settings",
        **_inlined(root, tables),
    }


def _inlined(held: dict[str, Any], tables: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in held:
        return held
    table = tables[held["$ref"].rpartition("/")[2]]
    return {
        **{key: held[key] for key in ("description",) if key in held},
        "type": "object",
        "additionalProperties": False,
        "properties": {name: _inlined(each, tables) for name, each in table["properties"].items()},
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(settings_schema(), indent=2) + "\n")
