"""`dg-lsp replay`."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dg_lsp.replay.clients import STYLES
from dg_lsp.replay.session import Session, read_session, write_session
from engine.core.exits import interruptible, one_line_errors
from engine.core.options import number
from engine.core.processes import working_dir


@one_line_errors()
def replay(
    session: Annotated[
        Path | None, typer.Argument(metavar="SESSION.jsonl", help="A recorded or generated session.")
    ] = None,
    from_git: Annotated[
        Path | None, typer.Option(metavar="REPO", help="Make a session of a git repository's latest commits instead.")
    ] = None,
    commits: Annotated[int, typer.Option(min=1, help="With --from-git: how many commits.")] = 3,
    seed: Annotated[int, typer.Option(help="With --from-git: varies how it is typed.")] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --from-git: write the session there; don't play it.")
    ] = None,
    client: Annotated[str, typer.Option(help=f"Whose manners the editor has: {', '.join(STYLES)}.")] = "vscode",
    model: Annotated[str, typer.Option(help="Play with an engine of its own and this model.")] = "",
    oracle: Annotated[bool, typer.Option("--oracle", help="Play with a model that knows the session.")] = False,
    speed: Annotated[float, number(0.01, "How many times faster than life.")] = 1.0,
) -> None:
    """Run an editing session against a real language server and print how long answers took; last line JSON.

    Exits with 1 where an answer was stale or an error.
    """
    if (session is None) == (from_git is None):
        raise typer.BadParameter("give a SESSION.jsonl or --from-git REPO")
    if model and oracle:
        raise typer.BadParameter("--oracle is a model of its own: leave out --model")
    if client not in STYLES:
        raise typer.BadParameter(f"--client is one of {', '.join(STYLES)}, not {client!r}")
    held = read_session(session) if session else _made(from_git or Path(), commits, seed)
    if out:
        write_session(held, out)
    else:
        _play(held, client, model=model, knows=oracle, speed=speed)


def _made(repository: Path, commits: int, seed: int) -> Session:
    from dg_lsp.replay.generate import edited_files, events

    files = edited_files(repository, commits)
    return Session(title=f"{commits} commits of {repository.resolve().name}", events=events(files, seed))


def _play(session: Session, client: str, *, model: str, knows: bool, speed: float) -> None:
    from dg_lsp.replay.report import fault, table
    from dg_lsp.replay.stage import SETTINGS, oracle, own_engine, play
    from engine.core.names import rooted

    with ExitStack() as stack:
        stack.enter_context(interruptible())
        model = stack.enter_context(oracle(session)) if knows else rooted(model, working_dir())
        environment = stack.enter_context(own_engine()) if model else dict(os.environ)
        settings = SETTINGS if knows else {}
        playing = play(session, client, model=model, speed=speed, environment=environment, settings=settings)
        made = asyncio.run(playing)
    Console().print(table(made))
    typer.echo(json.dumps(made))
    if problem := fault(made):
        typer.echo(f"dg-lsp: {problem}", err=True)
        raise typer.Exit(1)
