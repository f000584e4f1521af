"""Options shared by several commands."""

from __future__ import annotations

import click

from engine.common.names import AUTO
from engine.common.options import together

MAX_SEED = 2**63 - 1
_DEVICES, _WHERE = "auto|cpu|cuda", "The device."

file_argument = click.argument("file", metavar="FILE", help="The file; - is standard input.")


def _resolved(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """The model that "auto" is here."""
    if value != AUTO:
        return value
    # What it takes to choose is not for who only reads the help.
    from engine.models.checkpoints.choice import resolved

    return resolved(value)


model_option = click.option(
    "--model", metavar="NAME|PATH|HUB-ID", default=AUTO, callback=_resolved, help="See `dg-lsp models`."
)
device_option = click.option("--device", metavar=_DEVICES, default="auto", help=_WHERE)
answer_options = together(
    click.option(
        "--model",
        metavar="NAME|PATH|HUB-ID|SERVER",
        callback=_resolved,
        show_default="the engine's, else auto",
        help="See `dg-lsp models`; SERVER is vllm+https://HOST:PORT/MODEL.",
    ),
    click.option("--device", metavar=_DEVICES, show_default="the engine's, else auto", help=_WHERE),
    click.option(
        "--engine/--no-engine",
        default=True,
        help="Use the engine that all editors share, or load the model in this process.",
    ),
)
"""Which model answers, and where."""
n_option = click.option("-n", type=click.IntRange(1, 32), default=1, help="How many candidates, at most.")
seed_option = click.option(
    "--seed", type=click.IntRange(0, MAX_SEED), default=0, help="The seed; another one gives another answer."
)
diff_option = click.option("--diff", is_flag=True, help="Print the difference (default).")
write_option = click.option("--write", is_flag=True, help="Apply the answer to FILE.")
json_option = click.option("--json", is_flag=True, help="Print one JSON object.")
