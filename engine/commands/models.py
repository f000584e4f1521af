"""`dg-lsp models`: what can be loaded on this machine."""

from __future__ import annotations

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from engine.catalog import bundled, cached
from engine.checkpoint import Checkpoint
from engine.commands.exits import one_line_errors
from engine.errors import ModelError
from engine.sizes import decimal_bytes


@one_line_errors()
def models() -> None:
    """List the bundled model and what the local Hugging Face cache holds."""
    in_cache = cached()
    table = Table(box=SIMPLE_HEAD)
    for title in ("model", "where", "size", "parameters", "family", "length"):
        table.add_column(title, justify="right" if title in ("size", "parameters") else "left")
    try:
        _add(table, bundled(), "package")
    except ModelError as error:
        typer.echo(f"dg-lsp: {error}", err=True)
    for checkpoint in in_cache.checkpoints:
        _add(table, checkpoint, "cache")
    console = Console()
    console.print(table)
    if in_cache.unusable:
        console.print(f"{in_cache.unusable} more in the cache are incomplete or of families that dg-lsp can't run.")


def _add(table: Table, checkpoint: Checkpoint, where: str) -> None:
    parameters = f"{checkpoint.parameters / 1e6:,.1f} M"
    table.add_row(
        checkpoint.name, where, decimal_bytes(checkpoint.nbytes), parameters, checkpoint.family, checkpoint.length
    )
