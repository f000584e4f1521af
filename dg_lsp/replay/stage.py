"""Where a session is played: a language server in a process of its own, with an engine that may be its own, too."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psutil

from dg_lsp.documents.positions import Encoding
from dg_lsp.replay.connection import ServerConnection
from dg_lsp.replay.editor import Editor
from dg_lsp.replay.player import Player, Style
from dg_lsp.replay.report import Cost, Report, report
from dg_lsp.replay.session import Session, SessionError
from engine.core.processes import python_module

READY_S = 300.0
"""For the model to load, perhaps to be downloaded."""
_LOOK_S = 0.05


async def play(
    session: Session,
    style: Style,
    *,
    model: str,
    speed: float,
    environment: Mapping[str, str],
    settings: Mapping[str, Any],
) -> Report:
    """Play a session and measure it. Raises SessionError where the server does not get ready."""
    command = [*python_module("dg_lsp"), "serve"]
    command = [*command, "--model", model] if model else command
    began_s = time.perf_counter()
    async with _served(command, environment, style, settings) as (wire, encoding):
        greeting_ms = (time.perf_counter() - began_s) * 1000
        before = await _ready(wire)
        server, engine = psutil.Process(wire.process.pid), psutil.Process(before["engine"]["pid"])
        server_ms, engine_ms = _worked_ms(server), _worked_ms(engine)
        player = Player(Editor(wire, encoding), style, speed)
        outcome = await player.play(session)
        after = await wire.request("dg/status", {"engine": True})
        cost = Cost(
            greeting_ms=round(greeting_ms, 1),
            resident_mib=round(server.memory_info().rss / 2**20, 1),
            server_ms=round((_worked_ms(server) - server_ms) / max(outcome.requests, 1), 2),
            engine_ms=round((_worked_ms(engine) - engine_ms) / max(outcome.requests, 1), 2),
        )
    return report(session.title, style.name, cost, outcome, before, after)


def _worked_ms(process: psutil.Process) -> float:
    """Processor time; waiting does not count."""
    times = process.cpu_times()
    return (times.user + times.system) * 1000


@contextmanager
def own_engine() -> Generator[dict[str, str]]:
    """The environment of an engine apart from the user's; it is stopped at the end."""
    # A short path: a socket's may not be long.
    with tempfile.TemporaryDirectory(prefix="dg-") as folder:
        environment = {**os.environ, "DG_LSP_RUNTIME_DIR": f"{folder}/run", "DG_LSP_STATE_DIR": f"{folder}/state"}
        try:
            yield environment
        finally:
            stop = [*python_module("engine"), "stop"]
            subprocess.run(stop, env=environment, stdout=subprocess.DEVNULL, check=False, timeout=60)


@asynccontextmanager
async def _served(
    command: list[str], environment: Mapping[str, str], style: Style, settings: Mapping[str, Any]
) -> AsyncGenerator[tuple[ServerConnection, Encoding]]:
    wire = await ServerConnection.start(command, environment)
    try:
        yield wire, await _greeted(wire, style, settings)
    finally:
        await wire.close()


async def _greeted(wire: ServerConnection, style: Style, settings: Mapping[str, Any]) -> Encoding:
    offered = {
        "general": {"positionEncodings": list(style.encodings)},
        "textDocument": {"inlineCompletion": {"dynamicRegistration": False}},
    }
    # A replay says nothing about the user.
    options = {**settings, "stats": False}
    params = {"processId": None, "rootUri": None, "capabilities": offered, "initializationOptions": options}
    result = await wire.request("initialize", params)
    wire.notify("initialized", {})
    return result["capabilities"]["positionEncoding"]


async def _ready(wire: ServerConnection) -> dict[str, Any]:
    """The server's account once the model is loaded."""
    ends_s = time.monotonic() + READY_S
    while time.monotonic() < ends_s:
        told = await wire.request("dg/status", {"engine": True})
        if told["state"] == "error":
            raise SessionError(told["message"])
        if told["state"] == "ready" and told["engine"].get("loaded_s") is not None:
            return told
        await asyncio.sleep(_LOOK_S)
    raise SessionError(f"The model was not ready within {READY_S:g} s.")
