"""JSON objects of a model directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from engine.core.errors import ModelError


def read_json(file: Path, name: str) -> dict[str, Any]:
    """The object in `file`, a file of the model `name`. Raises ModelError."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{name} has no {file.name}: name a model directory as transformers writes it.") from None
    except (OSError, ValueError):
        raise ModelError(f"{name} has a {file.name} that can't be read: pull or copy the model again.") from None
    if not isinstance(value, dict):
        raise ModelError(f"{name} has a {file.name} that is no JSON object: pull or copy the model again.")
    return cast("dict[str, Any]", value)


def read_json_if_there(file: Path, name: str) -> dict[str, Any]:
    """The object in `file`; an empty one where there is no such file. Raises ModelError."""
    return read_json(file, name) if file.is_file() else {}
