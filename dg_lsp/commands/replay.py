"""`dg-lsp replay`."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import ExitStack
from pathlib import Path

import click
from rich.console import Console

from dg_lsp.replay.clients import STYLES
from dg_lsp.replay.session import Session, read_session, write_session
from engine.common.exits import interruptible, one_line_errors
from engine.common.options import A_PATH, FiniteRange
from engine.common.processes import working_dir


@click.command()
@click.argument(
    "session",
    type=A_PATH,
    metavar="SESSION.jsonl",
    required=False,
    help="A recorded or generated session.",
)
@click.option(
    "--from-git",
    type=A_PATH,
    metavar="REPO",
    help="Generate a session from a git repository's latest commits instead.",
)
@click.option("--commits", type=click.IntRange(1), default=3, help="With --from-git: how many commits.")
@click.option("--seed", type=int, default=0, help="With --from-git: the seed of typing speed and slips.")
@click.option(
    "--out",
    type=A_PATH,
    metavar="FILE",
    help="With --from-git: write the session to a file instead of playing it.",
)
@click.option("--client", type=click.Choice(STYLES), default="vscode", help="The editor to imitate.")
@click.option("--model", default="", show_default=False, help="Use a separate engine with this model.")
@click.option("--oracle", is_flag=True, help="Use a test model that knows the session.")
@click.option("--speed", type=FiniteRange(0.01), default=1.0, help="Playing speed; 2 takes half the time.")
@one_line_errors()
def replay(
    session: Path | None,
    from_git: Path | None,
    commits: int,
    seed: int,
    out: Path | None,
    client: str,
    model: str,
    oracle: bool,
    speed: float,
) -> None:
    """Replay an editing session against a real language server and print how long answers took. The last line is JSON.

    Exits with 1 if any answer was stale or an error.
    """
    if (session is None) == (from_git is None):
        raise click.BadParameter("give a SESSION.jsonl or --from-git REPO")
    if model and oracle:
        raise click.BadParameter("--oracle is a model of its own: leave out --model")
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
    from engine.common.names import rooted

    with ExitStack() as stack:
        stack.enter_context(interruptible())
        model = stack.enter_context(oracle(session)) if knows else rooted(model, working_dir())
        environment = stack.enter_context(own_engine()) if model else dict(os.environ)
        settings = SETTINGS if knows else {}
        playing = play(session, client, model=model, speed=speed, environment=environment, settings=settings)
        made = asyncio.run(playing)
    Console().print(table(made))
    click.echo(json.dumps(made))
    if problem := fault(made):
        click.echo(f"dg-lsp: {problem}", err=True)
        raise click.exceptions.Exit(1)
