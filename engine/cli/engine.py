"""`dg-lsp engine`: run, inspect, stop and restart the engine that all editors share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from msgspec.json import encode

from engine.cli.options import json_option
from engine.common.client import EngineFailure, NoAnswer, ask
from engine.common.exits import FAILURE, one_line_errors
from engine.common.http_address import http_address
from engine.common.messages import EngineStatus, Percentiles, StatusQuery, StatusReply
from engine.common.names import AUTO
from engine.common.options import F, FiniteRange, OrderedGroup, together
from engine.common.sizes import binary_bytes
from engine.common.terminal import shown_name
from engine.common.wording import counted, wrapped
from engine.server.http.prerequisites import bound
from engine.server.settings import EngineOptions, with_given, write_options

_DEFAULT = EngineOptions()
_ALREADY = "An engine is running already."
_FIRST = "The engine runs. An editor started it first, with the editor's settings: restart it again to change them."
_NONE = "No engine is running."
_COLUMN = 10
"""Column of the values in the status."""

_MODEL = "bundled, a folder, a Hub id, vllm+https://HOST:PORT/MODEL on a server, or oracle:FILE.json for tests"

run_options = together(
    click.option("--model", default=_DEFAULT.model, help=f"The model: {_MODEL}."),
    click.option("--device", default=_DEFAULT.device, help="The device: auto, cpu or cuda."),
    click.option("--detach", is_flag=True, help="Run in the background; return once it answers."),
)


def token_file_option(*names: str) -> Callable[[F], F]:
    """An option; its last name may be that of the parameter."""
    return click.option(
        *names, metavar="FILE", help="A file with the API key that HTTP clients must send, readable only by you."
    )


def _limits_and_http(defaults: EngineOptions | None) -> Callable[[F], F]:
    """The engine's other options, as parameters named as in EngineOptions."""
    seconds = {
        ("--unload-after", "unload_after_s"): "Seconds without a request after which the model is unloaded.",
        ("--exit-after", "exit_after_s"): "Seconds without a client after which the engine ends.",
        ("--stall-after", "stall_s"): "Seconds after which a step of the model counts as hung.",
    }
    return together(
        *(
            click.option(*names, type=FiniteRange(0.1), default=defaults and getattr(defaults, names[1]), help=help)
            for names, help in seconds.items()
        ),
        click.option(
            "--http",
            metavar="HOST:PORT",
            help="Address to serve HTTP clients of llama.cpp or OpenAI; empty: none.",
        ),
        token_file_option("--http-token-file"),
    )


@click.group(cls=OrderedGroup, context_settings={"show_default": True})
def engine() -> None:
    """Start, stop or inspect the engine that all editors share."""


@engine.command()
@run_options
@_limits_and_http(_DEFAULT)
@one_line_errors()
def run(detach: bool, **given: Any) -> None:
    """Run the engine, unless one runs already."""
    # Imported here because `status` needs none of it.
    from engine.server.options import chosen_options

    settings = chosen_options(with_given(_DEFAULT, **given))
    if detach:
        _start(settings)
    elif not run_here(settings):
        click.echo(_ALREADY)


@engine.command()
@json_option
@one_line_errors()
def status(json: bool) -> None:
    """Show the engine's status. Exits with 1 if none runs."""
    report = ask_status()
    if json:
        click.echo(encode(report))
    else:
        lines = [wrapped(shown_name(line), indent=_COLUMN) for line in _lines(report)] if report else [_NONE]
        click.echo("\n".join(lines))
    if report is None:
        raise click.exceptions.Exit(FAILURE)


@engine.command()
@one_line_errors()
def stop() -> None:
    """Stop the engine, for all clients."""
    from engine.server import stopping

    click.echo("The engine has stopped." if stopping.stop() else _NONE)


@engine.command()
@click.option("--model", help="Another model.")
@click.option("--device", help="Another device.")
@_limits_and_http(None)
@one_line_errors()
def restart(**given: Any) -> None:
    """Stop the engine, if one runs, and start one in the background. It keeps its options, unless they are given here
    or the engine does not answer."""
    from engine.models.addressed import named
    from engine.server import stopping
    from engine.server.options import chosen_options

    try:
        before = ask_status()
    except (NoAnswer, EngineFailure):
        # The engine hangs, is of another version, or has too many clients.
        before = None
        click.echo("dg-lsp: the engine does not tell its options; those not given here get their defaults.", err=True)
    settings = chosen_options(with_given(as_before(before), **given))
    if settings.http and before:
        address = http_address(settings.http)
        if not before.http or http_address(before.http).port != address.port:
            # The running engine may still use the address.
            bound(address).close()
    if settings.device == "cuda" and named(settings.model).opened is None:
        # This check takes seconds; a new engine reports the problem itself.
        import torch

        from engine.models.checkpoints.placement import check_cuda

        check_cuda(settings.device, torch.cuda.is_available())
    stopping.stop()
    _start(settings, _FIRST)


