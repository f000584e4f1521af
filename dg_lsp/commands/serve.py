"""`dg-lsp serve`."""

from __future__ import annotations

import os
import sys
from itertools import chain
from typing import Annotated, BinaryIO

import typer

from dg_lsp.protocol.framing import frame, messages
from dg_lsp.protocol.initialize import answer_to


def serve(
    model: Annotated[str, typer.Option(help="The model, if no engine runs yet; else the editor's setting.")] = "",
    device: Annotated[str, typer.Option(help="The device, if no engine runs yet; else the editor's setting.")] = "",
) -> None:
    """Speak the Language Server Protocol on standard input and output."""
    incoming, outgoing = _standard_streams()
    code = _converse(incoming, outgoing, model=model, device=device)
    # The reader may be waiting for input in a thread that can't be woken; nothing is left to clean up.
    sys.stderr.flush()
    os._exit(code)


def _converse(incoming: BinaryIO, outgoing: BinaryIO, *, model: str, device: str) -> int:
    bodies = messages(incoming)
    first = next(bodies, None)
    if first is None:
        return 1
    greeting = answer_to(first)
    if greeting:
        outgoing.write(frame(greeting[1]))
        outgoing.flush()
    from dg_lsp.app.early import begin_engine
    from dg_lsp.backend.launch import Launch

    launch = Launch(model=model, device=device)
    begun = begin_engine(first, launch) if greeting else None
    # Imported after the greeting: this takes longer than everything before it.
    from dg_lsp.app.session import run

    return run(chain([first], bodies), outgoing, launch, greeting and greeting[0], begun)


def _standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """Private copies of standard input and output, so that a stray print can't end up between two messages."""
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return incoming, outgoing
