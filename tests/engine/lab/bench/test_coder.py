"""The part "coder": what is asked, in which turn, and what is made of the times."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from dg_lsp.cli import run as command
from engine.fill.loading import load
from engine.lab.bench.benchmark import CoderWork, Effort, run
from engine.lab.bench.coder import (
    CODER,
    MOMENTS,
    OURS,
    CoderFill,
    Moment,
    coder_figures,
    coder_fills,
    coder_tasks,
    near,
)
from engine.lab.bench.report import plain
from engine.lab.bench.timing import Ratio
from engine.lab.bench.workload import Forgetful
from engine.lab.eval.tasks import EvalTask
from engine.lab.peer.client import LlamaCpp, Order, PeerAnswer
from tests.engine.coder import open_model, write_coder


def task(truth: str, prefix: str = "def double(x):\n", suffix: str = "    return y\n") -> EvalTask:
    return EvalTask(name=truth, kind="line", language="python", prefix=prefix, suffix=suffix, truth=truth)


def test_the_cursor_stands_after_the_indentation_and_then_after_a_key():
    (made,) = coder_tasks([task("    y = 2 * x\n")], 5)
    assert (made.first.prefix, made.later.prefix) == ("def double(x):\n    ", "def double(x):\n    y")
    assert made.first.suffix == made.later.suffix == "\n    return y\n"
    assert (made.first.language, made.first.single_line) == ("python", True)


def test_only_gaps_of_one_line_with_something_left_after_the_key_are_taken():
    found = coder_tasks(
        [task("a = 1\nb = 2"), task("x"), task("    \n"), task("a = 1"), task("b = 2\n"), task("c()")], 2
    )
    assert [each.name for each in found] == ["a = 1", "b = 2\n"]


def test_of_a_long_file_whole_lines_around_the_gap_are_read():
    line = "x = 12345\n"
    before, after = near(1000 * line, 1000 * line)
    assert before == 200 * line
    assert after == 60 * line
    assert near("short", "file") == ("short", "file")


class Recorded:
    """In the place of llama.cpp: what it is asked, in turn with what else is done."""

    def __init__(self, done: list[tuple[Any, ...]]) -> None:
        self.done = done

    def fill(
        self, prefix: str, suffix: str, *, order: Order, max_tokens: int, first_line: bool, fresh: bool
    ) -> PeerAnswer:
        self.done.append((order, prefix, fresh))
        assert (suffix, first_line) == ("\n    return y\n", True)
        return PeerAnswer(text="y = 2 * x\n", tokens=6, prompt_tokens=20, ended=False, ms=12.5)


def test_the_ways_take_turns_at_each_moment_and_only_cold_ones_know_nothing(monkeypatch: pytest.MonkeyPatch):
    model = load("bundled", "cpu").model
    assert isinstance(model, Forgetful)
    done: list[tuple[Any, ...]] = []
    forget = model.forget
    monkeypatch.setattr(model, "forget", lambda: (forget(), done.append((OURS,))))
    tasks = coder_tasks([task("    y = 2 * x\n")], 1)
    fills = list(coder_fills(model, tasks, cast(LlamaCpp, Recorded(done))))
    first, later = "def double(x):\n    ", "def double(x):\n    y"
    once = [
        (OURS,),
        *(("suffix first", prefix, prefix == first) for prefix in (first, later, later)),
        *(("published", prefix, prefix == first) for prefix in (first, later, later)),
    ]
    assert done == 2 * once
    ways = list(dict.fromkeys(fill.way for fill in fills))
    assert ways == [OURS, "llama.cpp, prompt as ours", "llama.cpp, published prompt"]
    turns = [(fill.way, fill.moment) for fill in fills]
    assert turns == [(way, moment) for moment in MOMENTS for way in ways[:2]] + [(ways[2], each) for each in MOMENTS]
    ours = [fill for fill in fills if fill.way == OURS]
    assert all(fill.ms > 0 and fill.passes > 0 for fill in ours)
    assert {(fill.ms, fill.passes, fill.text) for fill in fills if fill.way != OURS} == {(12.5, 6, "y = 2 * x\n")}


def fills(way: str, moment: Moment, times: Sequence[float], **more: Any) -> list[CoderFill]:
    said: dict[str, Any] = {"text": "a\n", "tokens": 10, "passes": 5, **more}
    return [CoderFill(task=str(at), way=way, moment=moment, ms=ms, **said) for at, ms in enumerate(times)]


@pytest.mark.parametrize(("parameters", "met"), [(1_500_000_000, (True, True)), (500_000_000, (False, False))])
def test_our_time_is_held_against_llama_cpps_by_the_size_of_the_coder(parameters: int, met: tuple[bool, bool]):
    peer, laid_out = "llama.cpp, published prompt", "llama.cpp, prompt as ours"
    timed = [
        *(each for moment in MOMENTS for each in fills(OURS, moment, [100, 110, 900], text="a")),
        *fills(peer, "cold", [200, 210, 220], passes=11),
        *fills(peer, "one key later", [160, 165, 170]),
        *fills(peer, "nothing new", [100, 100, 100]),
        *(each for moment in MOMENTS for each in fills(laid_out, moment, [100, 110, 120])),
    ]
    figures, ratios = coder_figures(timed, parameters)
    assert {figure.name: figure.spread.median for figure in figures}[f"{peer}, cold"] == 210
    by = {ratio.name: ratio for ratio in ratios}
    cold, later = (by[f"{OURS} by {peer}, {moment}"] for moment in MOMENTS[:2])
    assert (cold.value, later.value) == (110 / 210, 110 / 165)
    assert (cold.met, later.met) == met
    assert not by[f"{OURS} by {laid_out}, cold"].aim
    assert by[f"{OURS} by {peer}, nothing new"] == Ratio(name=f"{OURS} by {peer}, nothing new", value=1.1)
    assert by["passes of a fill of nine to eleven tokens"].met
    assert by[f"passes of a fill, {peer}"].value == 11
    assert by[f"share of fills that say what {peer} says"].value == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--beside", "llama.cpp"], "--beside and --tasks need --part coder"),
        (["--tasks", "some.jsonl", "--part", "step"], "--beside and --tasks need --part coder"),
        (["--beside", "llama.cpp", "--part", "coder"], "bundled is no GGUF"),
        (["--shape", "small", "--part", "coder"], "can't read code"),
        (["--part", "coder", "--tasks", "missing.jsonl"], "missing.jsonl can't be read"),
    ],
)
def test_what_can_not_be_held_beside_llama_cpp_is_said(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
):
    assert command(["bench", "--device", "cpu", *arguments]) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_a_coder_is_measured_as_it_serves(tmp_path: Path):
    model = open_model(write_coder(tmp_path / "tiny.gguf"))
    work = CoderWork(tasks=coder_tasks([task("    y = 2 * x\n"), task("    z = x\n")], 2), source="two gaps")
    made = run(model, Effort(repetitions=1, limit_s=0.1), [CODER], coder=work)
    assert [(fill.way, fill.moment) for fill in made.fills] == 2 * [(OURS, moment) for moment in MOMENTS]
    assert [(figure.name, figure.at) for figure in made.figures] == [
        *((f"{OURS}, {moment}", 0) for moment in MOMENTS),
        *((f"context read, {OURS}", length) for length in (256, 1024)),
    ]
    assert made.about["gaps"] == "two gaps"
    assert plain(made)["fills"][0]["moment"] == "cold"
