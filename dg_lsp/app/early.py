"""An engine that starts beside the language server, which itself takes a second until it can ask for one."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from dg_lsp.backend.launch import Launch, begin
from dg_lsp.config.settings import Settings, applied
from dg_lsp.protocol.initialize import section
from engine.core.errors import EngineError
from engine.ipc.address import find_engine


def begin_engine(initialize: bytes, launch: Launch) -> subprocess.Popen[bytes] | None:
    """Begin to start the engine that an `initialize` request asks for. Not where one seems to run, suggestions are
    switched off, or the client has yet to be asked for its settings; nor where that fails, which is told in time."""
    params: dict[str, Any] = json.loads(initialize)["params"]
    given = params.get("initializationOptions")
    if not given and (params["capabilities"].get("workspace") or {}).get("configuration"):
        return None
    settings, _ = applied(Settings(), section(given))
    try:
        return begin(launch.chosen(settings.engine)) if settings.enabled and find_engine() is None else None
    except EngineError:
        return None
