import shutil
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from engine.common.errors import BadInput
from engine.learn.canvases import Canvases
from engine.learn.contexts import Contexts
from engine.learn.corpus import Document, Split
from engine.learn.packed import PackedCorpus, pack
from engine.learn.shapes import trained_parameters
from engine.learn.state import CHECKPOINT, CURVE, TrainingState, newest_state, open_state, read_curve
from engine.learn.training import BatchSource, Sitting, batches, train
from engine.learn.training_recipe import Recipe
from tests.engine.learn.tiny import CPU, tiny, toy_corpus

quiet = lambda line: None  # noqa: E731


def run(
    folder: Path, recipe: Recipe, sitting: Sitting = CPU, pause_after: int | None = None, seed: int = 0
) -> TrainingState:
    asked = iter(range(10**6))
    return train(
        recipe,
        toy_corpus(),
        folder,
        seed,
        sitting,
        quiet,
        lambda: pause_after is not None and next(asked) >= pause_after,
    )


def weights(state: TrainingState) -> dict[str, torch.Tensor]:
    return weights_of(state.module)


def weights_of(module: Any) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in trained_parameters(module).items()}


def same(a: TrainingState, b: TrainingState) -> bool:
    return all(torch.equal(x, y) for x, y in zip(weights(a).values(), weights(b).values(), strict=True))


@pytest.mark.parametrize("pause_after", [2, 5])
def test_a_paused_run_goes_on_as_if_it_had_not_been(tmp_path: Path, pause_after: int):
    whole = run(tmp_path / "whole", tiny())
    paused = run(tmp_path / "cut", tiny(), pause_after=pause_after)
    assert paused.step == pause_after
    resumed = run(tmp_path / "cut", tiny())
    assert (resumed.step, resumed.tokens) == (whole.step, whole.tokens) == (8, tiny().tokens)
    assert same(whole, resumed)
    assert resumed.seconds > paused.seconds > 0


def test_another_seed_gives_other_weights(tmp_path: Path):
    assert not same(run(tmp_path / "a", tiny(steps=2)), run(tmp_path / "b", tiny(steps=2), seed=1))


def test_it_learns(tmp_path: Path):
    state = run(tmp_path, replace(tiny(steps=100), canvases_from=30 * tiny().step_tokens))
    trained = [point.losses for point in read_curve(tmp_path) if point.split == "train"]
    assert trained[0]["next_token"] - trained[-1]["next_token"] > 1.0
    assert trained[3]["canvas"] > trained[-1]["canvas"]
    assert [point.split for point in read_curve(tmp_path)].count("held-out") == 1
    assert state.step == 100


def test_workers_make_the_same_batches():
    source = BatchSource(corpus=toy_corpus(), recipe=tiny(), seed=3)
    places = list(zip(range(4), range(0, 8 * 192, 2 * 192), strict=True))
    here, there = (list(batches(source, places, torch.device("cpu"), workers)) for workers in (0, 2))
    assert [type(batch) for batch in here] == [Contexts, Contexts, Canvases, Canvases]
    for a, b in zip(here, there, strict=True):
        assert type(a) is type(b)
        assert all(torch.equal(x, y) for x, y in zip(tensors(a), tensors(b), strict=True))


def test_a_corpus_that_is_packed_anew_is_read_anew(tmp_path: Path):
    corpus = Path(shutil.copytree(toy_corpus(), tmp_path / "corpus"))
    source = BatchSource(corpus=corpus, recipe=tiny(), seed=0)
    source.batch(0, 0)
    texts = [PackedCorpus(corpus, "train").text(index) for index in range(3)]
    pack(
        [Document(split="train", language="python", package="", path=text[:9], text=text) for text in texts],
        corpus / "packed" / "train",
    )
    copied = replace(source, corpus=Path(shutil.copytree(corpus, tmp_path / "copy")))
    for a, b in zip(tensors(source.batch(0, 0)), tensors(copied.batch(0, 0)), strict=True):
        assert torch.equal(a, b)


def test_what_is_held_out_stays_the_same_texts_while_the_rate_falls(tmp_path: Path):
    corpus = Path(shutil.copytree(toy_corpus(), tmp_path / "corpus"))
    for split in get_args(Split):
        texts = [PackedCorpus(corpus, split).text(index) for index in range(2)]
        documents = [
            Document(split=split, language="python", package="", path=f"{weight}.py", text=text, weight=weight)
            for weight, text in enumerate(texts, start=1)
        ]
        pack(documents, corpus / "packed" / split)
    recipe = replace(tiny(), canvases_from=0, best_share=0.5)
    assert recipe.best_from > recipe.plateau_tokens
    source = BatchSource(corpus=corpus, recipe=recipe, seed=0)

    def changes(split: Split) -> bool:
        before, then = (
            [each for step in range(4) for each in tensors(source.batch(step, tokens, split))]
            for tokens in (recipe.best_from - 1, recipe.best_from)
        )
        return not all(map(torch.equal, before, then))

    assert changes("train")
    assert not changes("held-out")


def tensors(batch: Any) -> list[torch.Tensor]:
    parts = [getattr(batch, each.name) for each in fields(batch)]
    return [t for part in parts for t in ([part] if isinstance(part, torch.Tensor) else tensors(part))]


