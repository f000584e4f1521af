"""`dg-lsp tune`: from a folder to its adapter. Read, plan, measure, learn, fit, measure again, keep."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import torch

from engine.common.errors import BadInput, EngineError, ModelError
from engine.common.files import check_folder, replacing, writing
from engine.common.names import Device
from engine.common.wording import counted
from engine.fill.loading import load
from engine.lab.eval.figures import Figures
from engine.lab.eval.tasks import EvalTask
from engine.learn.corpus import Split
from engine.learn.learn import TuningState, learn, parameters_of, put, steps_of
from engine.learn.lessons import count_tokens, recipe_of, tokenizer_of, write_corpus
from engine.learn.lora import ALPHA, RANK, Trainable, adapted, pairs_of, parameters_from, trainable
from engine.learn.measure import FITS, Schedule, fit, held_out_gaps, measure, outside_gaps, quality
from engine.learn.plan import TuningPlan, plan
from engine.learn.prompted import TuningLessons, lessons_of
from engine.learn.repository import Learnt, Listing, Repository, list_files, read_repository, weights_of
from engine.learn.training import Sitting
from engine.models.adapters.applied import with_pairs
from engine.models.adapters.files import Adapter, read_adapter, write_adapter
from engine.models.adapters.low_rank import LowRankLinear
from engine.models.adapters.metadata import (
    AdapterFigures,
    AdapterMetadata,
    adapter_path,
    claimed,
    fingerprint_of,
    last_good,
    work_dir,
)
from engine.models.checkpoints.catalog import find
from engine.models.checkpoints.directory import Checkpoint
from engine.models.gemma.model import DiffusionGemma
from engine.models.masked.model import Masked
from engine.models.products import prefers_bfloat16
from engine.models.quantized.layers import packed_in

PASSES = 4
"""Most times that a repository is read."""
SAVE_EVERY_S = 30.0
HELD_OUT, OUTSIDE = "held out", "outside"
LEARNT, BEGUN, CORPUS = "learnt.json", "begun.json", "corpus"
_WAY_OUT = "make room on its disk and run the same command again"
"""The remedy if the disk is full or refuses."""
Say = Callable[[str], None]
Counting = Callable[[str, int], Callable[[], None]]
"""(Name of the work, number of its parts) -> a function to call after each part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningRequest:
    folder: Path
    model: str
    device: Device = "auto"
    minutes: float = 15.0
    """Most minutes of learning."""
    gaps: int = 60
    """Held-out gaps that are filled before and after."""
    outside: int = 60
    """Gaps outside the repository that are filled before and after."""
    seed: int = 0
    anew: bool = False
    """Whether to begin with the model alone, though there is an adapter to go on from."""


