"""What is particular about clients of GitHub's Copilot Language Server. Needed before anything heavy is imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

UTF_16_ONLY = frozenset({"Github Copilot LSP for Neovim"})
"""Plugins that write positions in UTF-16 whatever was agreed on, by `editorPluginInfo.name`. Neovim, which sends the
changes to documents for them, keeps to the agreement: so that both are right, UTF-16 is what is agreed on."""


def is_copilots(options: object) -> bool:
    """Whether a client says in its `initializationOptions` what Copilot's language server demands to know."""
    return isinstance(options, Mapping) and "editorInfo" in options


def understood(params: Any) -> Any:
    """The parameters of `initialize`, offering no encoding that the client does not keep to. Whatever else they are,
    they are returned as they are."""
    if not isinstance(params, Mapping) or not _writes_utf_16(table(params, "initializationOptions")):
        return cast(object, params)
    capabilities = table(params, "capabilities")
    general = {**table(capabilities, "general"), "positionEncodings": ["utf-16"]}
    return {**params, "capabilities": {**capabilities, "general": general}}


def _writes_utf_16(options: Mapping[str, object]) -> bool:
    name = table(options, "editorPluginInfo").get("name")
    return isinstance(name, str) and name in UTF_16_ONLY


def table(held: Mapping[Any, Any], key: str) -> Mapping[str, object]:
    """The table of that name; an empty one where there is none, or something else."""
    value = held.get(key)
    return cast(Mapping[str, object], value) if isinstance(value, Mapping) else {}
