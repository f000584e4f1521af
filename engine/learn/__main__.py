"""`python -m engine.learn`: train a model directory from source code on this machine, or pairs for a coder's canvas."""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path

import click
import torch

from engine.common.exits import one_line_errors, pausing
from engine.common.names import check_device
from engine.common.options import A_FILE, A_PATH, F, FiniteRange, OrderedGroup, together
from engine.common.processes import idle as be_idle
from engine.fill.loading import load
from engine.lab.eval.reserved.packages import reserved_files, reserved_tasks
from engine.learn.assessment import assess as assess_network
from engine.learn.corpus import build_corpus, corpus_folder, read_documents, read_manifest
from engine.learn.export import export as export_model
from engine.learn.export import keep_threshold, write_card
from engine.learn.fills import Fills, fill_holes
from engine.learn.packed import PackedCorpus, pack
from engine.learn.pairs.files import write_pairs
from engine.learn.pairs.recipe import PairsRecipe
from engine.learn.pairs.run import PairsSitting, finished, train_pairs
from engine.learn.screening import Forbidden, benchmark_texts
from engine.learn.sources import Sources, fetch_pinned
from engine.learn.state import newest_state, read_curve
from engine.learn.tokenizer import load_tokenizer, save_tokenizer, train_tokenizer
from engine.learn.training import Sitting, train
from engine.learn.training_recipe import Recipe, changed
from engine.models.causal.opening import coder_of
from engine.models.checkpoints.checkpoint import read_checkpoint
from engine.models.checkpoints.placement import Placement, check_cuda
from engine.models.gemma.network import GemmaNetwork
from engine.models.products import keep_few_programs, prefers_bfloat16

MAX_WORKERS = 12

run_option = click.option("--name", default="run", help="The run's name; its folder is in the user's cache.")
corpus_option = click.option("--corpus", default="corpus", help="The corpus's name.")
changes_option = click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="Another value for a part of the recipe, as step_tokens=4096.",
)
seed_option = click.option("--seed", type=click.IntRange(0), default=0)
machine_options = together(
    click.option("--device", metavar="auto|cpu|cuda", default="auto"),
    click.option("--threads", type=click.IntRange(1), help="Threads of the processor."),
    click.option("--idle", "idle_", is_flag=True, help="Take processor time only where nothing else wants it."),
)


def holes_option(default: int) -> Callable[[F], F]:
    """The option `--holes` with its default."""
    about = "Development holes to fill by canvas and causal head, for the threshold."
    return click.option("--holes", type=click.IntRange(0, 300), default=default, help=about)


@click.group(cls=OrderedGroup, context_settings={"show_default": True})
def app() -> None:
    """From source code on this machine to a model directory."""


@app.command()
@click.option("--name", default="corpus", help="The corpus's name.")
@click.option(
    "--site-packages",
    multiple=True,
    type=A_PATH,
    help="Folders of Python packages, instead of all pinned and installed ones.",
)
@click.option(
    "--decontaminate",
    multiple=True,
    type=A_FILE,
    help="Benchmark files; texts that share ten words in a row with one are left out.",
)
@click.option("--tokenizer", type=A_PATH, help="An exported model whose tokenizer is taken, to go on from its weights.")
@seed_option
@one_line_errors()
def corpus(
    name: str, site_packages: tuple[Path, ...], decontaminate: tuple[Path, ...], tokenizer: Path | None, seed: int
) -> None:
    """Collect source code under permissive licences, learn a tokenizer and pack it all."""
    out = corpus_folder(name)
    pinned, scripts = ([], []) if site_packages else ([folder] for folder in fetch_pinned(corpus_folder("")))
    sources = Sources(
        site_packages=tuple(site_packages or [*pinned, *installed_packages()]),
        node_modules=tuple(scripts),
    )
    reserved = (file.text for file in reserved_files())
    manifest = build_corpus(sources, out, seed, Forbidden(benchmark_texts(decontaminate), reserved))
    click.echo(f"{len(manifest.packages)} packages, {manifest.characters('train'):,} characters to train on")
    texts = (document.text for document in read_documents(out, "train"))
    chosen = load_tokenizer(tokenizer) if tokenizer else train_tokenizer(texts)
    save_tokenizer(chosen, out / "tokenizer")
    for split in ("train", "held-out"):
        pack(read_documents(out, split), out / "packed" / split)
    click.echo(f"The corpus {name} is in {out}.")


@app.command()
@run_option
@corpus_option
@click.option("--tokens", type=FiniteRange(1), help="Context tokens to read; the same as --set tokens=N.")
@changes_option
@click.option(
    "--start-from", type=A_PATH, help="The folder of a run, or an exported model, that a new run goes on from."
)
@seed_option
@machine_options
@click.option("--compile/--no-compile", "compile_", default=True)
@one_line_errors()
def run(
    name: str,
    corpus: str,
    tokens: float | None,
    changes: tuple[str, ...],
    start_from: Path | None,
    seed: int,
    device: str,
    threads: int | None,
    compile_: bool,
    idle_: bool,
) -> None:
    """Train, or go on training: Ctrl-C pauses, the same command resumes."""
    recipe = changed(Recipe(), [*changes, *([f"tokens={int(tokens)}"] if tokens else ())])
    where = _machine(device, threads, idle=idle_)
    sitting = Sitting(
        device=where,
        compiled=compile_,
        bfloat16=prefers_bfloat16(where.type),
        workers=_workers(where),
        start_from=start_from,
    )
    folder = _run_folder(name)
    with pausing() as should_pause:
        state = train(recipe, corpus_folder(corpus), folder, seed, sitting, click.echo, should_pause)
    done = state.tokens >= recipe.tokens
    click.echo(f"{'Done' if done else 'Paused; the same command goes on'}: {state.tokens:,} tokens, {folder}")


