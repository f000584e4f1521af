"""`dg-lsp eval`: measures the quality of fills."""

from __future__ import annotations

import hashlib
import json as json_format
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from engine.cli.options import MAX_SEED, device_option, json_option, model_option
from engine.common.errors import BadInput
from engine.common.exits import interruptible, one_line_errors
from engine.common.names import Device
from engine.common.options import A_PATH
from engine.models.addressed import named

if TYPE_CHECKING:
    from engine.lab.eval.reserved.packages import Role
    from engine.lab.eval.results import Results
    from engine.lab.eval.rows import EvalRow
    from engine.lab.eval.tasks import EvalTask

_INTERRUPTED = 130


@click.command()
@click.argument(
    "tasks",
    type=A_PATH,
    metavar="TASKS.jsonl[.gz]",
    required=False,
    help="HumanEval-Infilling's format.",
)
@click.option(
    "--holes",
    type=A_PATH,
    metavar="DIR|development|reported",
    help="Fill gaps in a folder's code, or the reserved gaps.",
)
@click.option("--hand", is_flag=True, help="Fill 20 handwritten gaps of every day, with tests.")
@click.option(
    "--rewrites",
    type=click.Choice(["development", "reported"]),
    help="Rewrite by instruction: one half of 63 tasks.",
)
@click.option("--lang", help="With --holes: only files in this language.")
@click.option("--limit", type=click.IntRange(1), help="Number of tasks, drawn by --seed; 100 with --holes.")
@click.option(
    "--seed", type=click.IntRange(0, MAX_SEED), default=0, help="The seed that draws tasks, gaps and canvases."
)
@click.option(
    "--row", multiple=True, metavar="NAME", help='A way to fill, such as "adaptive" or "width 8"; may be repeated.'
)
@click.option("--all", "all_rows", is_flag=True, help="Fill in every row's way.")
@click.option("--max-tokens", type=click.IntRange(1), default=96, help="Longest answer, in tokens.")
@model_option
@device_option
@click.option("--out", type=A_PATH, metavar="DIR", help="Keep results in this folder; run again to continue.")
@json_option
@one_line_errors()
def evaluate(
    tasks: Path | None,
    holes: Path | None,
    hand: bool,
    rewrites: Role | None,
    lang: str | None,
    limit: int | None,
    seed: int,
    row: tuple[str, ...],
    all_rows: bool,
    max_tokens: int,
    model: str,
    device: str,
    out: Path | None,
    json: bool,
) -> None:
    """Fill gaps with known answers, test the results in a sandbox, and print a summary."""
    if rewrites is not None:
        if tasks is not None or holes is not None or all_rows or out is not None:
            raise BadInput("--rewrites can only be combined with --row, --model, --device, --limit, --seed and --json.")
        with _interruptible(None):
            _rewrite(rewrites, model, cast("Device", device), row, limit, seed, as_json=json)
        return
    # Imported here because `--help` needs none of it.
    from engine.lab.eval.figures import report, tables
    from engine.lab.eval.results import Results
    from engine.lab.eval.rows import ADAPTIVE, ROWS, chosen_rows
    from engine.lab.peer.client import Beside

    with _interruptible(out), Beside(model) as beside:
        rows = chosen_rows([*(each.name for each in ROWS if all_rows), *row] or [ADAPTIVE], beside)
        chosen, source = chosen_tasks(tasks, holes, lang, limit, seed, hand=hand)
        weights = _fingerprint(named(model).files())
        about = {"model": model, "weights": weights, "seed": seed, "max_tokens": max_tokens, **source}
        with Results(out, about, ", or choose another --out") as results:
            if all((row.name, task.name) in results for row in rows for task in chosen):
                about["device"] = "results of an earlier run"
            else:
                about["device"], rows = _fill(
                    model, cast("Device", device), chosen, rows, results, seed, max_tokens, strict=not all_rows
                )
            names = {task.name for task in chosen}
            by_row = {row.name: results.of(row.name, names) for row in rows}
    if json:
        click.echo(json_format.dumps(report(about, by_row)))
        return
    console = Console()
    for table in tables(f"{about['tasks']}, {model} on {about['device']}, seed {seed}", by_row):
        console.print(table)


