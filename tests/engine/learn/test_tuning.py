"""A small repository, from its files to its adapter."""

import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from engine.common.errors import BadInput, EngineError, ModelError, OutOfMemory
from engine.common.names import Device
from engine.common.request import FillRequest
from engine.fill.executor import drive
from engine.fill.loading import Infiller, load
from engine.fill.pipeline import infill
from engine.lab.eval.figures import Figures, figures
from engine.learn import measure, tuning
from engine.learn.learn import CHECKPOINT, TuningState, parameters_of
from engine.learn.lora import ALPHA, RANK, pairs_of
from engine.learn.measure import Schedule
from engine.learn.repository import Learnt
from engine.learn.tuning import CORPUS, HELD_OUT, LEARNT, OUTSIDE, Prepared, TuningRequest, learning, prepared, tune
from engine.models.adapters.applied import with_adapter
from engine.models.adapters.files import WEIGHTS_FILE, Adapter, read_adapter, write_adapter
from engine.models.adapters.metadata import OLD, AdapterMetadata, adapters_dir, fingerprint_of
from engine.models.checkpoints.directory import SINGLE_FILE

ROOT = Path(__file__).parents[3]
TOY = ROOT / "tests" / "models" / "toy-experts"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DG_LSP_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(measure, "MAX_TOKENS", 8)
    monkeypatch.setattr("engine.learn.learn.LOOKS", 1)
    return tmp_path / "state"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Code that somebody wrote."""
    shutil.copytree(ROOT / "engine" / "common", tmp_path / "code", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "code"


def request(folder: Path, **more: Any) -> TuningRequest:
    return TuningRequest(folder=folder, model=str(TOY), device="cpu", minutes=0.02, gaps=2, outside=1, **more)


class Seen:
    """What was said, and how often each kind of work was done."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.done: Counter[str] = Counter()

    def count(self, doing: str, often: int) -> Callable[[], None]:
        return lambda: self.done.update([doing])


def all_of(ready: Prepared | None) -> Prepared:
    assert ready is not None
    return ready


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def after(gaps: int) -> Callable[[], bool]:
    """Pause as soon as so many are filled and something is learnt."""
    answers = chain(repeat(False, gaps), repeat(True))
    return lambda: next(answers)


def test_before_it_starts_it_says_what_it_takes_and_learns_nothing(folder: Path, state: Path):
    seen = Seen()
    with prepared(request(folder), seen.lines.append) as found:
        ready = all_of(found)
        assert ready.plan.steps >= 1
        assert ready.plan.seconds > 0
        assert 1 << 20 < ready.plan.training < ready.plan.resident < ready.plan.nbytes
        before = {name: part.clone() for name, part in ready.model.network.module.state_dict().items()}
        with learning(ready.model, None, 0) as (_, pairs):
            assert all(not pair.lora_B.any() and pair.lora_A.grad is None for pair in pairs.values())
    after = ready.model.network.module.state_dict()
    assert all(torch.equal(part, after[name]) for name, part in before.items())
    (said,) = seen.lines
    assert said.startswith(f"{folder}: ")
    assert "tokens to learn from" in said
    assert not adapters_dir().exists()
    assert not [name for name in files(state) if CHECKPOINT in name]
    assert not ready.run.exists(), "how long it is to be is decided when it begins"
    assert not (ready.work / CORPUS).exists(), "a copy of the folder's texts"


