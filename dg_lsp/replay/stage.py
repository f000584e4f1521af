"""Plays a session against a language server in its own process, with a separate engine if wanted. With `--oracle` the
model knows the session and costs next to nothing, so that the rest is measured."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from dg_lsp.replay.clients import STYLES
from dg_lsp.replay.connection import ServerConnection, served
from dg_lsp.replay.editor import Editor
from dg_lsp.replay.player import Player
from dg_lsp.replay.report import report
from dg_lsp.replay.session import Focus, Move, Open, Session, SessionError
from engine.common.processes import python_module

READY_S = 300.0
"""How long the model may take to load."""
_LOOK_S = 0.05
REACH = 120
"""Tokens of an oracle's suggestion; longer ones would be cut by the engine."""
SETTINGS = {"inline": {"max_tokens": REACH + 8}, "context": {"workspace": False}}
"""The settings for the oracle: long enough for its suggestions, and without workspace matches, which it would accept
without denoising."""


async def play(
    session: Session,
    client: str,
    *,
    model: str,
    speed: float,
    environment: Mapping[str, str],
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Play a session as a client of STYLES and measure it. Raises SessionError where the model does not load.

    The costs: time from the server's start to its answer to `initialize`, the server's memory at the end, and the
    processor time of server and engine by request, everything included.
    """
    command = [*python_module("dg_lsp"), "serve", *(["--model", model] if model else [])]
    style = STYLES[client]
    began_s = time.perf_counter()
    async with served(command, environment, encodings=style.encodings, settings=settings) as wire:
        initialize_ms = (time.perf_counter() - began_s) * 1000
        before = await ready(wire)
        server, engine = psutil.Process(wire.process.pid), psutil.Process(before["engine"]["pid"])
        worked = [_worked_ms(server), _worked_ms(engine)]
        player = Player(Editor(wire, wire.initialized["capabilities"]["positionEncoding"]), style, speed)
        outcome = await player.play(session)
        after = await wire.request("dg/status", {"engine": True})
        spent_ms = [_worked_ms(process) - then for process, then in zip((server, engine), worked, strict=True)]
        cost = {
            "initialize_ms": round(initialize_ms, 1),
            "resident_mib": round(server.memory_info().rss / 2**20, 1),
            "server_ms": round(spent_ms[0] / max(outcome.requests, 1), 2),
            "engine_ms": round(spent_ms[1] / max(outcome.requests, 1), 2),
        }
    return report(session.title, client, cost, outcome, before, after)


async def ready(wire: ServerConnection) -> dict[str, Any]:
    """The server's status once the model is loaded. Raises SessionError."""
    ends_s = time.monotonic() + READY_S
    while time.monotonic() < ends_s:
        status = await wire.request("dg/status", {"engine": True})
        if status["state"] == "error":
            raise SessionError(status["message"])
        if status["state"] == "ready" and status["engine"].get("loaded_s") is not None:
            return status
        await asyncio.sleep(_LOOK_S)
    raise SessionError(f"The model was not ready within {READY_S:g} s.")


@contextmanager
def own_engine() -> Generator[dict[str, str]]:
    """The environment for an engine separate from the user's, which is stopped at the end."""
    # A short path: a socket's may not be long.
    with tempfile.TemporaryDirectory(prefix="dg-") as folder:
        environment = {**os.environ, "DG_LSP_RUNTIME_DIR": f"{folder}/run", "DG_LSP_STATE_DIR": f"{folder}/state"}
        try:
            yield environment
        finally:
            stop = [*python_module("engine"), "stop"]
            subprocess.run(stop, env=environment, stdout=subprocess.DEVNULL, check=False, timeout=60)


@contextmanager
def oracle(session: Session) -> Generator[str]:
    """The name of a model that knows a session, for the duration of the block."""
    # The latest first: where old and new text share a gap's surroundings, the new one is wanted.
    cases = [
        {"text": f"▮{text}▮", "language": language, "reach": REACH}
        for text, language in reversed(settled_texts(session))
    ]
    with tempfile.TemporaryDirectory(prefix="dg-") as folder:
        path = Path(folder, "oracle.json")
        path.write_text(json.dumps({"cases": cases}), encoding="utf-8")
        yield f"oracle:{path}"


def settled_texts(session: Session) -> list[tuple[str, str]]:
    """Texts of documents, each with its language, each time the user moved on to another place."""
    editor, settled = Editor(None, "utf-32"), dict[tuple[str, str], None]()
    last = len(session.events) - 1
    for at, event in enumerate(session.events):
        editor.do(event)
        if isinstance(event, Open | Focus | Move) or at == last:
            settled.update(dict.fromkeys((held.text, held.language) for held in editor.buffers.values()))
    return [(text, language) for text, language in settled if "▮" not in text]


def _worked_ms(process: psutil.Process) -> float:
    """Processor time in milliseconds."""
    times = process.cpu_times()
    return (times.user + times.system) * 1000