def _rewrite(
    role: Role, name: str, device: Device, rows: Sequence[str], limit: int | None, seed: int, *, as_json: bool
) -> None:
    """Rewrite by instruction, test the results, and print a summary."""
    from engine.fill.loading import load
    from engine.lab.eval.rewrites.rewrite_evaluation import ROW, by_model, by_peer, evaluate, report, table
    from engine.lab.eval.rewrites.rewrite_tasks import tasks_of
    from engine.lab.eval.rewrites.tests_of import is_run
    from engine.lab.eval.tasks import choose
    from engine.lab.peer.client import NAME, Beside

    if unknown := [each for each in rows if each not in (ROW, NAME)]:
        raise BadInput(f"There is no row {unknown[0]!r} of rewrites: name {ROW} or {NAME}.")
    tasks = choose(tasks_of(role), limit, seed)
    console = Console(stderr=True)
    for language in sorted({task.language for task in tasks}):
        if not is_run(language):
            console.print(f"dg-lsp: {language} can't be run here: its rewrites are judged by patterns.")
    with (
        Beside(name) as beside,
        Progress(TextColumn("rewriting"), BarColumn(), MofNCompleteColumn(), console=console) as progress,
    ):
        if NAME in rows:
            # What can't be asked is told before anything is loaded.
            _ = beside.peer
        model = load(name, device).model
        ways = {ROW: partial(by_model, model), NAME: partial(by_peer, beside)}
        rewriters = {row: ways[row] for row in dict.fromkeys([*rows] or [ROW])}
        bar = progress.add_task("", total=len(tasks) * len(rewriters))
        results = evaluate(rewriters, tasks, lambda: progress.advance(bar))
    if as_json:
        about = {"tasks": f"{role} rewrites", "model": name, "device": model.info.device}
        click.echo(json_format.dumps(report(about, results)))
    else:
        Console().print(table(f"{role} rewrites, {name} on {model.info.device}", results))


@contextmanager
def _interruptible(out: Path | None) -> Generator[None]:
    """SIGINT and SIGTERM end the block with a hint how to continue."""
    try:
        with interruptible():
            yield
    except KeyboardInterrupt:
        kept = f"results so far are in {out}; run the same command again to continue"
        click.echo(f"dg-lsp: Interrupted: {kept if out else 'nothing is kept without --out'}.", err=True)
        raise click.exceptions.Exit(_INTERRUPTED) from None


def chosen_tasks(
    tasks: Path | None, holes: Path | None, lang: str | None, limit: int | None, seed: int, *, hand: bool = False
) -> tuple[list[EvalTask], dict[str, str]]:
    """The tasks, and a description of their source. Raises BadInput."""
    from engine.lab.eval.hand.cases import hand_cases
    from engine.lab.eval.reserved.packages import Role, reserved_tasks
    from engine.lab.eval.tasks import STANDARD_COUNT, choose, code_holes, read_tasks

    if hand:
        if tasks is not None or holes is not None or lang:
            raise BadInput("--hand names tasks itself: leave out files, --holes and --lang.")
        return choose(hand_cases(), limit, seed), {"tasks": "cases by hand"}
    if tasks is not None and holes is None:
        if lang:
            raise BadInput("--lang belongs to --holes: leave it out.")
        return choose(read_tasks(tasks), limit, seed), {"tasks": tasks.name, "data": _fingerprint([tasks])}
    if holes is not None and tasks is None:
        if (split := str(holes)) in get_args(Role) and not holes.is_dir():
            if lang:
                raise BadInput("--lang belongs to a folder of --holes: leave it out.")
            gaps = choose(reserved_tasks(cast(Role, split)), limit or STANDARD_COUNT, seed)
            return gaps, {"tasks": f"{split} gaps in reserved packages"}
        # The tasks' names identify the files' contents.
        return code_holes(holes, lang, limit, seed), {"tasks": f"gaps in {holes.resolve().name}"}
    raise BadInput("Give a file of tasks, a folder with --holes, or --hand.")


def _fingerprint(files: Sequence[Path]) -> str:
    """A fingerprint of the contents, equal for copies and touched files."""
    digest = hashlib.sha256()
    for file in files:
        try:
            with file.open("rb") as stream:
                digest.update(f"{file.name} {hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
        except OSError as error:
            raise BadInput(f"{file} can't be read ({error.strerror}): name another.") from None
    return digest.hexdigest()[:16]


def _fill(
    name: str,
    device: Device,
    tasks: Sequence[EvalTask],
    rows: Sequence[EvalRow],
    results: Results,
    seed: int,
    max_tokens: int,
    *,
    strict: bool,
) -> tuple[str, Sequence[EvalRow]]:
    """Fill the remaining tasks; returns the model's device and the rows that it can fill. `strict`: other rows are
    errors."""
    from engine.fill.loading import load
    from engine.lab.eval.evaluation import evaluate
    from engine.lab.eval.rows import possible
    from engine.lab.eval.sandbox import standard_limits

    console = Console(stderr=True)
    if any(task.check for task in tasks) and standard_limits().level == "guards":
        console.print(
            "dg-lsp: This system allows no namespaces: generated code is confined by Python only, not by the kernel "
            "(see docs/benchmarks.md).",
            soft_wrap=True,
        )
    model = load(name, device).model
    rows = possible(rows, model, None if strict else lambda said: console.print(f"dg-lsp: {said}", soft_wrap=True))
    done = sum((row.name, task.name) in results for row in rows for task in tasks)
    columns = (TextColumn("filling"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("", total=len(rows) * len(tasks), completed=done)
        evaluate(model, tasks, rows, results, seed=seed, max_tokens=max_tokens, on_done=lambda: progress.advance(bar))
    return model.info.device, rows
