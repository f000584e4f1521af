"""What real editors say of themselves, beside what the files of `tests/e2e/capabilities` say of them.

`DG_LSP_RECORD=1 make test-editors` brings the files up to date. Only the client's name and its capabilities are kept:
the rest of what it sends tells of the machine.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.e2e.editors.programs import INITIALIZE
from tests.e2e.window import CAPABILITIES, recorded


def check_capabilities(client: str, programs: Path) -> None:
    """Compare the `initialize` that the server in `programs` recorded with the client's file."""
    params = json.loads((programs / INITIALIZE).read_text())["params"]
    if os.environ.get("DG_LSP_RECORD"):
        _write(CAPABILITIES / f"{client}.json", params)
    assert _essentials(recorded(client)) == _essentials(params["capabilities"])


def _write(path: Path, params: dict[str, Any]) -> None:
    by = {name: " ".join(told.split()) for name, told in params["clientInfo"].items()}
    held = {
        "note": f"Captured from {by['name']} {by['version']} by its test in tests/e2e/editors.",
        "clientInfo": by,
        "capabilities": params["capabilities"],
    }
    path.write_text(json.dumps(held, indent=2) + "\n")


def _essentials(capabilities: dict[str, Any]) -> dict[str, Any]:
    """The parts that the server goes by."""
    document = capabilities["textDocument"]
    return {
        "general": capabilities.get("general"),
        "inlineCompletion": document.get("inlineCompletion"),
        "completion": "completion" in document,
    }