def test_it_measures_learns_and_keeps_an_adapter_and_a_pause_costs_nothing_that_was_done(folder: Path):
    seen = Seen()
    with prepared(request(folder), seen.lines.append) as found:
        ready = all_of(found)
        assert tune(ready, seen.lines.append, seen.count, lambda: True) is None
        assert seen.done == {"filling gaps before, held out": 1}
        assert not (ready.run / CHECKPOINT).exists()
        assert tune(ready, seen.lines.append, seen.count, after(2)) is None
        assert (ready.run / CHECKPOINT).exists()
        assert ready.model.cache.nbytes == 0, "what was planned is beside no contexts"
    filled = {name: count for name, count in seen.done.items() if "before" in name}
    assert sum(filled.values()) == 3
    with prepared(request(folder), seen.lines.append) as found:
        again = all_of(found)
        assert again.run == ready.run
        assert again.plan.steps == ready.plan.steps
        result = tune(again, seen.lines.append, seen.count, lambda: False)
    assert result is not None
    assert {name: count for name, count in seen.done.items() if "before" in name} == filled
    assert {*result.before} == {*result.after} == {HELD_OUT, OUTSIDE}
    for measured in (result.before, result.after):
        assert [each.gaps for each in measured.values()] == [2, 1]
    assert result.kept == ready.directory
    assert ready.directory.parent == adapters_dir()
    adapter = read_adapter(ready.directory)
    assert adapter.metadata.on == result.gained
    assert adapter.metadata.folder == str(folder.resolve())
    assert adapter.metadata.sure == result.schedule.sure
    assert len({name.partition(".layers.")[2].partition(".")[0] for name in adapter.tensors}) == 3
    assert all(a.dtype == torch.bfloat16 for a, _ in adapter.tensors.values())
    # Nothing of the run is left but what the next one goes on from.
    assert not ready.run.exists()
    assert (ready.work / LEARNT).exists() == result.gained


def paused(asked: TuningRequest) -> Prepared:
    with prepared(asked, lambda line: None) as found:
        ready = all_of(found)
        assert tune(ready, lambda line: None, Seen().count, after(3)) is None
    assert (ready.run / CHECKPOINT).exists()
    return ready


def test_a_look_at_another_plan_leaves_a_paused_run_alone(folder: Path):
    ready = paused(request(folder))
    with prepared(replace(request(folder), minutes=0.04), lambda line: None) as found:
        assert all_of(found).run != ready.run
    assert (ready.run / CHECKPOINT).exists()


