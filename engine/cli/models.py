"""`dg-lsp models`: models on this machine, models to download, and a recommendation."""

from __future__ import annotations

from contextlib import suppress

import click

from engine.common.errors import ModelError
from engine.common.exits import one_line_errors
from engine.common.sizes import binary_bytes, decimal_bytes
from engine.common.terminal import shown
from engine.models.checkpoints.catalog import NotCached, bundled, cached, coder_file
from engine.models.checkpoints.checkpoint import read_checkpoint
from engine.models.checkpoints.choice import choose
from engine.models.checkpoints.coders import CODERS
from engine.models.checkpoints.directory import Checkpoint
from engine.models.checkpoints.released import RELEASED, advice


@click.command()
@one_line_errors()
def models() -> None:
    """List models: the bundled one, those in the local Hugging Face cache and those on the Hub, and recommend one."""
    in_cache = cached()
    click.echo("On this machine, for --model:")
    try:
        _show(bundled(), "package")
    except ModelError as error:
        click.echo(f"dg-lsp: {error}", err=True)
    for coder in CODERS.values():
        with suppress(NotCached):
            _show(read_checkpoint(coder_file(coder), coder.name), "disk")
    for checkpoint in in_cache.checkpoints:
        _show(checkpoint, "cache")
    for said in in_cache.damaged:
        click.echo(" ".join(said.split()))
    if in_cache.others:
        click.echo(f"{in_cache.others} more in the cache are incomplete or of unsupported families.")
    choice = choose()
    click.echo(shown(f"auto is {choice.name}: {choice.why}."))
    if choice.advice:
        click.echo(choice.advice)
    click.echo("\nFor `dg-lsp pull`:")
    for coder in CODERS.values():
        _entry(coder.name, f"{decimal_bytes(coder.nbytes)} to download", f"licence: {coder.licence}")
    for each in RELEASED:
        memory = binary_bytes(each.memory.total)
        _entry(
            each.hub_id,
            f"{decimal_bytes(each.download_nbytes)} to download, {memory} of memory to run",
            f"licence: {each.licence}; good for {each.good_for}",
        )
    # Querying a GPU needs torch, whose import takes a second.
    from engine.models.checkpoints.placement import this_machine

    click.echo(f"\n{advice(this_machine().gpus)}")


def _show(checkpoint: Checkpoint, where: str) -> None:
    parameters = f"{checkpoint.parameters / 1e6:,.1f} M parameters"
    _entry(checkpoint.name, f"{where}, {decimal_bytes(checkpoint.nbytes)}, {parameters}")


def _entry(name: str, *lines: str) -> None:
    """The name on its own line, uncut, so that it can be copied from a narrow terminal."""
    click.echo(shown("\n".join([name, *(f"    {line}" for line in lines)])))
