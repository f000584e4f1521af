"""The extension's settings are the server's; this needs no editor."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
OWN = {"dg-lsp.serverPath", "dg-lsp.maxFileBytes", "dg-lsp.trace.server"}


def flat(properties: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, held in properties.items():
        if "properties" in held:
            yield from flat(held["properties"], f"{prefix}.{key}")
        else:
            yield f"{prefix}.{key}", held


def test_the_extension_offers_the_settings_that_the_server_knows():
    schema = json.loads((ROOT / "dg_lsp" / "settings.schema.json").read_text())
    manifest = json.loads((ROOT / "editors" / "vscode" / "package.json").read_text())
    offered = manifest["contributes"]["configuration"]["properties"]
    assert set(offered) >= OWN
    # `npm run settings` in editors/vscode brings them up to date.
    assert {name: held for name, held in offered.items() if name not in OWN} == dict(
        flat(schema["properties"], "dg-lsp")
    )


def test_versions_go_together():
    manifest = json.loads((ROOT / "editors" / "vscode" / "package.json").read_text())
    assert f'\nversion = "{manifest["version"]}"\n' in (ROOT / "pyproject.toml").read_text()
