"""`dg-lsp models`: what can be loaded on this machine, what could be downloaded, and what suits it."""

from __future__ import annotations

import click

from engine.common.errors import ModelError
from engine.common.exits import one_line_errors
from engine.common.sizes import binary_bytes, decimal_bytes
from engine.common.terminal import shown
from engine.models.checkpoints.catalog import bundled, cached
from engine.models.checkpoints.directory import Checkpoint
from engine.models.checkpoints.released import RELEASED, advice


@click.command()
@one_line_errors()
def models() -> None:
    """List the bundled model, what the local Hugging Face cache holds and what the Hub has, and recommend one."""
    in_cache = cached()
    click.echo("Here, for --model:")
    try:
        _show(bundled(), "package")
    except ModelError as error:
        click.echo(f"dg-lsp: {error}", err=True)
    for checkpoint in in_cache.checkpoints:
        _show(checkpoint, "cache")
    for said in in_cache.damaged:
        click.echo(" ".join(said.split()))
    if in_cache.others:
        click.echo(f"{in_cache.others} more in the cache are incomplete or of families that dg-lsp can't run.")
    click.echo("\nOn the Hub, for `dg-lsp pull`:")
    for each in RELEASED:
        memory = binary_bytes(each.memory.total)
        _entry(
            each.hub_id,
            f"{decimal_bytes(each.download_nbytes)} to download, {memory} of memory to run, {each.length}",
            f"licence: {each.licence}; good for {each.good_for}",
        )
    # It takes torch to ask a GPU, and a second to import it.
    from engine.models.checkpoints.placement import this_machine

    click.echo(f"\n{advice(this_machine().gpus)}")


def _show(checkpoint: Checkpoint, where: str) -> None:
    parameters = f"{checkpoint.parameters / 1e6:,.1f} M parameters"
    size = decimal_bytes(checkpoint.nbytes)
    _entry(checkpoint.name, f"{where}, {size}, {parameters}, {checkpoint.family}, {checkpoint.length}")


def _entry(name: str, *lines: str) -> None:
    """The name on a line of its own, as it is typed: what a narrow terminal cut off nobody could type."""
    click.echo(shown("\n".join([name, *(f"    {line}" for line in lines)])))