@app.command()
@click.option("--base", type=A_FILE, required=True, help="A coder's GGUF.")
@run_option
@corpus_option
@changes_option
@seed_option
@machine_options
@click.option("--start-from", type=A_PATH, help="The folder of written pairs that a new run goes on from.")
@click.option("--out", type=A_PATH, help="The folder to write the pairs to, as they are at the end.")
@one_line_errors()
def pairs(
    base: Path,
    name: str,
    corpus: str,
    changes: tuple[str, ...],
    seed: int,
    device: str,
    threads: int | None,
    idle_: bool,
    start_from: Path | None,
    out: Path | None,
) -> None:
    """Train pairs that let a frozen coder denoise a canvas, or go on training: Ctrl-C pauses, the same command
    resumes."""
    recipe, where = changed(PairsRecipe(), changes), _machine(device, threads, idle=idle_)
    dtype = torch.bfloat16 if prefers_bfloat16(where.type) else torch.float32
    checkpoint = read_checkpoint(base, base.stem)
    coder = coder_of(checkpoint, Placement(device=where.type, layers=(where.type,) * checkpoint.layers, dtype=dtype))
    sitting = PairsSitting(device=where, workers=_workers(where), start_from=start_from)
    with pausing() as should_pause:
        state = train_pairs(
            coder, recipe, corpus_folder(corpus), _run_folder(name), seed, sitting, click.echo, should_pause
        )
    if out is not None:
        write_pairs(state.pairs.trained(), recipe, base, state.counts(), out)
    done = finished(state, recipe)
    click.echo(f"{'Done' if done else 'Paused; the same command goes on'}: {state.rows:,} rows, {_run_folder(name)}")


@app.command()
@click.option("--out", type=A_PATH, required=True, help="The model directory to write.")
@run_option
@corpus_option
@seed_option
@changes_option
@holes_option(300)
@click.option("--evaluation", type=A_FILE, help="Markdown for the card: what was measured.")
@one_line_errors()
def export(
    out: Path, name: str, corpus: str, seed: int, changes: tuple[str, ...], holes: int, evaluation: Path | None
) -> None:
    """Write the newest checkpoint as a model directory with its card, and fit the confidence that suggestions need."""
    recipe, folder, text = changed(Recipe(), changes), _run_folder(name), corpus_folder(corpus)
    state = newest_state(recipe, folder)
    export_model(state, recipe, text / "tokenizer", out)
    measured = evaluation.read_text(encoding="utf-8") if evaluation else ""
    if holes:
        fills = _fills(out, holes)
        keep_threshold(out, fills.threshold)
        measured = f"{fills.line()}.\n\n{measured}"
    manifest = read_manifest(text)
    write_card(
        out, recipe=recipe, seed=seed, state=state, curve=read_curve(folder), manifest=manifest, evaluation=measured
    )
    click.echo(f"{out} holds the model after {state.tokens:,} tokens.")


@app.command()
@run_option
@corpus_option
@click.option("--gaps", type=click.IntRange(1), default=400)
@changes_option
@holes_option(0)
@one_line_errors()
def assess(name: str, corpus: str, gaps: int, changes: tuple[str, ...], holes: int) -> None:
    """Report what a run's causal head has learnt on held-out packages, and how many holes its canvas fills."""
    recipe, text = changed(Recipe(), changes), corpus_folder(corpus)
    state = newest_state(recipe, _run_folder(name))
    assessment = assess_network(GemmaNetwork(state.module), PackedCorpus(text, "held-out"), recipe, gaps)
    click.echo(f"{state.tokens:,} tokens: {assessment.line()}")
    if holes:
        with tempfile.TemporaryDirectory() as out:
            export_model(state, recipe, text / "tokenizer", Path(out))
            click.echo(_fills(Path(out), holes).line())


def _fills(model: Path, holes: int) -> Fills:
    return fill_holes(load(str(model), "cpu").model, reserved_tasks("development")[:holes])


def installed_packages() -> list[Path]:
    """The `site-packages` folders of this interpreter, and of the one that its environment was made from."""
    bases = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}
    paths = [sysconfig.get_path(kind, vars=given) for given in ({}, bases) for kind in ("purelib", "platlib")]
    return list(dict.fromkeys(Path(path) for path in paths if Path(path).is_dir()))


def _workers(device: torch.device) -> int:
    """How many processes make batches: none on a processor, where they would slow the model down."""
    return min(MAX_WORKERS, max(1, (os.cpu_count() or 1) - 2)) if device.type == "cuda" else 0


def _run_folder(name: str) -> Path:
    return corpus_folder("runs") / name


def _machine(name: str, threads: int | None, *, idle: bool) -> torch.device:
    """The device of that name, and this process made ready to train."""
    check_device(name)
    there = torch.cuda.is_available()
    check_cuda(name, there)
    if idle:
        be_idle()
    # Before the first other thread, which takes it over: numbers this small are nothing, and some processors take a
    # hundred times as long for each.
    torch.set_flush_denormal(True)
    keep_few_programs()
    if threads:
        torch.set_num_threads(threads)
    return torch.device("cuda" if there and name != "cpu" else "cpu")


if __name__ == "__main__":
    app()