class _Begun(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that a run keeps from its beginning, as they vary: the speed of the machine, the age of changes."""

    steps: int
    weights: dict[str, int]
    """How often each file is read, by path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The state of a run before it learns."""

    request: TuningRequest
    checkpoint: Checkpoint
    listing: Listing
    repository: Repository
    last: Adapter | None
    """The existing adapter, on or off."""
    start: Adapter | None
    """The adapter that the run goes on from; None: the model alone."""
    learnt: Learnt | None
    """The record of what `last` was trained on, if that decides which files are held out."""
    model: DiffusionGemma | Masked
    lessons: TuningLessons
    plan: TuningPlan
    sitting: Sitting
    directory: Path
    """The adapter's folder."""
    work: Path
    run: Path
    """The folder in `work` that keeps this run until it is done."""

    @property
    def served(self) -> Adapter | None:
        """The adapter that serves the folder now; None: the model alone."""
        return self.last if self.last and self.last.metadata.on else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningResult:
    before: Mapping[str, Figures]
    """Figures of what served the folder until now."""
    after: Mapping[str, Figures]
    """Figures of the new adapter, on HELD_OUT and OUTSIDE gaps."""
    state: TuningState
    schedule: Schedule
    gained: bool
    kept: Path | None
    """The folder of the new adapter; None: the existing one is no worse and stays."""


@contextmanager
def prepared(request: TuningRequest, say: Say, doing: Say = lambda _: None) -> Generator[Prepared | None]:
    """Read the folder, load the model, and plan the run; None where nothing changed since the existing adapter was
    made.

    `doing` is called before each part that takes a while. Raises BadInput for what can't be tuned, EngineError where
    the disk refuses or weights change.
    """
    check_folder(request.folder)
    checkpoint = find(request.model)
    fingerprint = fingerprint_of(checkpoint)
    directory = adapter_path(request.folder, fingerprint)
    work = work_dir(directory)
    doing("Listing the files")
    listing = listed(request.folder, say)
    with _claimed(work):
        last = _last(directory, fingerprint, anew=request.anew)
        learnt = _learnt(work, last)
        # Where it begins anew, too: what is gained over an adapter can't be told on what that one has learnt.
        doing("Reading the files")
        repository = read_repository(listing, learnt)
        if not request.anew and learnt is not None and learnt.digests == repository.digests:
            yield None
            return
        if learnt is not None and not repository.of("held-out"):
            say("None of the files that were held out is left: this begins with the model alone.")
            learnt, repository = None, read_repository(listing)
        elif last is not None and learnt is None and not request.anew:
            say(
                "The adapter that is there gained nothing, or what it has learnt is not known: this begins with the "
                "model alone."
            )
        start = None if request.anew or learnt is None else last
        tokenizer = tokenizer_of(checkpoint)
        tokens = count_tokens(repository, tokenizer)
        say(summary(listing, repository, tokens))
        doing("Loading the model")
        model = load(request.model, request.device).model
        assert isinstance(model, DiffusionGemma | Masked)
        if model.info.fingerprint != fingerprint:
            raise EngineError(
                f"The weights of {checkpoint.name} changed while they were read: run the same command again."
            )
        run = work / f"run-{_identity(request, repository, model.info.device, last, start)}"
        begun = _begun(run)
        weights = begun.weights if begun else weights_of(listing, repository, learnt if start else None)
        repository = repository.weighted(weights)
        with writing(work, _WAY_OUT):
            write_corpus(repository, tokenizer, work / CORPUS)
        recipe = recipe_of(model.info, checkpoint.metadata, PASSES * tokens["train"])
        lessons = lessons_of(model, repository, work / CORPUS, recipe, request.seed)
        device = torch.device(model.info.device)
        sitting = Sitting(device=device, bfloat16=prefers_bfloat16(device.type), save_every_s=SAVE_EVERY_S)
        doing("Trying one step")
        with learning(model, start, request.seed) as (network, pairs):
            planned = plan(network, pairs, lessons, sitting)
        in_time = max(1, int(request.minutes * 60 / planned.step_s))
        steps = begun.steps if begun else min(steps_of(recipe), in_time)
        recipe = replace(recipe, tokens=steps * recipe.step_tokens)
        yield Prepared(
            request=request,
            checkpoint=checkpoint,
            listing=listing,
            repository=repository,
            last=last,
            start=start,
            learnt=learnt,
            model=model,
            lessons=replace(lessons, recipe=recipe),
            plan=replace(planned, steps=steps),
            sitting=sitting,
            directory=directory,
            work=work,
            run=run,
        )


def listed(folder: Path, say: Say) -> Listing:
    """The files that a model may see; ignore files that can't be read are said. Raises BadInput."""
    listing = list_files(folder)
    for refusal in listing.unheeded:
        say(f"{refusal}: nothing that it is about is read.")
    return listing


def tune(ready: Prepared, say: Say, counting: Counting, should_pause: Callable[[], bool]) -> TuningResult | None:
    """Measure, learn, fit, measure again and keep an adapter that gained; None where `should_pause` came first: the
    same request goes on. Raises OutOfMemory before anything begins, EngineError where the disk refuses."""

    def heeding(what: str, often: int) -> Callable[[], None]:
        done = counting(what, often)

        def each() -> None:
            done()
            if should_pause():
                # As a second Ctrl-C would: what is filled by now is kept.
                raise KeyboardInterrupt

        return each

    ready.plan.check()
    with suppress(KeyboardInterrupt):
        return _tuned(ready, say, heeding, should_pause)
    return None


def _tuned(ready: Prepared, say: Say, counting: Counting, should_pause: Callable[[], bool]) -> TuningResult | None:
    gaps, chosen_by = held_out_gaps(ready.repository, ready.request.gaps)
    if not gaps:
        raise BadInput("The files that are held out have no gap to measure on: name a folder with more code.")
    tasks = {HELD_OUT: gaps, OUTSIDE: outside_gaps(ready.request.outside)}
    _begin(ready, say)
    before = _before(ready, tasks, counting)
    with learning(ready.model, ready.start, ready.request.seed) as (network, pairs):
        recipe = ready.lessons.recipe
        state = learn(network, pairs, ready.lessons, recipe, ready.run, ready.sitting, say, should_pause)
    if state is None:
        return None
    tensors = pairs_of(state.best)
    served = with_pairs(ready.model, tensors, ALPHA / RANK)
    schedule = fit(served, chosen_by, counting("choosing how many steps to take", FITS * len(chosen_by)))
    after = {name: _measured(ready, served, f"after, {name}", own, schedule, counting) for name, own in tasks.items()}
    gained = state.gained and quality(after[HELD_OUT]) > quality(before[HELD_OUT])
    kept = None
    if gained or ready.last is None:
        adapter = Adapter(metadata=_metadata(ready, before, after, schedule, on=gained), tensors=tensors)
        write_adapter(ready.directory, adapter)
        kept = ready.directory
        with writing(ready.work, _WAY_OUT):
            if gained:
                digests, earlier = dict(ready.repository.digests), ready.learnt.sides if ready.learnt else {}
                sides = earlier | ready.repository.sides
                learnt = Learnt(adapter=adapter.metadata.created, digests=digests, sides=sides)
                with replacing(ready.work / LEARNT) as draft:
                    draft.write_bytes(msgspec.json.encode(learnt))
            else:
                (ready.work / LEARNT).unlink(missing_ok=True)
    shutil.rmtree(ready.run, ignore_errors=True)
    return TuningResult(before=before, after=after, state=state, schedule=schedule, gained=gained, kept=kept)


@contextmanager
def learning(
    model: DiffusionGemma | Masked, earlier: Adapter | None, seed: int
) -> Generator[tuple[Trainable, dict[str, LowRankLinear]]]:
    """Within the block the model's layers have pairs beside them: new ones, or those of an earlier adapter."""
    module = model.network.module
    recompute = bool(packed_in(module))
    with adapted(module, seed=seed) as pairs:
        if earlier is not None:
            put(parameters_from(earlier.tensors), parameters_of(pairs))
        yield trainable(model.network, recompute=recompute), pairs


def summary(listing: Listing, repository: Repository, tokens: Mapping[Split, int]) -> str:
    """A summary of what is read, for people."""
    told = {
        split: f"{counted(len(repository.of(split)), 'file')} with {counted(tokens[split], 'token')}"
        for split in tokens
    }
    return (
        f"{listing.folder}: {told['train']} to learn from, {told['held-out']} held out to measure on.{repository.note}"
    )


def _before(ready: Prepared, tasks: Mapping[str, Sequence[EvalTask]], counting: Counting) -> dict[str, Figures]:
    """The figures of what serves the folder now; nothing of it stays in memory."""
    own = ready.served and ready.served.metadata
    usual = own and Schedule(max_steps=own.max_steps, sure=own.sure, threshold=own.threshold)
    served = with_pairs(ready.model, ready.served.tensors, ALPHA / RANK) if ready.served else ready.model
    before = {name: _measured(ready, served, f"before, {name}", gaps, usual, counting) for name, gaps in tasks.items()}
    # The contexts that were read for it are in the model's cache, whatever weights read them; the plan counts none.
    ready.model.forget()
    return before


def _measured(
    ready: Prepared,
    model: DiffusionGemma | Masked,
    doing: str,
    tasks: Sequence[EvalTask],
    schedule: Schedule | None,
    counting: Counting,
) -> Figures:
    kept = ready.run / doing.replace(", ", "-").replace(" ", "-")
    return measure(model, tasks, schedule, counting(f"filling gaps {doing}", len(tasks)), kept)


def _metadata(
    ready: Prepared, before: Mapping[str, Figures], after: Mapping[str, Figures], schedule: Schedule, *, on: bool
) -> AdapterMetadata:
    def figures(measured: Mapping[str, Figures]) -> dict[str, AdapterFigures]:
        return {name: msgspec.convert(each, AdapterFigures, from_attributes=True) for name, each in measured.items()}

    return AdapterMetadata(
        model=ready.checkpoint.name,
        fingerprint=ready.model.info.fingerprint,
        folder=ready.listing.folder,
        commit=ready.listing.commit,
        created=time.time(),
        rank=RANK,
        alpha=ALPHA,
        before=figures(before),
        after=figures(after),
        max_steps=schedule.max_steps,
        sure=schedule.sure,
        threshold=schedule.threshold,
        on=on,
    )


def _last(directory: Path, fingerprint: str, *, anew: bool) -> Adapter | None:
    """The existing adapter, on or off. One that can't be used counts as none with `anew`; else it raises ModelError
    where it is damaged, BadInput where it belongs to other weights."""
    if not last_good(directory).exists():
        return None
    try:
        last = read_adapter(directory)
        if last.metadata.fingerprint != fingerprint:
            raise BadInput(f"The adapter in {directory} belongs to other weights: remove it, or begin --anew.")
    except (ModelError, BadInput):
        if anew:
            return None
        raise
    return last


def _identity(
    request: TuningRequest, repository: Repository, device: str, last: Adapter | None, start: Adapter | None
) -> str:
    """A digest of all that decides what a run learns and measures, apart from what is kept when it begins."""
    settings = (request.seed, request.gaps, request.outside, request.minutes)
    about = (*settings, sorted(repository.digests.items()), RANK, ALPHA)
    begun = last and (last.metadata.created, last.metadata.on, start is not None)
    return hashlib.sha256(msgspec.json.encode((about, device, begun))).hexdigest()[:12]


def _begun(run: Path) -> _Begun | None:
    """The kept facts of a run, from its folder; None if it has not begun."""
    with suppress(OSError, ValueError):
        return msgspec.json.decode((run / BEGUN).read_bytes(), type=_Begun)
    return None


def _begin(ready: Prepared, say: Say) -> None:
    """Write what the run keeps, and remove any other run of the folder."""
    with writing(ready.work, _WAY_OUT):
        for other in ready.work.glob("run-*"):
            if other != ready.run:
                say("The run that was paused is dropped: files or settings have changed since.")
                shutil.rmtree(other)
        ready.run.mkdir(exist_ok=True)
        weights = {each.path: each.weight for each in ready.repository.documents}
        with replacing(ready.run / BEGUN) as draft:
            draft.write_bytes(msgspec.json.encode(_Begun(steps=ready.plan.steps, weights=weights)))


def _learnt(work: Path, last: Adapter | None) -> Learnt | None:
    """The record of what the existing adapter was trained on; None if it is unknown, as for one that gained nothing."""
    with suppress(OSError, ValueError):
        learnt = msgspec.json.decode((work / LEARNT).read_bytes(), type=Learnt)
        if last is not None and learnt.adapter == last.metadata.created:
            return learnt
    return None


@contextmanager
def _claimed(work: Path) -> Generator[None]:
    """Lock a folder for its tune. Raises BadInput where another tune of it is at work. The lock holds nothing of the
    folder's texts."""
    with ExitStack() as stack:
        with writing(work, _WAY_OUT):
            stack.enter_context(claimed(work))
        stack.callback(shutil.rmtree, work / CORPUS, ignore_errors=True)
        yield
