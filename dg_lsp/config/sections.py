"""Finds our settings among those that an editor sends. Imported before anything heavy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

SECTIONS = ("dg-lsp", "dg")
"""The names of our section."""
COPILOTS = frozenset(
    {
        "editorInfo",
        "editorPluginInfo",
        "editorConfiguration",
        "networkProxy",
        "copilotCapabilities",
        "nextEditSuggestions",
        "telemetry",
        "http",
        "github-enterprise",
        "github",
    }
)
"""Keys that clients of Copilot's language server send, which are not ours."""


def section(given: object) -> object:
    """Our settings, whether the editor sends them under a section name or alone."""
    ours = given
    if isinstance(given, Mapping):
        table = cast(Mapping[str, object], given)
        alone = {key: value for key, value in table.items() if key not in COPILOTS}
        ours = next((table[name] for name in SECTIONS if name in table), alone)
    # Lua can't tell an empty table from an empty list.
    return {} if ours == [] else ours