def test_a_paused_run_goes_on_however_late(folder: Path, monkeypatch: pytest.MonkeyPatch):
    git = ["git", "-C", str(folder), "-c", "user.name=someone", "-c", "user.email=someone@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*git, *command], check=True)
    ready = paused(request(folder))
    with prepared(request(folder), lambda line: None) as found:
        batch = all_of(found).lessons.batch(3)
    now_s = time.time()
    monkeypatch.setattr(time, "time", lambda: now_s + 40 * 86_400)
    with prepared(request(folder), lambda line: None) as found:
        again = all_of(found)
        assert again.run == ready.run
        assert again.plan.steps == ready.plan.steps
        assert again.repository == ready.repository
        assert torch.equal(again.lessons.batch(3).truth, batch.truth)
        assert {each.weight for each in again.repository.documents} == {3}
    with prepared(replace(request(folder), seed=1), lambda line: None) as found:
        assert {each.weight for each in all_of(found).repository.documents} == {2}


def test_a_paused_run_whose_files_changed_is_dropped_with_a_word(folder: Path):
    ready = paused(request(folder))
    add_code(folder, ready.repository.of("train")[0].path)
    lines: list[str] = []
    with prepared(request(folder), lines.append) as found:
        again = all_of(found)
        assert ready.run.exists()
        assert tune(again, lines.append, Seen().count, lambda: True) is None
    assert [line for line in lines if "files or settings have changed" in line]
    assert not ready.run.exists()
    lines.clear()
    with prepared(request(folder), lines.append) as found:
        assert tune(all_of(found), lines.append, Seen().count, lambda: True) is None
    assert not [line for line in lines if "changed" in line]


@contextmanager
def learnt(folder: Path, *, on: bool = True) -> Generator[Prepared]:
    """The folder has an adapter that has learnt all of it."""
    with prepared(request(folder), lambda line: None) as found:
        ready = all_of(found)
        with learning(ready.model, None, 5) as (_, pairs):
            for pair in pairs.values():
                torch.nn.init.normal_(pair.lora_B, std=0.01)
            tensors = pairs_of(parameters_of(pairs))
    metadata = AdapterMetadata(
        model=str(TOY),
        fingerprint=fingerprint_of(ready.checkpoint),
        folder=str(folder),
        commit=None,
        created=1.0,
        rank=RANK,
        alpha=ALPHA,
        before={},
        after={},
        max_steps=8,
        sure=0.5,
        threshold=None,
        on=on,
    )
    write_adapter(ready.directory, Adapter(metadata=metadata, tensors=tensors))
    found = Learnt(adapter=1.0, digests=dict(ready.repository.digests), sides=ready.repository.sides)
    (ready.work / LEARNT).write_bytes(msgspec.json.encode(found))
    yield ready


def test_it_goes_on_from_the_adapter_that_is_there_on_what_changed(folder: Path):
    with learnt(folder) as earlier:
        held = read_adapter(earlier.directory)
    with prepared(request(folder), lambda line: None) as found:
        assert found is None
    changed = next(each.path for each in earlier.repository.of("train"))
    add_code(folder, changed)
    with prepared(request(folder), lambda line: None) as found:
        ready = all_of(found)
        weights = {each.path: each.weight for each in ready.repository.documents}
        assert weights.pop(changed) == 3
        assert {*weights.values()} == {1}
        with learning(ready.model, ready.start, 0) as (_, pairs):
            begun = parameters_of(pairs)
            name, (a, b) = next(iter(held.tensors.items()))
            assert torch.equal(begun[f"{name}.lora_A"], a.float())
            assert torch.equal(begun[f"{name}.lora_B"], b.float())
    with prepared(request(folder, anew=True), lambda line: None) as found:
        assert all_of(found).start is None


def add_code(folder: Path, path: str) -> None:
    with (folder / path).open("a") as end:
        end.write("\n\ndef added(value):\n    return value\n")


Measured = list[tuple[Any, Schedule | None]]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measured:
    """Which model was measured with which schedule. It fills nothing: nothing is gained."""
    seen: Measured = []
    found = figures("as it was", [])

    def note(model: Any, tasks: Any, schedule: Schedule | None, *rest: object) -> Figures:
        seen.append((model, schedule))
        return found

    monkeypatch.setattr(tuning, "measure", note)
    return seen


def test_an_adapter_that_is_off_is_not_what_served(folder: Path, measured: Measured):
    with learnt(folder, on=False) as earlier:
        pass
    add_code(folder, earlier.repository.of("train")[0].path)
    with prepared(request(folder), lambda line: None) as found:
        ready = all_of(found)
        assert ready.served is None
        assert ready.start is not None
        assert tune(ready, lambda line: None, Seen().count, lambda: True) is None
    assert measured == [(ready.model, None)] * 2


def test_what_was_read_to_measure_an_adapter_is_let_go_before_it_learns(folder: Path):
    with learnt(folder) as earlier:
        pass
    add_code(folder, earlier.repository.of("train")[0].path)
    with prepared(request(folder), lambda line: None) as found:
        ready = all_of(found)
        assert tune(ready, lambda line: None, Seen().count, after(3)) is None
        assert ready.model.cache.nbytes == 0


def test_one_that_gained_nothing_is_no_beginning(folder: Path, measured: Measured):
    with prepared(request(folder), lambda line: None) as found:
        ready = all_of(found)
        # Of an adapter that was there before.
        (ready.work / LEARNT).touch()
        result = tune(ready, lambda line: None, Seen().count, lambda: False)
    assert result is not None
    assert not result.gained
    assert not read_adapter(ready.directory).metadata.on
    assert not (ready.work / LEARNT).exists()
    with prepared(request(folder), lambda line: None) as found:
        again = all_of(found)
        assert again.start is None
        assert again.served is None


@pytest.mark.parametrize("kept", ["as it was kept before", "of another adapter"])
def test_an_adapter_of_which_nobody_knows_what_it_has_learnt_is_no_beginning(kept: str, folder: Path):
    with learnt(folder) as earlier:
        digests = dict(earlier.repository.digests)
    other = Learnt(adapter=2.0, digests=digests, sides=earlier.repository.sides)
    (earlier.work / LEARNT).write_bytes(msgspec.json.encode(digests if kept == "as it was kept before" else other))
    lines: list[str] = []
    with prepared(request(folder), lines.append) as found:
        ready = all_of(found)
        assert ready.start is None
        assert ready.served is not None
    assert "what it has learnt is not known: this begins with the model alone" in lines[0]


def test_what_was_learnt_once_is_remembered_as_long_as_it_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch):
    with learnt(folder) as earlier:
        pass
    add_code(folder, earlier.repository.of("train")[0].path)
    # After it is better than before.
    better = iter((1.0, 0.0))
    monkeypatch.setattr(tuning, "quality", lambda found: next(better))
    monkeypatch.setattr(TuningState, "gained", True)
    with prepared(request(folder), lambda line: None) as found:
        result = tune(all_of(found), lambda line: None, Seen().count, lambda: False)
    assert result is not None
    assert result.gained
    kept = msgspec.json.decode((earlier.work / LEARNT).read_bytes(), type=Learnt)
    assert kept.adapter == read_adapter(earlier.directory).metadata.created
    assert earlier.repository.sides.items() < kept.sides.items()
    with prepared(request(folder), lambda line: None) as found:
        assert found is None


