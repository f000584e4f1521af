"""A session on standard input and output."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from dg_lsp.config.sections import section
from dg_lsp.protocol.framing import frame, messages
from dg_lsp.protocol.initialize import ClientHello, answer_to
from engine.common.json_values import read_json

if TYPE_CHECKING:
    import subprocess

    from dg_lsp.backend.launch import Launch

_NOTHING = object()


def serve(*, model: str = "", device: str = "") -> NoReturn:
    """Serve one client, then end the process. `model` and `device` override the editor's settings."""
    incoming, outgoing = _standard_streams()
    code = _converse(incoming, outgoing, model=model, device=device)
    # The reader may be waiting for input in a thread that can't be woken; nothing is left to clean up.
    sys.stderr.flush()
    os._exit(code)


def _converse(incoming: BinaryIO, outgoing: BinaryIO, *, model: str, device: str) -> int:
    values = map(read_json, messages(incoming))
    first: Any = next(values, _NOTHING)
    if first is _NOTHING:
        return 1
    answered = answer_to(first)
    if answered:
        outgoing.write(frame(answered[1]))
        outgoing.flush()
    # Imported after the answer: this takes longer than everything before it.
    from dg_lsp.backend.launch import Launch

    launch = Launch(model=model, device=device)
    begun = begin_engine(first["params"], launch) if answered else None
    import asyncio

    from dg_lsp.app.session import run

    return asyncio.run(run(chain([first], values), outgoing, launch, answered and answered[0], begun))


def begin_engine(params: Mapping[str, Any], launch: Launch) -> subprocess.Popen[bytes] | None:
    """Start the engine for the settings in an `initialize` request, a second before the rest of the language server is
    imported. None where an engine seems to run, suggestions are off, the settings are still to be requested, or it
    fails: a later start reports that."""
    from dg_lsp.backend.launch import begin
    from dg_lsp.config.settings import Settings, applied
    from engine.common.address import find_engine
    from engine.common.errors import EngineError

    hello = ClientHello(params)
    if not hello.options and hello.can("workspace", "configuration"):
        return None
    settings, _ = applied(Settings(), section(hello.options))
    try:
        return begin(launch.chosen(settings.engine)) if settings.enabled and find_engine() is None else None
    except EngineError:
        return None


def _standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """Private copies of standard input and output, so that a stray print can't corrupt the messages."""
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return incoming, outgoing