def test_bfloat16_and_compiled_sittings_learn_the_same_but_for_rounding(tmp_path: Path):
    exact = run(tmp_path / "exact", tiny(steps=4))
    rounded = run(tmp_path / "rounded", tiny(steps=4), replace(CPU, bfloat16=True))
    far = [(a - b).abs().mean() for a, b in zip(weights(exact).values(), weights(rounded).values(), strict=True)]
    assert 0 < max(far) < 0.02
    assert all(p.dtype == torch.float32 for p in weights(rounded).values())


def test_a_longer_run_goes_on_from_before_the_decay(tmp_path: Path):
    first = run(tmp_path, tiny(steps=8))
    longer = open_state(tiny(steps=16), tmp_path, 0, torch.device("cpu"))
    assert longer.step == 6
    assert not same(first, longer)
    assert open_state(tiny(steps=8), tmp_path, 0, torch.device("cpu")).step == 8
    assert run(tmp_path, tiny(steps=16)).step == 16


def test_a_run_that_is_planned_longer_twice_loses_nothing(tmp_path: Path):
    run(tmp_path, tiny(steps=8))
    paused = run(tmp_path, tiny(steps=16), pause_after=2)
    assert paused.step == 8
    assert open_state(tiny(steps=20), tmp_path, 0, torch.device("cpu")).step == 8


def test_what_is_looked_at_is_the_mean_of_the_last_weights(tmp_path: Path):
    step = tiny().step_tokens
    recipe = replace(tiny(steps=8), averaged=0.6, average_every=2 * step)
    each = [weights(run(tmp_path, recipe, pause_after=1)) for _ in range(8)]
    # Behind the 4th, 6th and 8th step, whatever the run was cut into.
    mean = {name: (each[3][name] + each[5][name] + each[7][name]) / 3 for name in each[0]}
    looked_at = weights(newest_state(recipe, tmp_path))
    assert all(torch.allclose(looked_at[name], mean[name], atol=1e-6) for name in mean)
    assert not any(torch.equal(looked_at[name], each[7][name]) for name in mean)
    # The run itself goes on from its last weights, and a longer one averages its own last ones.
    assert open_state(recipe, tmp_path, 0, torch.device("cpu")).averaged == 3
    assert open_state(replace(recipe, tokens=24 * step), tmp_path, 0, torch.device("cpu")).averaged == 0


def test_a_cut_while_saving_leaves_the_older_checkpoint(tmp_path: Path):
    run(tmp_path, tiny(), pause_after=3)
    (tmp_path / CHECKPOINT).with_suffix(".partial").write_bytes(b"cut off")
    assert open_state(tiny(), tmp_path, 0, torch.device("cpu")).step == 3


def test_another_shape_is_refused(tmp_path: Path):
    run(tmp_path, tiny(steps=1))
    wider = replace(tiny(), shape=replace(tiny().shape, hidden=64))
    with pytest.raises(BadInput, match="another shape"):
        open_state(wider, tmp_path, 0, torch.device("cpu"))


def test_the_curve_forgets_what_a_cut_undid(tmp_path: Path):
    run(tmp_path, tiny(steps=20))
    assert [point.step for point in read_curve(tmp_path)] == [10, 20]
    longer = run(tmp_path, tiny(steps=40))
    assert [point.step for point in read_curve(tmp_path)] == [10, 20, 30, 40]
    assert longer.step == 40


def test_a_run_goes_on_though_its_curve_was_cut_within_a_line(tmp_path: Path):
    run(tmp_path, tiny(steps=20), pause_after=15)
    with (tmp_path / CURVE).open("a") as curve:
        curve.write('{"step": 3')
    assert [point.step for point in read_curve(tmp_path)] == [10]
    assert run(tmp_path, tiny(steps=20)).step == 20
    assert [point.step for point in read_curve(tmp_path)] == [10, 20]


def test_the_curve_of_a_run_that_was_cut_before_its_first_save_begins_anew(tmp_path: Path):
    run(tmp_path, tiny(steps=10))
    (tmp_path / CHECKPOINT).unlink()
    with (tmp_path / CURVE).open("a") as curve:
        curve.write('{"step": 3')
    run(tmp_path, tiny(steps=10))
    assert [point.step for point in read_curve(tmp_path)] == [10]


def test_a_branch_that_was_cut_while_it_was_copied_is_branched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run(tmp_path / "origin", tiny(), pause_after=3)
    whole = shutil.copyfile

    def cut(source: Path, target: Path) -> Path:
        if Path(source).name != CHECKPOINT:
            return whole(source, target)
        Path(target).write_bytes(Path(source).read_bytes()[:1000])
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "copyfile", cut)
    branch = tmp_path / "branch"
    with pytest.raises(KeyboardInterrupt):
        open_state(tiny(), branch, 0, torch.device("cpu"), tmp_path / "origin")
    monkeypatch.undo()
    assert open_state(tiny(), branch, 0, torch.device("cpu"), tmp_path / "origin").step == 3


def test_looking_at_a_run_leaves_its_end_alone(tmp_path: Path):
    with pytest.raises(BadInput, match="holds no run"):
        newest_state(tiny(), tmp_path)
    run(tmp_path, tiny(steps=8))
    curve = read_curve(tmp_path)
    looked_at = newest_state(tiny(steps=16), tmp_path)
    assert looked_at.step == 8
    assert read_curve(tmp_path) == curve


def test_rates_fall_by_the_tokens_that_were_read():
    recipe = replace(tiny(), steady=1000)
    assert [recipe.scale_after(tokens) for tokens in (0, 1000, 4000, 16000)] == [1.0, 1.0, 0.5, 0.25]
