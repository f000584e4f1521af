"""`dg-lsp serve`."""

from __future__ import annotations

import click

from dg_lsp.app import standard_io


@click.command()
@click.option(
    "--model", default="", show_default=False, help="The model to start an engine with; default: the editor's setting."
)
@click.option(
    "--device", default="", show_default=False, help="The device to start an engine on; default: the editor's setting."
)
def serve(model: str, device: str) -> None:
    """Speak the Language Server Protocol on standard input and output."""
    standard_io.serve(model=model, device=device)
