"""`dg-lsp doctor`: each thing that must be in place, ok or with the remedy."""

from __future__ import annotations

import json as json_format
from dataclasses import asdict
from typing import Annotated

import typer

from engine.cli.options import DeviceName, ModelName
from engine.core.exits import FAILURE, one_line_errors
from engine.core.names import BUNDLED


@one_line_errors()
def doctor(
    model: ModelName = BUNDLED,
    device: DeviceName = "auto",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check that everything is in place; exits with 1 where something is not."""
    from engine.cli.checks import Doctor, Finding

    findings: list[Finding] = []

    def tell(finding: Finding) -> None:
        findings.append(finding)
        if not json:
            typer.echo(_line(finding.subject, finding.ok, finding.detail, finding.remedy))

    well = Doctor(model=model, device=device).examine(tell)
    if json:
        typer.echo(json_format.dumps({"ok": well, "findings": [asdict(finding) for finding in findings]}))
    if not well:
        raise typer.Exit(FAILURE)


def _line(subject: str, ok: bool, detail: str, remedy: str) -> str:
    line = f"{'ok ' if ok else 'BAD'} {subject:<12} {detail}"
    return line if ok else f"{line}\n    {'':<12} {remedy}"
