"""Values as Lua writes them."""

from __future__ import annotations

import json
from typing import Any


def as_lua(value: Any) -> str:
    """A Lua expression for a JSON value."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"[{json.dumps(key)}] = {as_lua(held)}" for key, held in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "{ " + ", ".join(as_lua(held) for held in value) + " }"
    return "nil" if value is None else json.dumps(value, ensure_ascii=False)
