"""The command line. It knows its commands by name and imports only the one that is run."""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from dg_lsp import __version__
from engine.common.exits import escape_unencodable
from engine.common.options import OrderedGroup
from engine.common.terminal import shown

COMMANDS = {
    "serve": ("dg_lsp.commands.serve:serve", "Speak the Language Server Protocol on standard input and output."),
    "fill": ("engine.cli.fill:fill", "Fill a gap in a file."),
    "rewrite": ("engine.cli.rewrite:rewrite", "Rewrite part of a file."),
    "fix": ("engine.cli.fix:fix", "Fix the syntax of a file."),
    "engine": ("engine.cli.engine:engine", "Start, stop or inspect the engine."),
    "http": ("engine.cli.http:http", "Serve HTTP clients of llama.cpp and OpenAI."),
    "eval": ("engine.cli.eval:evaluate", "Measure how good fills are."),
    "bench": ("engine.cli.bench:bench", "Measure how fast a model runs here."),
    "models": ("engine.cli.models:models", "List the models on this machine."),
    "pull": ("engine.cli.pull:pull", "Download a model from the Hugging Face Hub."),
    "quantize": ("engine.cli.quantize:quantize", "Convert a model's weights to 4 bits."),
    "doctor": ("engine.cli.doctor:doctor", "Check that everything works."),
    "tune": ("engine.cli.tune:tune", "Tune a model to a repository: train an adapter."),
    "adapters": ("engine.cli.adapters:adapters", "List, enable, disable or remove adapters."),
    "files": ("dg_lsp.commands.files:files", "List the files that may be shown to the model."),
    "stats": ("dg_lsp.commands.stats:stats", "Show how many suggestions were accepted."),
    "replay": ("dg_lsp.commands.replay:replay", "Replay a recorded editing session."),
}
"""MODULE:NAME of each click command, and one line about what it does."""


def main() -> None:
    """Run this process's command line. It exits with 0, 1 (the work failed) or 2 (the arguments are wrong)."""
    escape_unencodable()
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        # Without standalone mode click returns an exit code instead of leaving, and raises instead of printing.
        return _app(arguments).main(list(arguments), prog_name="dg-lsp", standalone_mode=False) or 0
    except click.exceptions.NoArgsIsHelpError as error:
        return run([*arguments, "--help"]) or error.exit_code
    except click.ClickException as error:
        click.echo(shown(f"dg-lsp: {_sentence(error.format_message())}{_hint(error)}"), err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except OSError as error:
        # What is wrong with files is said where they are; here, with what was printed.
        if error.errno != errno.ENOSPC:
            raise
        click.echo(
            "dg-lsp: The disk is full: free some space, or write the output to another disk.",
            err=True,
        )
        return 1


def _app(arguments: Sequence[str]) -> click.Group:
    """All commands. Only the one that `arguments` name is imported; help needs the names of the others alone."""
    named = next((argument for argument in arguments if not argument.startswith("-")), None)
    return click.version_option(__version__, message="dg-lsp %(version)s", help="Show the version and leave.")(
        OrderedGroup(
            help="Fill gaps in code with a text-diffusion model on this machine.",
            commands={
                name: _load(name, target) if name == named else click.Command(name, help=told)
                for name, (target, told) in COMMANDS.items()
            },
            context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
        )
    )


def _load(name: str, target: str) -> click.Command:
    module, _, attribute = target.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"{name} can't run here, as {error.name} is not installed: install dg-lsp again"
        ) from None


def _sentence(message: str) -> str:
    told = " ".join(message.split())
    return told if told.endswith(("?", "?)")) else told.rstrip(".") + "."


def _hint(error: click.ClickException) -> str:
    """A pointer to the help, for an error in the command line itself."""
    context: click.Context | None = getattr(error, "ctx", None)
    return f" See `{context.command_path} --help`." if context else ""
