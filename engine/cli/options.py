"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

MAX_SEED = 2**63 - 1
FileName = Annotated[str, typer.Argument(metavar="FILE", help="The file; - is standard input.")]
ModelName = Annotated[str, typer.Option(metavar="NAME|PATH|HUB-ID", help="See `dg-lsp models`.")]
DeviceName = Annotated[str, typer.Option(metavar="auto|cpu|cuda", help="Where the model runs.")]
AnyModel = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|PATH|HUB-ID|SERVER",
        help="See `dg-lsp models`; SERVER is vllm+https://HOST:PORT/MODEL.",
        show_default="the engine's, else bundled",
    ),
]
AnyDevice = Annotated[
    str | None,
    typer.Option(metavar="auto|cpu|cuda", help="Where the model runs.", show_default="the engine's, else auto"),
]
ByEngine = Annotated[
    bool,
    typer.Option("--engine/--no-engine", help="Ask the engine that editors share, or load the model for this alone."),
]
Candidates = Annotated[int, typer.Option("-n", min=1, max=32, help="Candidates wanted at most.")]
Seed = Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Another seed, another answer.")]
Diff = Annotated[bool, typer.Option("--diff", help="Print the difference; the default.")]
Write = Annotated[bool, typer.Option("--write", help="Apply the answer to FILE.")]
