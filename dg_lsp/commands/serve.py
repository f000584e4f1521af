"""`dg-lsp serve`."""

from __future__ import annotations

from typing import Annotated

import typer

from dg_lsp.app import standard_io


def serve(
    model: Annotated[str, typer.Option(help="The model, if no engine runs yet; else the editor's setting.")] = "",
    device: Annotated[str, typer.Option(help="The device, if no engine runs yet; else the editor's setting.")] = "",
) -> None:
    """Speak the Language Server Protocol on standard input and output."""
    standard_io.serve(model=model, device=device)
