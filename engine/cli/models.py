"""`dg-lsp models`: what can be loaded on this machine, what could be downloaded, and what suits it."""

from __future__ import annotations

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from engine.checkpoints.directory import Checkpoint
from engine.core.errors import ModelError
from engine.core.exits import one_line_errors
from engine.core.sizes import binary_bytes, decimal_bytes
from engine.loader.catalog import bundled, cached
from engine.loader.released import RELEASED, advice

_RIGHT = ("size", "parameters", "download", "memory")


@one_line_errors()
def models() -> None:
    """List the bundled model, what the local Hugging Face cache holds and what the Hub has, and recommend one."""
    in_cache = cached()
    here = _table("model", "where", "size", "parameters", "family", "length")
    try:
        _add(here, bundled(), "package")
    except ModelError as error:
        typer.echo(f"dg-lsp: {error}", err=True)
    for checkpoint in in_cache.checkpoints:
        _add(here, checkpoint, "cache")
    console = Console()
    console.print(here)
    for said in in_cache.damaged:
        console.print(" ".join(said.split()), soft_wrap=True, markup=False)
    if in_cache.others:
        console.print(f"{in_cache.others} more in the cache are incomplete or of families that dg-lsp can't run.")
    there = _table("dg-lsp pull", "download", "memory", "licence", "length", "good for")
    for each in RELEASED:
        download, memory = decimal_bytes(each.download_nbytes), binary_bytes(each.memory_nbytes)
        there.add_row(each.hub_id, download, memory, each.licence, each.length, each.good_for)
    console.print(there)
    # It takes torch to ask a GPU, and a second to import it.
    from engine.checkpoints.placement import this_machine

    console.print(advice(this_machine().gpus), soft_wrap=True)


def _table(*titles: str) -> Table:
    table = Table(box=SIMPLE_HEAD)
    for title in titles:
        table.add_column(title, justify="right" if title in _RIGHT else "left")
    return table


def _add(table: Table, checkpoint: Checkpoint, where: str) -> None:
    parameters = f"{checkpoint.parameters / 1e6:,.1f} M"
    table.add_row(
        checkpoint.name, where, decimal_bytes(checkpoint.nbytes), parameters, checkpoint.family, checkpoint.length
    )
