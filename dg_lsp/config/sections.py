"""Where our settings stand among those that an editor sends. Needed before anything heavy is imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

SECTIONS = ("dg-lsp", "dg")
"""The names under which editors may keep them among those of others."""
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
"""What clients of Copilot's language server tell that server by these names, and us with it."""


def section(given: object) -> object:
    """Ours, where an editor sends them under a name or alone."""
    ours = given
    if isinstance(given, Mapping):
        table = cast(Mapping[str, object], given)
        alone = {key: value for key, value in table.items() if key not in COPILOTS}
        ours = next((table[name] for name in SECTIONS if name in table), alone)
    # Lua has one empty table for both.
    return {} if ours == [] else ours
