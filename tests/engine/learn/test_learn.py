"""The loop: what it learns, when it stops, and that a cut costs nothing but time."""

import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from unittest.mock import patch

import pytest
import torch

from engine.common.errors import EngineError
from engine.fill.loading import load
from engine.learn import learn as learning
from engine.learn.corpus import Split
from engine.learn.learn import CHECKPOINT, PATIENCE, TuningState, learn, parameters_of
from engine.learn.lessons import Lessons
from engine.learn.lora import adapted
from engine.learn.training import Batch
from engine.learn.training_recipe import Recipe
from engine.models.gemma.model import DiffusionGemma
from engine.models.gemma.network import GemmaNetwork
from tests.engine.formats import choose
from tests.engine.learn.tiny import CPU, tiny, toy_corpus

TOY = Path(__file__).parents[2] / "models" / "toy-experts"
Weights = dict[str, torch.Tensor]


def recipe(steps: int) -> Recipe:
    tokens = steps * tiny().step_tokens
    return replace(tiny(), tokens=tokens, canvases_from=0, decay=0)


def run(
    folder: Path,
    steps: int = 6,
    pause_after: int | None = None,
    teacher: Lessons | None = None,
    says: Callable[[str], None] = lambda line: None,
) -> tuple[TuningState | None, Weights]:
    # In bfloat16 the least difference between two processes may round to another number, and a canvas that is learnt
    # from to another first answer.
    with pytest.MonkeyPatch.context() as patched:
        choose(patched)
        model = load(str(TOY), "cpu").model
    assert isinstance(model, DiffusionGemma)
    asked = count()
    plan = recipe(steps)
    with patch.object(learning, "LOOKS", 1), adapted(model.network.module, rank=4) as pairs:
        state = learn(
            GemmaNetwork(model.network.module),
            pairs,
            teacher or Lessons(corpus=toy_corpus(), recipe=plan, seed=0),
            plan,
            folder,
            CPU,
            says,
            lambda: pause_after is not None and next(asked) >= pause_after,
        )
        return state, {name: each.detach().clone() for name, each in parameters_of(pairs).items()}


def same(a: Weights, b: Weights) -> bool:
    return all(torch.equal(a[name], b[name]) for name in a)


def test_a_paused_run_goes_on_as_if_it_had_not_been(tmp_path: Path):
    whole, expected = run(tmp_path / "whole")
    paused, _ = run(tmp_path / "cut", pause_after=3)
    assert paused is None
    resumed, found = run(tmp_path / "cut")
    assert whole is not None
    assert resumed is not None
    assert (resumed.step, resumed.best_loss, resumed.first_loss) == (6, whole.best_loss, whole.first_loss)
    assert same(found, expected)
    # What is done is not done again.
    again, kept = run(tmp_path / "cut", pause_after=0)
    assert again is not None
    assert same(kept, expected)


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_a_killed_run_goes_on_from_what_was_saved(tmp_path: Path):
    _, expected = run(tmp_path / "whole")
    script = (
        "import os, signal, sys\n"
        "from dataclasses import replace\n"
        "from pathlib import Path\n"
        "from tests.engine.learn import test_learn as own\n"
        "own.CPU = replace(own.CPU, save_every_s=0.0)\n"
        "seen = []\n"
        "def says(line):\n"
        "    seen.append(line)\n"
        "    if len(seen) == 4:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "own.run(Path(sys.argv[1]), says=says)\n"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "cut")], cwd=root, timeout=300, check=False, capture_output=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    kept = torch.load(tmp_path / "cut" / CHECKPOINT, weights_only=True)
    assert kept["state"]["step"] == 3
    _, found = run(tmp_path / "cut")
    # What is not gone on from would differ by a step of the rate, hundredths.
    assert all(torch.allclose(found[name], expected[name], rtol=1e-3, atol=1e-5) for name in expected)


def test_what_is_learnt_lowers_the_loss(tmp_path: Path):
    state, _ = run(tmp_path, steps=24)
    assert state is not None
    assert state.gained
    assert state.best_loss < state.first_loss - 0.02


@dataclass(frozen=True, kw_only=True)
class Misleading:
    """Teaches one thing and asks for another: what is learnt of shuffled targets helps nowhere."""

    lessons: Lessons

    def batch(self, step: int, split: Split = "train") -> Batch:
        made = self.lessons.batch(0 if split == "train" else step, split)
        if split == "held-out":
            return made
        return replace(
            made, truth=made.truth.flip(1), contexts=replace(made.contexts, target=made.contexts.target.flip(1))
        )


def test_it_stops_when_held_out_loss_rises_and_keeps_what_was_best(tmp_path: Path):
    plan = recipe(48)
    teacher = Misleading(lessons=Lessons(corpus=toy_corpus(), recipe=plan, seed=0))
    state, found = run(tmp_path, steps=48, teacher=teacher)  # type: ignore[arg-type]
    assert state is not None
    assert state.worse == PATIENCE
    assert state.step < 48
    assert same(found, state.best)
    assert state.best_loss <= state.first_loss


def test_a_full_disk_is_a_sentence_and_what_was_saved_stays(tmp_path: Path):
    run(tmp_path, pause_after=2)
    before = (tmp_path / CHECKPOINT).read_bytes()
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(EngineError, match=r"can't be written to .* make room on its disk"):
            run(tmp_path, pause_after=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert (tmp_path / CHECKPOINT).read_bytes() == before


def test_a_damaged_checkpoint_is_a_sentence(tmp_path: Path):
    run(tmp_path, pause_after=1)
    other = torch.load(tmp_path / CHECKPOINT, weights_only=True)
    other["optimiser"]["param_groups"] = []
    torch.save(other, tmp_path / CHECKPOINT)
    with pytest.raises(EngineError, match=f"{CHECKPOINT} is damaged: remove it to begin anew"):
        run(tmp_path)
    (tmp_path / CHECKPOINT).write_bytes(b"cut off")
    with pytest.raises(EngineError, match=f"{CHECKPOINT} is damaged: remove it to begin anew"):
        run(tmp_path)