def test_what_begins_anew_is_compared_on_texts_that_the_other_has_not_learnt(folder: Path):
    with learnt(folder) as earlier:
        pass
    for path in folder.rglob("*.py"):
        path.rename(path.with_name(f"renamed_{path.name}"))
    with prepared(request(folder, anew=True), lambda line: None) as found:
        held_out = [each.text for each in all_of(found).repository.of("held-out")]
    assert held_out == [each.text for each in earlier.repository.of("held-out")]


def test_where_nothing_that_was_held_out_is_left_it_begins_anew(folder: Path):
    with learnt(folder) as earlier:
        pass
    for each in earlier.repository.of("held-out"):
        (folder / each.path).unlink()
    lines: list[str] = []
    with prepared(request(folder), lines.append) as found:
        ready = all_of(found)
        assert ready.start is None
        assert ready.repository.of("held-out")
        assert {each.weight for each in ready.repository.documents} == {1}
    assert "held out is left: this begins with the model alone" in lines[0]


def test_one_that_serves_stays_where_beginning_anew_gains_nothing(folder: Path, measured: Measured):
    with learnt(folder) as earlier:
        # As a cut leaves it while one gives way to another.
        earlier.directory.rename(earlier.directory.with_name(earlier.directory.name + OLD))
    with prepared(request(folder, anew=True), lambda line: None) as found:
        ready = all_of(found)
        assert ready.start is None
        result = tune(ready, lambda line: None, Seen().count, lambda: False)
    assert result is not None
    assert result.kept is None
    assert [schedule and schedule.max_steps for _, schedule in measured[:2]] == [8, 8]
    assert all(model is not ready.model for model, _ in measured[:2])
    kept = read_adapter(ready.directory).metadata
    assert kept.on
    assert kept.created == 1.0
    with prepared(request(folder), lambda line: None) as found:
        assert found is None


def test_beginning_anew_is_the_way_out_where_an_adapter_is_damaged(folder: Path, measured: Measured):
    with learnt(folder) as earlier:
        (earlier.directory / WEIGHTS_FILE).write_bytes(b"cut off")
    with prepared(request(folder, anew=True), lambda line: None) as found:
        assert tune(all_of(found), lambda line: None, Seen().count, lambda: False)
    assert not read_adapter(earlier.directory).metadata.on


def test_a_damaged_adapter_is_named_with_the_way_out(folder: Path):
    with learnt(folder) as earlier:
        (earlier.directory / WEIGHTS_FILE).write_bytes(b"cut off")
    with (
        pytest.raises(ModelError, match=r"is damaged .* train it again by `dg-lsp tune`"),
        prepared(request(folder), lambda line: None),
    ):
        pass


def test_an_adapter_of_other_weights_is_no_beginning(folder: Path):
    with learnt(folder) as earlier:
        held = read_adapter(earlier.directory)
    other = TuningRequest(
        folder=folder, model=str(TOY.with_name("toy-absorbing")), device="cpu", minutes=0.02, gaps=2, outside=3
    )
    with prepared(other, lambda line: None) as found:
        ready = all_of(found)
        assert ready.directory != earlier.directory
        assert ready.start is None
        assert ready.served is None
    metadata = msgspec.structs.replace(held.metadata, fingerprint="of others")
    write_adapter(ready.directory, replace(held, metadata=metadata))
    with pytest.raises(BadInput, match="belongs to other weights"), prepared(other, lambda line: None):
        pass


