"""`dg-lsp adapters`: the adapters of tuned folders."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from engine.cli.engine import ask_status
from engine.common.errors import BadInput, EngineError, ModelError
from engine.common.exits import one_line_errors
from engine.common.options import OrderedGroup
from engine.common.sizes import binary_bytes
from engine.common.terminal import shown
from engine.models.adapters.metadata import (
    AdapterMetadata,
    adapters_dir,
    all_adapters,
    fingerprint_of,
    last_good,
    read_metadata,
    readable,
    remove_adapter,
    switch_adapter,
    unfinished,
)
from engine.models.checkpoints.catalog import find

name_argument = click.argument("name", metavar="NAME", help="An adapter's name as listed, or its folder.")
_HELD_OUT = "held out"


@click.group(cls=OrderedGroup, invoke_without_command=True)
@click.pass_context
@one_line_errors()
def adapters(context: click.Context) -> None:
    """List adapters: their folders, models and gains."""
    if context.invoked_subcommand:
        return
    directories, begun = all_adapters(), unfinished()
    if not directories and not begun:
        click.echo("There are no adapters yet: `dg-lsp tune FOLDER` makes one for a repository.")
        return
    used = _used()
    for directory in directories:
        click.echo(shown("\n".join([directory.name, *(f"    {line}" for line in _lines(directory, used))])))
    for name in begun:
        click.echo(f"{name}\n    unfinished: the same `dg-lsp tune` continues, `dg-lsp adapters rm {name}` deletes it")


@adapters.command()
@name_argument
@one_line_errors()
def rm(name: str) -> None:
    """Delete an adapter, or an unfinished run."""
    directory = adapters_dir() / name if name in unfinished() else _named(name)
    remove_adapter(directory)
    click.echo(shown(f"{directory.name} is gone."))


@adapters.command()
@name_argument
@one_line_errors()
def use(name: str) -> None:
    """Enable an adapter for its folder, even if it gained nothing."""
    directory = _named(name)
    switch_adapter(directory, on=True)
    click.echo(shown(f"{directory.name} is enabled for {read_metadata(directory).folder}, if it fits the model."))


@adapters.command()
@name_argument
@one_line_errors()
def off(name: str) -> None:
    """Disable an adapter; it stays on the disk."""
    directory = _named(name)
    switch_adapter(directory, on=False)
    click.echo(shown(f"{directory.name} is off."))


def whether_used(metadata: AdapterMetadata) -> str:
    """Why an adapter is not used, in a few words; empty: an engine with its model uses it."""
    if not metadata.on:
        return "off"
    try:
        own = fingerprint_of(find(metadata.model))
    except ModelError:
        return f"off: {metadata.model} is not on this machine any more"
    if own != metadata.fingerprint:
        return f"off: the weights of {metadata.model} have changed; run `dg-lsp tune {metadata.folder}` again"
    return ""


def _lines(directory: Path, used: set[str]) -> list[str]:
    try:
        metadata = read_metadata(directory)
        with readable(directory):
            nbytes = sum(each.stat().st_size for each in last_good(directory).iterdir())
    except ModelError as error:
        return [str(error)]
    day = time.strftime("%Y-%m-%d %H:%M", time.localtime(metadata.created))
    commit = f" at {metadata.commit[:12]}" if metadata.commit else ""
    in_use = "in use now" if metadata.folder in used else "on"
    return [
        f"{metadata.folder}{commit}",
        f"for {metadata.model}, {day}, {binary_bytes(nbytes)}",
        _gain(metadata),
        whether_used(metadata) or in_use,
    ]


def _gain(metadata: AdapterMetadata) -> str:
    before, after = metadata.before.get(_HELD_OUT), metadata.after.get(_HELD_OUT)
    if before is None or after is None:
        return "gain unknown"
    figures = [
        f"{what} {old:.1%} -> {new:.1%}"
        for what, old, new in (
            ("exact", before.exact, after.exact),
            ("similar", before.similarity, after.similarity),
        )
        if old is not None and new is not None
    ]
    if before.forwards is not None and after.forwards is not None:
        figures.append(f"passes a fill {before.forwards:.1f} -> {after.forwards:.1f}")
    return f"{', '.join(figures)} on {after.gaps} gaps"


def _named(name: str) -> Path:
    """The adapter of that name or folder. Raises BadInput where there is none, or more than one."""
    directories = all_adapters()
    for each in directories:
        if each.name == name:
            return each
    folder = os.path.realpath(name)
    found: list[Path] = []
    for each in directories:
        try:
            found += [each] if read_metadata(each).folder == folder else []
        except ModelError:
            continue
    if len(found) > 1:
        raise BadInput(f"Several adapters are for {folder}: name one of {', '.join(each.name for each in found)}.")
    if not found:
        raise BadInput(f"There is no adapter {name}: `dg-lsp adapters` lists all.")
    return found[0]


def _used() -> set[str]:
    """Folders whose adapters the running engine has loaded."""
    try:
        status = ask_status()
    except EngineError:
        return set()
    return {each.folder for each in status.adapters if not each.trouble} if status else set()