def _start(settings: EngineOptions, already: str = _ALREADY) -> None:
    """Start an engine in the background and print its HTTP address; `already`: the message if one runs."""
    from engine.server.launch import start_detached

    if not start_detached(write_options(settings)):
        click.echo(already)
        return
    status = ask_status() if settings.http else None
    click.echo(f"The engine runs and serves http://{status.http}." if status else "The engine runs.")


def run_here(settings: EngineOptions) -> bool:
    """Run the engine in this process until it ends; False if one runs already."""
    # Not needed to start one in the background.
    from engine.server import process

    return process.run(settings)


def as_before(before: EngineStatus | None) -> EngineOptions:
    """The running engine's options; the defaults if none runs."""
    if before is None:
        return _DEFAULT
    return EngineOptions(
        model=AUTO if before.auto else before.model,
        device=before.requested_device,
        unload_after_s=before.unload_after_s,
        exit_after_s=before.exit_after_s,
        stall_s=before.stall_after_s,
        http=before.http,
        http_token_file=before.http_token_file,
    )


def ask_status() -> EngineStatus | None:
    """The running engine's status; None if none runs."""
    report = ask(StatusQuery(id=1))
    return report.status if isinstance(report, StatusReply) else None


def _lines(status: EngineStatus) -> list[str]:
    loaded = "not loaded" if status.loaded_s is None else f"loaded {_duration(status.loaded_s)} ago"
    memory = binary_bytes(status.rss_nbytes) + (
        f", {binary_bytes(status.device_nbytes)} of {binary_bytes(status.device_total_nbytes)} on the device"
        if status.device_nbytes
        else ""
    )
    plan = f"; {status.memory.summary()}" if status.memory else ""
    failed = "".join(f", {count} {code}" for code, count in sorted(status.failed.items()))
    tokens = "" if status.tokens_per_forward is None else f", {status.tokens_per_forward:.1f} tokens each"
    learnt = "; ".join(each.trouble or each.folder for each in status.adapters)
    return [
        f"model     {status.model} on {status.device}, {loaded}{_chosen(status)}",
        f"state     {' '.join(filter(None, (status.state.name, status.state.message)))}",
        f"process   {status.pid}, version {status.engine}, up {_duration(status.up_s)}",
        f"memory    {memory}{plan}",
        f"adapters  {learnt or 'none in use'}",
        f"limits    unload after {status.unload_after_s:g} s, exit after {status.exit_after_s:g} s, "
        f"stall after {status.stall_after_s:g} s",
        f"http      {status.http or 'off'}",
        f"clients   {len(status.clients)}{': ' + ', '.join(status.clients) if any(status.clients) else ''}",
        f"queue     {status.running} running, {status.queued} waiting",
        f"served    {status.served}{failed}",
        f"encode    {_percentiles(status.encode_ms)}",
        f"step      {_percentiles(status.step_ms)}",
        f"total     {_percentiles(status.total_ms)}",
        f"syntax    checker restarted {counted(status.checker_restarts, 'time')}, "
        f"{counted(status.set_aside, 'document')} not checked for now",
        f"forwards  {status.forwards}, {status.shared_forwards} of them shared{tokens}",
        f"cache     {status.cached_tokens} of {counted(status.context_tokens, 'context token')}",
        f"log       {status.log}",
    ]


def _chosen(status: EngineStatus) -> str:
    if not status.auto:
        return ""
    from engine.models.checkpoints.choice import choose

    choice = choose()
    why = choice.why if choice.name == status.model else f"a restart would take {choice.name}: {choice.why}"
    return f"; chosen by itself ({why})"


def _percentiles(times: Percentiles) -> str:
    return "-" if times.p50 is None else f"p50 {times.p50:.1f} ms, p95 {times.p95:.1f} ms"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
