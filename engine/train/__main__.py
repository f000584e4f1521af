"""`python -m engine.train`: from source code on this machine to a model directory."""

from __future__ import annotations

import os
import signal
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, cast

import torch
import typer

from engine.checkpoints.directory import LengthStrategy
from engine.core.errors import BadInput
from engine.core.exits import one_line_errors
from engine.eval.reserved.packages import reserved_files
from engine.loader.loading import load
from engine.models.gemma.model import DiffusionGemma
from engine.models.gemma.network import GemmaNetwork
from engine.train.card import write_card
from engine.train.compare import compare as compare_models
from engine.train.contamination import Forbidden, benchmark_texts
from engine.train.corpus import build_corpus, corpus_folder, read_documents, read_manifest
from engine.train.export import export as export_model
from engine.train.judge import judge as judge_network
from engine.train.masked import MaskedPreset, export_masked, train_masked
from engine.train.packed import PackedCorpus, pack
from engine.train.pinned import fetch_pinned
from engine.train.precision import prefers_bfloat16
from engine.train.presets import PRESETS, Preset, changed
from engine.train.run import Sitting, idle, train
from engine.train.sources import Sources
from engine.train.state import newest_state, read_curve
from engine.train.tokenizer import load_tokenizer, save_tokenizer, train_tokenizer
from engine.train.toy import build_toy_corpus

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)

PresetName = Annotated[str, typer.Option("--preset", help=f"One of {', '.join(PRESETS)}.")]
RunName = Annotated[str, typer.Option("--name", help="The run's name; its folder is in the user's cache.")]
Folder = Annotated[Path | None, typer.Option(help="The run's folder, instead of one by name.")]
CorpusName = Annotated[str, typer.Option("--corpus", help="The corpus's name.")]
Tokens = Annotated[float | None, typer.Option(min=1, help="Context tokens to read, instead of the preset's.")]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Another value for a part of the preset, as step_tokens=16384."),
]
DeviceName = Annotated[str, typer.Option("--device", metavar="auto|cpu|cuda")]
Seed = Annotated[int, typer.Option(min=0)]
MAX_WORKERS = 12


