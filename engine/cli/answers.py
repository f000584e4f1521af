"""Answers for the commands, from the engine that all editors share or from a model in this process."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import cast

import click
from msgspec.structs import replace

from engine.common.client import EngineFailure, Exchange, OnDraft, conversation
from engine.common.errors import BadInput, BodyError, EngineError, ModelError
from engine.common.messages import Fill, FillReply, StatusQuery, StatusReply
from engine.common.names import Device, rooted
from engine.common.processes import working_dir
from engine.common.request import Filled, FillRequest
from engine.server.settings import EngineOptions, with_given, write_options

_SILENCE_S = EngineOptions().stall_s + 30
"""Time limit of an answer. The engine reports a hung model by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    filled: Filled
    source: str
    """Where the answer is from, such as "in this process"."""
    instructed: bool
    """Whether the model follows instructions; only known if the request has one."""


def answer(
    request: FillRequest,
    model: str | None,
    device: str | None,
    *,
    engine: bool,
    canvas: bool = False,
    on_draft: OnDraft | None = None,
) -> Answer:
    """An answer from the engine, which is started if none runs; from a model in this process if `engine` is False or
    the running engine has another model or device than named, and by a coder's own `canvas` alone. `on_draft` is called
    with the canvas after each step. Raises EngineError.
    """
    if canvas or not engine:
        return _own(request, model, device, on_draft, canvas=canvas)
    with conversation(_SILENCE_S) as exchange:
        running = exchange.welcome if exchange and exchange.stays else None
        is_other = running is not None and (
            (model and running.model != rooted(model, working_dir())) or (device and running.device != device)
        )
        if exchange and running and not is_other:
            return _of_engine(exchange, request, on_draft, "in the engine that runs")
    if running is None:
        from engine.server.launch import start_detached
        from engine.server.options import named_from_here

        # The engine checks them itself: it has the needed modules imported.
        started = named_from_here(with_given(EngineOptions(), model=model, device=device))
        start_detached(write_options(started))
        try:
            with conversation(_SILENCE_S) as exchange:
                return _of_engine(exchange, request, on_draft, "in the engine, now started")
        except ModelError:
            # The engine was started for this answer, and would fail the next client.
            from engine.server.stopping import stop

            stop()
            raise
    click.echo(
        f"dg-lsp: the engine runs with model {running.model}, device {running.device}; another one is loaded here "
        "for this answer.",
        err=True,
    )
    return _own(request, model, device, on_draft)


def _of_engine(exchange: Exchange | None, request: FillRequest, on_draft: OnDraft | None, source: str) -> Answer:
    if exchange is None:
        raise EngineError("The engine ended before it answered: try again, or use --no-engine.")
    try:
        # Always request drafts: they show that the engine works.
        reply = exchange(Fill(id=1, request=request, drafts=True), on_draft)
    except EngineFailure as failure:
        known = {"bad_request": BadInput, "model": ModelError}
        raise (known[failure.code](str(failure)) if failure.code in known else failure) from None
    except BodyError as error:
        raise BadInput(f"{error} With --no-engine the model is loaded in this process and accepts any file.") from None
    report = exchange(StatusQuery(id=2)) if request.instruction else None
    assert isinstance(reply, FillReply)
    instructed = isinstance(report, StatusReply) and report.status.instructions is True
    return Answer(filled=reply.filled, source=source, instructed=instructed)


def _own(
    request: FillRequest, model: str | None, device: str | None, on_draft: OnDraft | None, *, canvas: bool = False
) -> Answer:
    options, began = EngineOptions(), time.perf_counter()
    # Not needed for an answer from the engine.
    from engine.common import torch_import

    torch_import.defer()
    from engine.fill.loading import load

    infiller = load(model or options.model, cast("Device", device or options.device))
    load_ms = (time.perf_counter() - began) * 1000
    filled = (infiller.by_canvas if canvas else infiller.answer)(request, on_draft)
    ms = replace(filled.ms, load=load_ms, total=filled.ms.total + load_ms)
    instructed = infiller.model.info.instructions
    return Answer(filled=replace(filled, ms=ms), source="in this process", instructed=instructed)
