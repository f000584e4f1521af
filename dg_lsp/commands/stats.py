"""`dg-lsp stats`."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dg_lsp.suggest.stats import Tally, reset, stats_path, tallies
from engine.common.exits import one_line_errors


@click.command()
@click.option("--reset", "erase", is_flag=True, help="Delete all counts.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@one_line_errors()
def stats(erase: bool, as_json: bool) -> None:
    """Show how many suggestions were shown, accepted and rejected, by language. The counts never leave this machine."""
    path = stats_path()
    if erase:
        reset(path)
        click.echo("All counts are deleted.")
        return
    found = tallies(path)
    if as_json:
        click.echo(json.dumps([asdict(tally) for tally in found]))
    elif found:
        Console().print(_table(found))
    else:
        click.echo("No suggestion was shown yet.")


def _table(found: list[Tally]) -> Table:
    table = Table(
        title="Suggestions", caption="accepted: whole suggestions; characters accepted: also of those accepted in part"
    )
    for heading in ("language", "shown", "accepted", "in part", "typed by hand", "rejected", "characters accepted"):
        table.add_column(heading, justify="left" if heading == "language" else "right")
    for tally in found:
        share = f"{tally.accepted} ({tally.accepted / tally.shown:.0%})" if tally.shown else str(tally.accepted)
        figures = (tally.shown, share, tally.partial, tally.typed, tally.rejected, tally.accepted_chars)
        table.add_row(Text(tally.language), *map(str, figures))
    return table