def changed_weights(path: Path) -> None:
    """Others in their place, as an update brings them."""
    weights = bytearray((path / SINGLE_FILE).read_bytes())
    weights[min(len(weights), 1 << 20) // 2] ^= 1
    (path / "others").write_bytes(weights)
    (path / "others").replace(path / SINGLE_FILE)


def test_an_adapter_belongs_to_the_weights_that_it_was_trained_on(folder: Path, tmp_path: Path):
    model = Path(shutil.copytree(TOY, tmp_path / "model"))
    with prepared(replace(request(folder), model=str(model)), lambda line: None) as found:
        ready = all_of(found)
        before = fingerprint_of(ready.checkpoint)
        changed_weights(model)
        assert fingerprint_of(ready.checkpoint) != before
        assert tune(ready, lambda line: None, Seen().count, lambda: False)
    assert read_adapter(ready.directory).metadata.fingerprint == before


def test_weights_that_change_while_they_are_read_are_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    model = Path(shutil.copytree(TOY, tmp_path / "model"))

    def load_later(name: str, device: Device) -> Infiller:
        changed_weights(model)
        return load(name, device)

    monkeypatch.setattr(tuning, "load", load_later)
    asked = replace(request(folder), model=str(model))
    with pytest.raises(EngineError, match="changed while"), prepared(asked, lambda line: None):
        pass


def test_what_does_not_fit_is_said_with_numbers(folder: Path):
    with prepared(request(folder), lambda line: None) as found:
        ready = all_of(found)
        small = replace(ready, plan=replace(ready.plan, available=1000))
        with pytest.raises(OutOfMemory, match=r"needs [0-9.]+ MiB beside what is in use, and 0.0 MiB are free"):
            tune(small, lambda line: None, Seen().count, lambda: False)


def test_too_little_code_is_said_with_what_is_needed(tmp_path: Path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "one.py").write_text("def one(value):\n    return value + 1\n" * 9)
    with (
        pytest.raises(BadInput, match=r"too little to learn from: [0-9]+ tokens in 1 file of code, and 5,000"),
        prepared(request(tmp_path / "code"), lambda line: None),
    ):
        pass


def test_two_at_once_do_not_meet(folder: Path):
    with (
        prepared(request(folder), lambda line: None),
        pytest.raises(BadInput, match="is being tuned already"),
        prepared(request(folder), lambda line: None),
    ):
        pass


def test_a_lock_that_is_no_file_is_a_sentence(folder: Path):
    with prepared(request(folder), lambda line: None) as ready:
        assert ready
    (ready.work / "lock").unlink(missing_ok=True)
    (ready.work / "lock").mkdir()
    with pytest.raises(EngineError, match="can't be written to"), prepared(request(folder), lambda line: None):
        pass


def test_a_disk_that_refuses_the_tokenizer_is_a_sentence(folder: Path):
    with prepared(request(folder), lambda line: None) as ready:
        assert ready
    (ready.work / CORPUS / "tokenizer" / "tokenizer.json").mkdir(parents=True)
    with (
        pytest.raises(EngineError, match=r"can't be written to .* make room on its disk"),
        prepared(request(folder), lambda line: None),
    ):
        pass


@pytest.mark.parametrize("name", ["masked", "chat"])
def test_every_family_and_layout_is_tuned_and_served_with_what_it_learnt(name: str, folder: Path, released: Path):
    path = released if name == "chat" else TOY.with_name("toy-masked")
    asked = replace(request(folder), model=str(path))
    with prepared(asked, lambda line: None) as found:
        ready = all_of(found)
        result = tune(ready, lambda line: None, Seen().count, lambda: False)
    assert result is not None
    assert {*result.before} == {*result.after} == {HELD_OUT, OUTSIDE}
    adapter = read_adapter(ready.directory)
    assert adapter.metadata.fingerprint == ready.model.info.fingerprint
    served = with_adapter(ready.model, adapter)
    assert served.info.adapter == str(folder.resolve())
    fill = FillRequest(prefix="def one(value):\n    return ", suffix="\n", language="python", max_tokens=4)
    assert drive(served, infill(served, fill)).model == served.info.name


def test_what_has_no_weights_here_is_not_tuned(folder: Path):
    asked = replace(request(folder), model="oracle:/none.json")
    with pytest.raises(BadInput, match="oracle"), prepared(asked, lambda line: None):
        pass
