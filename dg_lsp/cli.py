"""The command line for people. Knows its commands by name and imports only the one that was asked for."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

import typer

from dg_lsp import __version__
from engine.core.exits import escape_unencodable


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """Where a command lives and what it does, in a line."""

    target: str
    """MODULE:NAME of a function or of a `typer.Typer`."""
    help: str


COMMANDS = {
    "serve": Mount(
        target="dg_lsp.commands.serve:serve", help="Speak the Language Server Protocol on standard input and output."
    ),
    "fill": Mount(target="engine.cli.fill:fill", help="Fill a gap in a file."),
    "rewrite": Mount(target="engine.cli.rewrite:rewrite", help="Rewrite a part of a file, starting from itself."),
    "fix": Mount(target="engine.cli.fix:fix", help="Mend the broken syntax of a file."),
    "engine": Mount(target="engine.cli.engine:engine", help="Start, stop or look at the engine that editors share."),
    "http": Mount(target="engine.cli.http:http", help="Serve clients of llama.cpp's or OpenAI's HTTP."),
    "eval": Mount(target="engine.cli.eval:evaluate", help="Measure how good fills are."),
    "bench": Mount(target="engine.cli.bench:bench", help="Measure how fast a model runs here."),
    "models": Mount(target="engine.cli.models:models", help="List the models on this machine."),
    "pull": Mount(target="engine.cli.pull:pull", help="Download a model from the Hugging Face Hub."),
    "quantize": Mount(target="engine.cli.quantize:quantize", help="Make a model's weights four bits wide."),
    "doctor": Mount(target="engine.cli.doctor:doctor", help="Check that everything is in place."),
    "tune": Mount(target="engine.cli.tune:tune", help="Learn a repository: an adapter beside the model's weights."),
    "adapters": Mount(
        target="engine.cli.adapters:adapters", help="List what was learnt of which folders; use, switch off, remove."
    ),
    "files": Mount(target="dg_lsp.commands.files:files", help="List the files that may be shown to the model."),
    "stats": Mount(target="dg_lsp.commands.stats:stats", help="Show how suggestions were met."),
    "replay": Mount(target="dg_lsp.commands.replay:replay", help="Run a recorded session again."),
}


def main() -> None:
    """Run this process's command line: exits with 0, 1 (failed at work) or 2 (asked for what can't be done)."""
    escape_unencodable()
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        # Without standalone mode typer returns an exit code instead of leaving, and raises instead of drawing a panel.
        return _app(arguments)(args=list(arguments), prog_name="dg-lsp", standalone_mode=False) or 0
    except typer.TyperException as error:
        if message := error.format_message():  # empty where help was shown instead
            typer.echo(f"dg-lsp: {_sentence(message)}{_hint(error)}", err=True)
        return error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return 130
    except OSError as error:
        # What is wrong with files is said where they are; here, with what was printed.
        if error.errno != errno.ENOSPC:
            raise
        typer.echo("dg-lsp: what it prints finds no room on the disk: make some, or send it elsewhere.", err=True)
        return 1


def _app(arguments: Sequence[str]) -> typer.Typer:
    """The commands, of which only the one that `arguments` name is imported; help needs no more of the others."""
    app = typer.Typer(
        help="Fill gaps in code with a text-diffusion model on this machine.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    named = next((argument for argument in arguments if not argument.startswith("-")), None)
    for name, mount in COMMANDS.items():
        _mount(app, name, mount, wanted=name == named)
    return app


def _mount(app: typer.Typer, name: str, mount: Mount, *, wanted: bool) -> None:
    command: Any = _load(name, mount.target) if wanted else _placeholder(mount.help)
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name, help=mount.help)
    else:
        app.command(name)(command)


def _load(name: str, target: str) -> Callable[..., None] | typer.Typer:
    module, _, attribute = target.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise typer.TyperException(
            f"{name} can't run here, as {error.name} is not installed: install dg-lsp again"
        ) from None


def _sentence(message: str) -> str:
    told = " ".join(message.split())
    return told if told.endswith("?") else told.rstrip(".") + "."


def _hint(error: typer.TyperException) -> str:
    """Where to read on, for an error in the command line itself."""
    context: typer.Context | None = getattr(error, "ctx", None)
    return f" See `{context.command_path} --help`." if context else ""


def _placeholder(help: str) -> Callable[[], None]:
    """Stands for a command in the list of commands."""

    def command() -> None: ...

    command.__doc__ = help
    return command


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dg-lsp {__version__}")
        raise typer.Exit


def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None: ...
