"""Boards of four by four: the rules, puzzles with one solution, and the way from base to figures."""

import random
from pathlib import Path

import pytest

from engine.fill.loading import load
from engine.models.prompts.layout import PAD
from tests.engine.learn.sudoku import (
    CELLS,
    Boards,
    Played,
    boards,
    experiment,
    half_known,
    is_solved,
    make_base,
    picture,
    puzzle,
    puzzles,
    request_of,
    split_of,
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sudoku") / "base"
    make_base(out, 2, lambda line: None)
    return out


def test_there_are_as_many_boards_as_mathematics_says():
    assert len({*boards()}) == len(boards()) == 288
    assert all(is_solved(board) for board in boards())
    assert not is_solved((1, 2, 3, 4) * 4)


def test_a_puzzle_has_one_solution():
    rng = random.Random(0)
    for board in rng.sample(boards(), 20):
        asked = puzzle(board, rng, 12)
        fits = [b for b in boards() if all(c in (".", str(d)) for c, d in zip(asked, b, strict=True))]
        assert fits == [board]
        assert 6 <= asked.count(".") <= 12


def test_boards_that_are_played_are_never_learnt():
    assert all(split_of(board) == "held-out" for _, board in puzzles(50))
    assert 20 < sum(split_of(board) == "held-out" for board in boards()) < 60


def test_the_base_sees_boards_that_break_rules():
    rng = random.Random(0)
    drawn = [half_known(rng) for _ in range(300)]
    assert all(set(board) <= {1, 2, 3, 4} for board in drawn)
    assert sum(map(is_solved, drawn)) < 3


def test_lessons_are_laid_out_as_requests_are(base: Path):
    model = load(str(base), "cpu").model
    for kind in ("any", "solved"):
        batch = Boards(tokenizer=base, kind=kind).batch(0)
        context = [token for token in batch.contexts.ids[0].tolist() if token != PAD]
        asked = model.detokenize(context)
        assert len(asked) == CELLS + 1
        prompt = model.prompt(request_of(asked.rstrip("\n")))
        assert context == list(prompt.context)
        assert batch.truth[0, CELLS:].tolist() == list(prompt.suffix)
        solution = model.detokenize(batch.truth[0, :CELLS].tolist())
        assert all(given in (".", digit) for given, digit in zip(asked, solution, strict=False))
        assert is_solved(tuple(map(int, solution))) == (kind == "solved")


def test_the_experiment_goes_all_the_way_and_leaves_the_base_alone(base: Path, tmp_path: Path):
    weights = (base / "model.safetensors").read_bytes()
    (tmp_path / "base").symlink_to(base)
    lines: list[str] = []
    before, after = experiment(tmp_path, 2, 2, lines.append, tested=3)
    assert len(before.solved) == len(after.solved) == 3
    assert all(1 <= steps <= 48 for steps in (*before.steps, *after.steps))
    assert lines[0].startswith("before: ")
    assert lines[-1].startswith("after: ")
    assert (base / "model.safetensors").read_bytes() == weights


def test_the_picture_counts_puzzles_by_steps():
    before, after = Played(solved=(False, False), steps=(12, 12)), Played(solved=(True, False), steps=(2, 3))
    drawn = picture(before, after)
    assert drawn.startswith("<svg")
    assert "0.0% of 2 solved, 12.0 steps each" in drawn
    assert "50.0% of 2 solved, 2.5 steps each" in drawn
    assert drawn.count('fill="#2a9d4a"') == drawn.count('fill="#b9bec6"') == 24
