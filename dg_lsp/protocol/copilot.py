"""Peculiarities of clients of GitHub's Copilot Language Server. Imported before anything heavy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

UTF_16_ONLY = frozenset({"Github Copilot LSP for Neovim"})
"""Plugins, by `editorPluginInfo.name`, that send positions in UTF-16 whatever encoding was agreed on. Neovim, which
sends their document changes, keeps to the agreement, so UTF-16 is agreed on."""


def is_copilots(options: object) -> bool:
    """Whether a client's `initializationOptions` are those for Copilot's language server."""
    return isinstance(options, Mapping) and "editorInfo" in options


def understood(params: Any) -> Any:
    """The parameters of `initialize` without position encodings that the client ignores; else unchanged."""
    if not isinstance(params, Mapping) or not _writes_utf_16(table(params, "initializationOptions")):
        return cast(object, params)
    capabilities = table(params, "capabilities")
    general = {**table(capabilities, "general"), "positionEncodings": ["utf-16"]}
    return {**params, "capabilities": {**capabilities, "general": general}}


def _writes_utf_16(options: Mapping[str, object]) -> bool:
    name = table(options, "editorPluginInfo").get("name")
    return isinstance(name, str) and name in UTF_16_ONLY


def table(held: Mapping[Any, Any], key: str) -> Mapping[str, object]:
    """The table under a key; empty where there is none."""
    value = held.get(key)
    return cast(Mapping[str, object], value) if isinstance(value, Mapping) else {}