@app.command()
@one_line_errors()
def corpus(
    name: Annotated[str, typer.Option(help="The corpus's name.")] = "corpus",
    node_modules: Annotated[
        list[Path] | None, typer.Option(help="Folders of npm packages, besides the pinned.")
    ] = None,
    site_packages: Annotated[
        list[Path] | None, typer.Option(help="Folders of Python packages, instead of all pinned and installed ones.")
    ] = None,
    decontaminate: Annotated[
        list[Path] | None,
        typer.Option(exists=True, dir_okay=False, help="Benchmark files no text may share 10 words with."),
    ] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="An exported model whose tokenizer is taken, to go on from its weights.")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Collect source code under permissive licences, learn a tokenizer and pack it all."""
    out = corpus_folder(name)
    pinned, scripts = ([], []) if site_packages else ([folder] for folder in fetch_pinned(corpus_folder("")))
    sources = Sources(
        site_packages=tuple(site_packages or [*pinned, *installed_packages()]),
        node_modules=(*scripts, *(node_modules or ())),
    )
    reserved = (file.text for file in reserved_files())
    manifest = build_corpus(sources, out, seed, Forbidden(benchmark_texts(decontaminate or ()), reserved))
    typer.echo(f"{len(manifest.packages)} packages, {manifest.characters('train'):,} characters to train on")
    texts = (document.text for document in read_documents(out, "train"))
    chosen = load_tokenizer(tokenizer) if tokenizer else train_tokenizer(texts)
    save_tokenizer(chosen, out / "tokenizer")
    for split in ("train", "held-out"):
        pack(read_documents(out, split), chosen, out / "packed" / split)
    typer.echo(f"The corpus {name} is in {out}.")


@app.command()
@one_line_errors()
def run(
    preset: PresetName = "small",
    name: RunName = "run",
    folder: Folder = None,
    corpus: CorpusName = "corpus",
    tokens: Tokens = None,
    changes: Changes = None,
    start_from: Annotated[
        Path | None, typer.Option(help="The folder of a run, or an exported model, that a new run goes on from.")
    ] = None,
    seed: Seed = 0,
    device: DeviceName = "auto",
    threads: Annotated[int | None, typer.Option(min=1, help="Of the processor.")] = None,
    workers: Annotated[int | None, typer.Option(min=0, help="Processes that make batches in advance.")] = None,
    compile_: Annotated[bool, typer.Option("--compile/--no-compile")] = True,
    idle_: Annotated[
        bool, typer.Option("--idle", help="Take processor time only where nothing else wants it.")
    ] = False,
) -> None:
    """Train, or go on training: Ctrl-C pauses, the same command resumes."""
    recipe = _recipe(preset, tokens, changes)
    where = _device(device)
    if idle_:
        idle()
    if threads:
        torch.set_num_threads(threads)
    sitting = Sitting(
        device=where,
        compiled=compile_,
        bfloat16=prefers_bfloat16(where.type),
        workers=_workers(where) if workers is None else workers,
        start_from=start_from,
    )
    folder = folder or _run_folder(name)
    with pausing() as should_pause:
        state = train(recipe, corpus_folder(corpus), folder, seed, sitting, typer.echo, should_pause)
    done = state.tokens >= recipe.tokens
    typer.echo(f"{'Done' if done else 'Paused; the same command goes on'}: {state.tokens:,} tokens, {folder}")


@app.command()
@one_line_errors()
def export(
    out: Annotated[Path, typer.Option(help="The model directory to write.")],
    preset: PresetName = "small",
    name: RunName = "run",
    folder: Folder = None,
    corpus: CorpusName = "corpus",
    seed: Seed = 0,
    gaps: Annotated[int, typer.Option(min=1, help="Held-out gaps to compare on, for the card.")] = 300,
    evaluation: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Markdown for the card: what was measured.")
    ] = None,
) -> None:
    """Write the newest checkpoint as a model directory with its card."""
    recipe, folder = _recipe(preset), folder or _run_folder(name)
    state = newest_state(recipe, folder, seed, torch.device("cpu"))
    text = corpus_folder(corpus)
    export_model(state, recipe, text / "tokenizer", out, "asked")
    write_card(
        out,
        name=preset,
        preset=recipe,
        seed=seed,
        state=state,
        curve=read_curve(folder),
        manifest=read_manifest(text),
        comparison=compare_models(_loaded(out), PackedCorpus(text, "held-out"), gaps).table(),
        evaluation=evaluation.read_text(encoding="utf-8") if evaluation else "",
    )
    typer.echo(f"{out} holds the model after {state.tokens:,} tokens.")


@app.command()
@one_line_errors()
def compare(
    model: Annotated[str, typer.Argument(help="A model directory that this recipe wrote, or bundled.")] = "bundled",
    corpus: CorpusName = "corpus",
    gaps: Annotated[int, typer.Option(min=1)] = 300,
    seed: Seed = 0,
) -> None:
    """Hold the canvas against the causal head of the same weights, on packages that were held out."""
    held_out = PackedCorpus(corpus_folder(corpus), "held-out")
    typer.echo(compare_models(_loaded(model), held_out, gaps, seed).table())


@app.command()
@one_line_errors()
def judge(
    preset: PresetName = "small",
    name: RunName = "run",
    folder: Folder = None,
    corpus: CorpusName = "corpus",
    gaps: Annotated[int, typer.Option(min=1)] = 400,
    seed: Seed = 0,
) -> None:
    """What the causal head of a run has learnt, on packages that were held out: the gates of the recipe."""
    recipe, folder = _recipe(preset), folder or _run_folder(name)
    state = newest_state(recipe, folder, seed, torch.device("cpu"))
    held_out = PackedCorpus(corpus_folder(corpus), "held-out")
    typer.echo(f"{state.tokens:,} tokens: {judge_network(GemmaNetwork(state.module), held_out, recipe, gaps).line()}")


@app.command()
@one_line_errors()
def toy(
    out: Annotated[Path, typer.Option(help="The model directory to write.")],
    preset: PresetName = "toy-absorbing",
    length: Annotated[str | None, typer.Option(metavar="asked|slack|discover|expand|calibrated")] = None,
    family: Annotated[str, typer.Option(metavar="diffusion_gemma|masked")] = "diffusion_gemma",
    tokens: Tokens = None,
    seed: Seed = 0,
) -> None:
    """Train a model of a closed toy language by the same recipe: a real denoiser for tests."""
    if family == "masked":
        _masked_toy(out, length or "expand", seed)
        return
    if family != "diffusion_gemma":
        raise BadInput(f"There is no family {family!r}: use diffusion_gemma or masked.")
    recipe = _recipe(preset, tokens)
    with tempfile.TemporaryDirectory() as scratch:
        text = Path(scratch) / "corpus"
        build_toy_corpus(text, seed, recipe.shape.vocab)
        state = train(recipe, text, Path(scratch) / "run", seed, Sitting(device=torch.device("cpu")), typer.echo)
        export_model(state, recipe, text / "tokenizer", out, cast(LengthStrategy, length or "slack"))
    typer.echo(f"{out} holds the toy model.")


def _masked_toy(out: Path, length: str, seed: int) -> None:
    preset = MaskedPreset()
    with tempfile.TemporaryDirectory() as scratch:
        text = Path(scratch)
        build_toy_corpus(text, seed, preset.vocab)
        module = train_masked(preset, text, seed, typer.echo)
        export_masked(module, preset, text / "tokenizer", out, cast(LengthStrategy, length))
    typer.echo(f"{out} holds the toy model.")


def installed_packages() -> list[Path]:
    """The folders of installed packages of this interpreter and of the one that its environment was made from."""
    bases = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}
    paths = [sysconfig.get_path(kind, vars=given) for given in ({}, bases) for kind in ("purelib", "platlib")]
    return list(dict.fromkeys(Path(path) for path in paths if Path(path).is_dir()))


@contextmanager
def pausing() -> Generator[Callable[[], bool]]:
    """Whether someone asked to stop, by Ctrl-C or SIGTERM; a second time ends at once."""
    asked: list[int] = []

    def note(number: int, frame: Any) -> None:
        asked.append(number)
        for each, handler in before.items():
            signal.signal(each, handler)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _recipe(name: str, tokens: float | None = None, changes: Sequence[str] | None = None) -> Preset:
    if name not in PRESETS:
        raise BadInput(f"There is no preset {name!r}: use {', '.join(PRESETS)}.")
    return changed(PRESETS[name], [*(changes or ()), *([f"tokens={int(tokens)}"] if tokens else ())])


def _run_folder(name: str) -> Path:
    return corpus_folder("runs") / name


def _device(name: str) -> torch.device:
    if name not in ("auto", "cpu", "cuda"):
        raise BadInput(f"There is no device {name!r}: use auto, cpu or cuda.")
    there = torch.cuda.is_available()
    if name == "cuda" and not there:
        raise BadInput("CUDA was asked for, but torch finds no GPU here: use --device cpu, or a CUDA build of torch.")
    return torch.device("cuda" if there and name != "cpu" else "cpu")


def _workers(device: torch.device) -> int:
    # On a processor they would take from the model what they give.
    return min(MAX_WORKERS, max(1, (os.cpu_count() or 1) - 2)) if device.type == "cuda" else 0


def _loaded(model: Any) -> DiffusionGemma:
    loaded = load(str(model), "cpu").model
    if not isinstance(loaded, DiffusionGemma) or loaded.info.instructions:
        raise BadInput(f"{model} was not trained by this recipe: name a directory that `export` wrote.")
    return loaded


if __name__ == "__main__":
    app()
