"""`dg-lsp pull`: the only command that downloads a model."""

from __future__ import annotations

import click

from engine.common.exits import one_line_errors
from engine.common.sizes import binary_bytes, decimal_bytes
from engine.models.checkpoints.released import known


@click.command()
@click.argument("model", metavar="HUB-ID", help="OWNER/MODEL on the Hugging Face Hub.")
@one_line_errors()
def pull(model: str) -> None:
    """Download a model into the local Hugging Face cache. Run again after an interruption, it keeps finished files."""
    from engine.models.checkpoints.pull import plan_pull
    from engine.models.checkpoints.pull import pull as download

    plan = plan_pull(model)
    click.echo(
        f"{model}: {decimal_bytes(plan.download_nbytes)} to download, {decimal_bytes(plan.free_nbytes)} of disk free; "
        f"about {binary_bytes(plan.weights_nbytes)} of memory for its weights."
    )
    released = known(model)
    if released is not None:
        click.echo(f"On a GPU: {released.memory.summary()}.")
        click.echo(f"Licence: {released.licence}. Length of a gap: {released.length}. Good for {released.good_for}.")
    checkpoint = download(plan)
    click.echo(f"Ready: dg-lsp fill FILE --at LINE:COL --model {checkpoint.name}")
