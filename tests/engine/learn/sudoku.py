"""Sudoku of four by four, a proof that tuning works: a base model that knows what a board is and no more, an adapter
that learnt the game, and the share of boards solved and the steps taken before and after.

The base is trained on boards of which either rows, columns or boxes hold each digit once. Boards that the adapter is
measured on were never trained on; each puzzle has one solution.

Source of the experiment: fine-tuning DiffusionGemma on Sudoku raised what it solves and let it stop sooner.

python -m tests.engine.learn.sudoku --svg docs/images/sudoku.svg
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations, product
from pathlib import Path
from statistics import fmean
from typing import Literal

import click
import numpy as np
import torch
from numpy.typing import NDArray

from engine.common.exits import one_line_errors
from engine.common.options import A_PATH
from engine.common.request import FillRequest
from engine.common.runtime_paths import data_dir
from engine.fill.executor import drive
from engine.fill.loading import load
from engine.fill.pipeline import infill
from engine.learn.canvases import Canvases, noised, side_by_side
from engine.learn.contexts import ContextRow, contexts
from engine.learn.corpus import Split
from engine.learn.examples import Example
from engine.learn.export import export
from engine.learn.learn import learn
from engine.learn.lora import ALPHA, RANK, adapted, pairs_of
from engine.learn.optimise import Optimiser, Rates, schedule
from engine.learn.shapes import Shape, new_model, trained_parameters
from engine.learn.state import TrainingState
from engine.learn.tokenizer import encode, load_tokenizer, save_tokenizer, train_tokenizer
from engine.learn.training import Sitting, step_losses, total_loss
from engine.learn.training_recipe import Recipe
from engine.models.adapters.applied import with_pairs
from engine.models.base import Model
from engine.models.gemma.model import DiffusionGemma
from engine.models.gemma.network import GemmaNetwork
from engine.models.prompts.layout import EOS, context_ids

Board = tuple[int, ...]
"""Sixteen digits, row by row."""
SudokuKind = Literal["any", "solved"]
CELLS = 16
TESTED = 200
"""Puzzles."""
_UNITS = (
    tuple(tuple(4 * row + column for column in range(4)) for row in range(4)),
    tuple(tuple(4 * row + column for row in range(4)) for column in range(4)),
    tuple(tuple(4 * (top + y) + left + x for y in (0, 1) for x in (0, 1)) for top in (0, 2) for left in (0, 2)),
)
"""Cells that hold each digit once: rows, columns, boxes."""
_BLANKS = (8, 12)
"""Cells of a puzzle that are empty, at the least and at the most."""
_HELD_OUT = 9
"""One board in so many is never trained on."""
_CONTEXT = 24
"""Tokens of a puzzle with all around it, at the most."""

RECIPE = Recipe(
    shape=Shape(
        vocab=272,
        hidden=96,
        intermediate=192,
        layers=4,
        heads=4,
        kv_heads=2,
        head_size=24,
        window=64,
        full_every=2,
        canvas=CELLS + 1,
    ),
    noise="uniform",
    canvases_from=0,
    contexts=(_CONTEXT,),
    step_tokens=48 * _CONTEXT,
    next_token_weight=0.0,
    pinned=1,
    blank_share=0.5,
    steps=48,
    from_left=False,
    mend_from=0.0,
    widths=(CELLS,),
    rates=Rates(matrices=0.02, rest=0.004),
)


@cache
def boards() -> tuple[Board, ...]:
    """All 288 solved ones, in order."""
    rows = [*permutations((1, 2, 3, 4))]
    return tuple(
        board
        for four in product(rows, repeat=4)
        if all(
            a != b for at, upper in enumerate(four) for lower in four[:at] for a, b in zip(upper, lower, strict=True)
        )
        and is_solved(board := sum(four, ()))
    )


@cache
def _digits() -> NDArray[np.int64]:
    return np.array(boards())


def is_solved(board: Sequence[int]) -> bool:
    return all(len({board[cell] for cell in cells}) == 4 for unit in _UNITS for cells in unit)


def split_of(board: Board) -> Split:
    return "held-out" if boards().index(board) % _HELD_OUT == 0 else "train"


def puzzle(board: Board, rng: random.Random, blanks: int) -> str:
    """A solved board with so many cells emptied, fewer where the solution would not be the only one; 16 characters."""
    same = _digits() == board
    left = np.ones(CELLS, dtype=bool)
    for cell in rng.sample(range(CELLS), CELLS):
        if CELLS - left.sum() == blanks:
            break
        left[cell] = False
        left[cell] = same[:, left].all(axis=1).sum() > 1
    return "".join(str(digit) if given else "." for digit, given in zip(board, left, strict=True))


def half_known(rng: random.Random) -> Board:
    """A board that keeps one kind of rule and breaks others as it comes."""
    board = [0] * CELLS
    for cells in rng.choice(_UNITS):
        for cell, digit in zip(cells, rng.sample((1, 2, 3, 4), 4), strict=True):
            board[cell] = digit
    return tuple(board)


def request_of(puzzle: str) -> FillRequest:
    """To be filled with the solution's digits."""
    return FillRequest(prefix=f"{puzzle}\n", suffix="", width=CELLS, max_tokens=CELLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Boards:
    """Puzzles as batches: those of the base's boards, or of solved ones."""

    tokenizer: Path
    kind: SudokuKind
    seed: int = 0

    def batch(self, step: int, split: Split = "train") -> Canvases:
        rng = random.Random(f"{self.seed}/{self.kind}/{split}/{step}")
        return _batch([self._drawn(rng, split) for _ in range(RECIPE.rows(_CONTEXT))], self.tokenizer, rng)

    def _drawn(self, rng: random.Random, split: Split) -> tuple[str, Board]:
        blanks = rng.randint(*_BLANKS)
        if self.kind == "solved":
            board = rng.choice(_of(split))
            return puzzle(board, rng, blanks), board
        board = half_known(rng)
        empty = {*rng.sample(range(CELLS), blanks)}
        return "".join("." if at in empty else str(digit) for at, digit in enumerate(board)), board


@cache
def _of(split: Split) -> list[Board]:
    return [board for board in boards() if split_of(board) == split]


@cache
def _ids(tokenizer: Path) -> dict[str, int]:
    used = load_tokenizer(tokenizer)
    return {character: encode(used, character)[0] for character in "1234.\n"}


def _batch(drawn: Sequence[tuple[str, Board]], tokenizer: Path, rng: random.Random) -> Canvases:
    """One puzzle a row, laid out as `TokenPrompt` lays out its request."""
    ids = _ids(tokenizer)
    rows: list[ContextRow] = []
    beside: list[list[tuple[int, ...]]] = []
    for puzzle, board in drawn:
        context = context_ids("", [EOS], [ids[each] for each in f"{puzzle}\n"])
        rows.append(ContextRow())
        rows[-1].add(Example(context=context, gap=None, after=[], inner=[]))
        truth = [ids[str(digit)] for digit in board]
        canvas, open_ = noised(truth, RECIPE, rng)
        tokens = zip([*truth, EOS], [*canvas, EOS], [*canvas, EOS], [*open_, False], strict=True)
        cut = len(context)
        beside.append([(*token, False, False, 0, 0, cut, cut + at, cut) for at, token in enumerate(tokens)])
    return side_by_side(contexts(rows, _CONTEXT), beside, CELLS + 1)


def make_base(out: Path, steps: int, report: Callable[[str], None], seed: int = 0) -> None:
    """Train the base and write it as a model directory."""
    tokenizer = out / "tokenizer"
    save_tokenizer(train_tokenizer(["1234.\n"], RECIPE.shape.vocab), tokenizer)
    module = new_model(RECIPE.shape, seed).requires_grad_(False)
    parameters = trained_parameters(module)
    for each in parameters.values():
        each.requires_grad_(True)
    state = TrainingState(module=module, optimiser=Optimiser(parameters, RECIPE.rates))
    network, teacher, sitting = GemmaNetwork(module), Boards(tokenizer=tokenizer, kind="any", seed=seed), _SITTING
    for step in range(steps):
        losses = step_losses(network, teacher.batch(step), sitting)
        total_loss(losses, RECIPE).backward()
        state.optimiser.step(schedule(step, min(1.0, 4 * (1 - step / steps))))
        if (step + 1) % 100 == 0:
            report(f"base: step {step + 1} of {steps}, loss {losses['canvas'].item():.3f}")
    export(state, RECIPE, tokenizer, out, length="slack")


_SITTING = Sitting(device=torch.device("cpu"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """By puzzle."""

    solved: tuple[bool, ...]
    steps: tuple[int, ...]

    @property
    def share(self) -> float:
        return fmean(self.solved)

    @property
    def mean_steps(self) -> float:
        return fmean(self.steps)

    def line(self) -> str:
        return f"{self.share:.1%} of {len(self.solved)} solved, {self.mean_steps:.1f} steps each"


def play(model: Model, puzzles: Sequence[tuple[str, Board]]) -> Played:
    """Have the model fill each puzzle as it would fill any gap."""
    found = [drive(model, infill(model, request_of(puzzle))) for puzzle, _ in puzzles]
    texts = [each.candidates[0].text if each.candidates else "" for each in found]
    return Played(
        solved=tuple(text == "".join(map(str, board)) for text, (_, board) in zip(texts, puzzles, strict=True)),
        steps=tuple(each.steps for each in found),
    )


def puzzles(count: int, seed: int = 0) -> list[tuple[str, Board]]:
    """Of boards that were never trained on."""
    rng = random.Random(f"{seed}/puzzles")
    drawn = (rng.choice(_of("held-out")) for _ in range(count))
    return [(puzzle(board, rng, rng.randint(*_BLANKS)), board) for board in drawn]


def experiment(
    out: Path, base_steps: int, tune_steps: int, report: Callable[[str], None], seed: int = 0, tested: int = TESTED
) -> tuple[Played, Played]:
    """Base, before, adapter, after; all of it in the folder `out`, where the same call goes on if it was cut off."""
    base = out / "base"
    if not (base / "config.json").exists():
        make_base(base, base_steps, report, seed)
    model = load(str(base), "cpu").model
    assert isinstance(model, DiffusionGemma)
    module, puzzle = model.network.module, puzzles(tested, seed)
    before = play(model, puzzle)
    report(f"before: {before.line()}")
    with adapted(module, seed=seed) as pairs:
        recipe = replace(RECIPE, tokens=tune_steps * RECIPE.step_tokens)
        teacher = Boards(tokenizer=base, kind="solved", seed=seed)
        folder = out / f"tuned-{tune_steps}-{seed}"
        state = learn(GemmaNetwork(module), pairs, teacher, recipe, folder, _SITTING, report)
    assert state is not None
    after = play(with_pairs(model, pairs_of(state.best), ALPHA / RANK), puzzle)
    report(f"after: {after.line()}")
    return before, after


def picture(before: Played, after: Played) -> str:
    """How many puzzles were done after how many steps, solved or not, as SVG."""
    most = max(*before.steps, *after.steps)
    high = max(max(played.steps.count(steps) for steps in played.steps) for played in (before, after))
    parts: list[str] = []
    for row, (title, played) in enumerate((("Before tuning", before), ("After tuning", after))):
        top = 40 + row * 190
        parts.append(f'<text x="20" y="{top - 14}">{title}: {played.line()}</text>')
        for steps in range(1, most + 1):
            left, floor = 20 + (steps - 1) * 34, top + 130
            for solved, colour in ((True, "#2a9d4a"), (False, "#b9bec6")):
                count = sum(s == steps and ok == solved for s, ok in zip(played.steps, played.solved, strict=True))
                height = round(120 * count / high)
                floor -= height
                parts.append(f'<rect x="{left}" y="{floor}" width="26" height="{height}" fill="{colour}"/>')
            parts.append(f'<text x="{left + 13}" y="{top + 147}" text-anchor="middle">{steps}</text>')
    wide = max(560, 40 + most * 34)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="400" font-family="sans-serif" font-size="13">'
        f'<rect width="{wide}" height="400" fill="white"/>{"".join(parts)}'
        '<text x="20" y="392">Puzzles by the steps they took; green: solved, grey: not</text></svg>\n'
    )


@click.command(context_settings={"show_default": True})
@click.option("--out", type=A_PATH, help="Where base and adapter go; the user's data by default.")
@click.option("--base-steps", type=click.IntRange(1), default=300)
@click.option("--tune-steps", type=click.IntRange(1), default=2400)
@click.option("--puzzles", "count", type=click.IntRange(1), default=TESTED, help="That are played before and after.")
@click.option("--seed", type=click.IntRange(0), default=0)
@click.option("--svg", type=A_PATH, help="Draw how many steps the puzzles took.")
@one_line_errors()
def main(out: Path | None, base_steps: int, tune_steps: int, count: int, seed: int, svg: Path | None) -> None:
    """Play four by four before and after tuning a base that knows boards."""
    folder = out or data_dir() / "tune" / f"sudoku-{seed}"
    before, after = experiment(folder, base_steps, tune_steps, click.echo, seed, count)
    if svg:
        svg.write_text(picture(before, after), encoding="utf-8")


if __name__ == "__main__":
    main()
