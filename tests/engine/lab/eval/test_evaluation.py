"""A run fills every task in every way, is kept line by line, and goes on where it was cut off."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from dg_lsp.cli import run
from engine.common.errors import BadInput, EngineError, ModelError
from engine.common.request import Filled, FillRequest
from engine.fill.loading import load
from engine.lab.eval.evaluation import evaluate
from engine.lab.eval.figures import figures, paired, report, tables
from engine.lab.eval.results import Result, Results
from engine.lab.eval.rows import ROWS, EvalRow, chosen_rows, true_width
from engine.lab.eval.tasks import EvalTask, UnitTest
from engine.lab.peer.client import Beside, PeerAnswer
from engine.models.base import Model
from engine.models.oracle.model import Case, Oracle, Slip
from tests.engine.lab.eval.test_tasks import HUMAN_EVAL, written

CHECK = UnitTest(test="def check(candidate):\n    assert candidate(3) == 6\n", entry_point="f")


def task(number: int, truth: str = "2 * x") -> EvalTask:
    prefix = f"def f(x):\n    y{number} = "
    return EvalTask(
        name=f"task {number}",
        kind="line" if number % 2 else "block",
        language="python",
        prefix=prefix,
        suffix=f"\n    return y{number}\n",
        truth=truth,
        check=CHECK,
    )


def oracle_of(tasks: list[EvalTask], answer: str = "", **case: Any) -> Oracle:
    return Oracle("oracle", [Case(text=f"{t.prefix}▮{answer or t.truth}▮{t.suffix}", **case) for t in tasks])


def run_rows(
    model: Oracle, tasks: list[EvalTask], rows: list[EvalRow], folder: Path | None = None, **about: Any
) -> Results:
    with Results(folder, about) as results:
        evaluate(model, tasks, rows, results, workers=1)
    return results


def of(results: Results, row: str, tasks: list[EvalTask]) -> list[Result]:
    return results.of(row, {task.name for task in tasks})


def test_the_truth_scores_all_there_is():
    tasks = [task(number) for number in range(3)]
    results = run_rows(oracle_of(tasks), tasks, chosen_rows(["adaptive", "oracle width"]))
    for row in ("adaptive", "oracle width"):
        own = figures(row, of(results, row, tasks))
        assert (own.gaps, own.passed, own.exact, own.similarity, own.clean, own.silent) == (3, 1, 1, 1, 1, 0)
        assert own.width_error == 0
        assert own.forwards
        assert own.forwards >= 1
        assert own.p50_ms
        assert own.p95_ms
        assert 0 < own.p50_ms <= own.p95_ms


def test_another_answer_that_passes_is_not_exact():
    tasks = [task(0)]
    (result,) = of(run_rows(oracle_of(tasks, "x + x"), tasks, chosen_rows(["adaptive"])), "adaptive", tasks)
    assert (result.passed, result.exact, result.text) == (True, False, "x + x")
    assert 0 < result.similarity < 1


def test_a_wrong_answer_fails_with_its_reason():
    tasks = [task(0)]
    (result,) = of(run_rows(oracle_of(tasks, "x"), tasks, chosen_rows(["adaptive"])), "adaptive", tasks)
    assert (result.passed, result.clean) == (False, True)
    assert "AssertionError" in result.reason


def test_without_repair_a_slip_shows():
    tasks = [task(0, "max(x, 2 * x)")]
    slipped = oracle_of(tasks, slip=Slip(at=1, text=")"))
    results = run_rows(slipped, tasks, chosen_rows(["adaptive", "without repair"]))
    (mended,), (broken,) = of(results, "adaptive", tasks), of(results, "without repair", tasks)
    assert (mended.passed, mended.syntax, mended.clean) == (True, "repaired", True)
    assert (broken.passed, broken.syntax, broken.clean) == (False, "unchecked", False)
    assert "SyntaxError" in broken.reason


def test_a_fixed_width_is_kept():
    tasks = [task(0)]
    results = run_rows(oracle_of(tasks), tasks, chosen_rows(["width 2"]))
    (result,) = of(results, "width 2", tasks)
    assert (result.passed, result.tokens <= 2) == (False, True)


def test_the_true_width_counts_what_was_taken_back_before_the_cursor(released: Path):
    from tests.engine.tiny import tiny_model

    model = tiny_model(released)
    request = FillRequest(prefix="def area(width):\n    return wid", suffix="\n", language="python")
    head = model.prompt(request).head
    assert head
    assert true_width(model, request, "th") == len(model.tokenize(head + "th"))


class Cut(Exception):
    pass


def test_a_run_that_was_cut_off_goes_on(tmp_path: Path):
    tasks = [task(number) for number in range(4)]
    rows, model = chosen_rows(["adaptive", "oracle width"]), oracle_of(tasks)

    def cut_off() -> None:
        if len(lines(tmp_path)) == 3:
            raise Cut

    with pytest.raises(Cut), Results(tmp_path, {"seed": 0}) as results:
        evaluate(model, tasks, rows, results, workers=1, on_done=cut_off)
    before = lines(tmp_path)
    assert len(before) == 3
    # The process died while it wrote.
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"row": "adap')
    results = run_rows(model, tasks, rows, tmp_path, seed=0)
    assert lines(tmp_path)[:3] == before
    assert len({(line["row"], line["task"]) for line in lines(tmp_path)}) == len(lines(tmp_path)) == 8
    assert figures("adaptive", of(results, "adaptive", tasks)).passed == 1


@pytest.mark.timeout(60)
def test_an_interrupt_ends_it_at_once_and_what_is_tested_is_kept(tmp_path: Path):
    """Beside a test that would take a minute, one that is over, and more that wait."""
    sleeps = "[__import__('time').sleep(600), 2 * x][1]"
    tasks = [task(0, sleeps), *(task(number) for number in range(1, 4))]
    model = oracle_of(tasks)

    def fill(model: Model, request: FillRequest) -> Filled:
        if "y3" in request.prefix:
            time.sleep(5)
            raise KeyboardInterrupt
        return rows[0].fill(model, request)

    rows = chosen_rows(["adaptive"])
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), Results(tmp_path, {}) as results:
        evaluate(model, tasks, [replace(rows[0], fill=fill)], results, workers=2)
    assert time.monotonic() - began < 30
    assert [(line["task"], line["passed"]) for line in lines(tmp_path)] == [("task 1", True), ("task 2", True)]


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def test_a_folder_belongs_to_one_kind_of_run(tmp_path: Path):
    tasks = [task(0)]
    run_rows(oracle_of(tasks), tasks, chosen_rows(["adaptive"]), tmp_path, seed=0)
    with pytest.raises(BadInput, match="other settings"):
        run_rows(oracle_of(tasks), tasks, chosen_rows(["adaptive"]), tmp_path, seed=1)
    (tmp_path / "results.jsonl").write_text("nonsense\n")
    with pytest.raises(BadInput, match="damaged"):
        run_rows(oracle_of(tasks), tasks, [], tmp_path, seed=0)


def test_a_run_that_was_killed_at_its_beginning_leaves_a_folder_that_can_be_used(tmp_path: Path):
    (tmp_path / "run.new").write_text('{"se')
    with Results(tmp_path, {"seed": 0}):
        pass
    assert json.loads((tmp_path / "run.json").read_text()) == {"seed": 0}


def test_two_runs_can_not_write_to_one_folder(tmp_path: Path):
    with Results(tmp_path, {}), pytest.raises(BadInput, match="Another run is at work"):
        Results(tmp_path, {})
    with pytest.raises(BadInput, match="other settings"):
        Results(tmp_path, {"seed": 1})
    with Results(tmp_path, {}):
        pass


def test_another_folder_is_named_only_where_one_can_be_chosen(tmp_path: Path):
    (tmp_path / "results.jsonl").write_text("nonsense\n")
    with pytest.raises(BadInput, match=r"is damaged: remove it, or choose another --out\.$"):
        Results(tmp_path, {}, ", or choose another --out")
    with pytest.raises(BadInput, match=r"is damaged: remove it\.$"):
        Results(tmp_path, {})
    with pytest.raises(BadInput, match=r"other settings or weights: remove it\.$"):
        Results(tmp_path, {"seed": 1})
    (tmp_path / "file").touch()
    with pytest.raises(EngineError, match=r"can't be written to .*: make room on its disk\.$"):
        Results(tmp_path / "file" / "below", {})


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_a_full_disk_is_said_in_a_sentence_and_the_rest_is_kept(tmp_path: Path):
    import resource

    tasks, rows = [task(0), task(1)], chosen_rows(["adaptive"])
    run_rows(oracle_of(tasks), tasks[:1], rows, tmp_path)
    size = (tmp_path / "results.jsonl").stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, before[1]))
    try:
        with pytest.raises(EngineError, match=r"can't be written to \(File too large\)"):
            run_rows(oracle_of(tasks), tasks, rows, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    results = run_rows(oracle_of(tasks), tasks, rows, tmp_path)
    assert [line["task"] for line in lines(tmp_path)] == ["task 0", "task 1"]
    assert len(of(results, "adaptive", tasks)) == 2


def test_figures_are_split_by_length_and_kind():
    tasks = [task(0), task(1, "2 * x * 1 * 1 * 1 * 1 * 1")]
    results = run_rows(oracle_of(tasks), tasks, chosen_rows(["adaptive"]))
    made = report({}, {"adaptive": of(results, "adaptive", tasks)})
    assert sum(made["lengths"][span][0]["gaps"] for span in made["lengths"]) == 2
    assert {kind: made["kinds"][kind][0]["gaps"] for kind in made["kinds"]} == {"block": 1, "line": 1}
    assert made["lengths"]["33+"][0]["passed"] is None


def test_figures_are_what_they_say():
    """Two gaps with tests, one without; times of 1 to 3 ms."""
    base = run_rows(oracle_of([task(0)]), [task(0)], chosen_rows(["adaptive"])).of("adaptive", {"task 0"})[0]
    results = [
        replace(base, passed=True, exact=True, similarity=1.0, tokens=5, truth_tokens=5, forwards=2, ms=1.0),
        replace(
            base, passed=False, exact=False, similarity=0.5, tokens=2, truth_tokens=5, clean=False, forwards=3, ms=2.0
        ),
        replace(base, passed=None, exact=False, similarity=0.0, text="", tokens=0, clean=None, forwards=4, ms=3.0),
    ]
    own = figures("adaptive", results)
    assert (own.gaps, own.tested, own.passed, own.clean) == (3, 2, 0.5, 0.5)
    assert (own.exact, own.silent, own.similarity, own.forwards) == (0.3333, 0.3333, 0.5, 3)
    assert own.width_error == round((0 + 3 + base.truth_tokens) / 3, 4)
    assert (own.p50_ms, own.p95_ms) == (2.0, 3.0)
    table = Console(width=200, file=StringIO())
    table.print(tables("title", {"adaptive": results})[0])
    # Half a 95% interval of a half of two, not of three.
    assert "50.0 ±69.3" in table.file.getvalue()


def test_a_row_may_have_other_settings_than_the_model():
    gap = task(1, truth="a + b + c + d")
    results = run_rows(oracle_of([gap], confidence=0.3), [gap], chosen_rows(["max_steps 1", "t_max 0.9, max_steps 6"]))
    one, six = (of(results, row, [gap])[0] for row in ("max_steps 1", "t_max 0.9, max_steps 6"))
    assert one.steps == 1 < six.steps <= 6
    with pytest.raises(ModelError, match="its max_steps is 0"):
        run_rows(oracle_of([gap]), [gap], chosen_rows(["max_steps 0"]))


@pytest.mark.parametrize("asked", ["width wide", "width 0", "without hope", "8", "max_steps 1.5", "max_steps"])
def test_an_unknown_row_is_named(asked: str):
    with pytest.raises(BadInput, match=f"no row '{asked}': name one of 'adaptive', 'oracle width'"):
        chosen_rows([asked])


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two tasks and a model that knows one of them."""
    monkeypatch.chdir(tmp_path)
    second = {**HUMAN_EVAL, "task_id": "SingleLineInfilling/1", "prompt": "def add(a, b):\n    pass\n"}
    written(tmp_path / "tasks.jsonl", HUMAN_EVAL, second)
    text = f"{HUMAN_EVAL['prompt']}▮{HUMAN_EVAL['canonical_solution']}▮{HUMAN_EVAL['suffix']}"
    Path("oracle.json").write_text(json.dumps({"cases": [{"text": text}]}))
    return tmp_path


def test_the_command_prints_a_summary_and_keeps_results(work: Path, capsys: pytest.CaptureFixture[str]):
    arguments = ["eval", "tasks.jsonl", "--model", "oracle:oracle.json", "--out", "out", "--row", "oracle width"]
    assert run(arguments) == 0
    out = capsys.readouterr().out
    assert "oracle width" in out
    assert "50.0" in out
    assert run([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (row,) = told["rows"]
    assert (row["gaps"], row["passed"]) == (2, 0.5)
    assert len(lines(work / "out")) == 2


def test_rows_can_be_added_to_all_of_them(work: Path, capsys: pytest.CaptureFixture[str]):
    arguments = ["eval", "tasks.jsonl", "--model", "oracle:oracle.json", "--limit", "1"]
    assert run([*arguments, "--all", "--row", "width 5", "--row", "adaptive", "--json"]) == 0
    rows = [row["row"] for row in json.loads(capsys.readouterr().out)["rows"]]
    assert len(set(rows)) == len(rows)
    assert {"width 5", "width 8", "adaptive", "without repair"} <= set(rows)


def test_a_seed_and_a_limit_repeat_the_figures_but_for_the_times(work: Path, capsys: pytest.CaptureFixture[str]):
    lines = [{**HUMAN_EVAL, "task_id": f"Kind/{number}"} for number in range(20)]
    written(work / "tasks.jsonl", *lines)
    arguments = ["eval", "tasks.jsonl", "--row", "width 4", "--max-tokens", "4", "--limit", "2", "--seed", "3"]
    for folder in ("first", "second"):
        assert run([*arguments, "--out", folder]) == 0
    first, second = (
        [json.loads(line) | {"ms": 0} for line in (work / folder / "results.jsonl").read_text().splitlines()]
        for folder in ("first", "second")
    )
    assert first == second


def test_what_decides_answers_decides_whether_a_run_goes_on(work: Path, capsys: pytest.CaptureFixture[str]):
    toy, model = Path(__file__).parents[3] / "models" / "toy-uniform", Path("model")
    shutil.copytree(toy, model)
    arguments = ["eval", "tasks.jsonl", "--model", "model", "--row", "width 4", "--max-tokens", "4", "--out", "out"]
    assert run(arguments) == 0
    (model / "MODEL_CARD.md").write_text("Another card.")
    for file in model.iterdir():
        os.utime(file, (0, 0))
    assert run(arguments) == 0
    assert len(lines(work / "out")) == 2
    capsys.readouterr()
    for name in ("config.json", "tokenizer.json", "generation_config.json", "dg_lsp.json", "model.safetensors"):
        before = (model / name).read_bytes()
        other = before[:-1] + bytes([before[-1] ^ 1]) if name == "model.safetensors" else before + b" "
        (model / name).write_bytes(other)
        assert run(arguments) == 2
        assert "other settings or weights" in capsys.readouterr().err
        (model / name).write_bytes(before)
    written(work / "tasks.jsonl", HUMAN_EVAL)
    assert run(arguments) == 2
    assert "other settings or weights" in capsys.readouterr().err


def test_gaps_of_code_that_changed_are_filled_again(work: Path, capsys: pytest.CaptureFixture[str]):
    Path("code").mkdir()
    arguments = ["eval", "--holes", "code", "--limit", "2", "--model", "oracle:oracle.json", "--out", "out", "--json"]
    for source in ("def add(a, b):\n    return a + b\n" * 20, "def sub(a, b):\n    return a - b\n" * 20):
        Path("code/a.py").write_text(source)
        assert run(arguments) == 0
        (row,) = json.loads(capsys.readouterr().out)["rows"]
        assert row["gaps"] == 2
    assert len(lines(work / "out")) == 4


@pytest.mark.skipif(sys.platform == "win32", reason="signals as POSIX has them")
@pytest.mark.parametrize(
    ("number", "ignored"),
    [(signal.SIGINT, False), (signal.SIGINT, True), (signal.SIGTERM, True)],
    ids=["Ctrl-C", "SIGINT, in a script's background", "SIGTERM"],
)
def test_a_signal_ends_the_command_and_it_says_how_to_go_on(work: Path, number: int, ignored: bool):
    """One task is quickly tested, the test of the other would take a minute."""
    slow = {**HUMAN_EVAL, "task_id": "slow", "prompt": "def add(a, b):\n    __import__('time').sleep(600)\n"}
    written(work / "tasks.jsonl", HUMAN_EVAL, slow)
    truth = HUMAN_EVAL["canonical_solution"]
    cases = [{"text": f"{told['prompt']}▮{truth}▮{told['suffix']}"} for told in (HUMAN_EVAL, slow)]
    Path("oracle.json").write_text(json.dumps({"cases": cases}))
    command = [sys.executable, "-m", "dg_lsp", "eval", "tasks.jsonl", "--model", "oracle:oracle.json", "--out", "out"]

    def begin() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)

    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=begin
    ) as process:
        try:
            ends = time.monotonic() + 60
            while not (Path("out/results.jsonl").is_file() and Path("out/results.jsonl").read_text()):
                assert time.monotonic() < ends
                time.sleep(0.1)
            process.send_signal(number)
            out, said = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, out) == (130, b"")
    assert "are in out; run the same command again to continue." in said.decode().splitlines()[-1]
    assert b"Traceback" not in said
    assert [line["passed"] for line in lines(work / "out")] == [True]


def test_the_command_cuts_gaps_into_a_folder(work: Path, capsys: pytest.CaptureFixture[str]):
    Path("code").mkdir()
    source = "def add(a, b):\n    return a + b\n" * 20
    Path("code/a.py").write_text(source)
    Path("oracle.json").write_text(json.dumps({"cases": [{"text": f"▮{source}▮"}]}))
    arguments = ["eval", "--holes", "code", "--lang", "python", "--limit", "3", "--model", "oracle:oracle.json"]
    assert run([*arguments, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["gaps"], row["passed"]) == (3, None)


def test_the_command_fills_reserved_gaps(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    splits: list[str] = []

    def reserved_tasks(split: str) -> list[EvalTask]:
        splits.append(split)
        return [task(number) for number in range(5)]

    monkeypatch.setattr("engine.lab.eval.reserved.packages.reserved_tasks", reserved_tasks)
    arguments = ["eval", "--holes", "development", "--limit", "2", "--model", "oracle:oracle.json", "--json"]
    assert run([*arguments, "--row", "max_steps 2"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["tasks"], splits) == ("development gaps in reserved packages", ["development"])
    assert [(row["row"], row["gaps"]) for row in told["rows"]] == [("max_steps 2", 2)]
    Path("development").mkdir()
    assert run([*arguments]) == 2
    assert "has no code" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Give a file of tasks"),
        (["--holes", "reported", "--lang", "python"], "belongs to a folder"),
        (["tasks.jsonl", "--holes", "."], "Give a file of tasks"),
        (["tasks.jsonl", "--lang", "python"], "--lang belongs to --holes"),
        (["missing.jsonl"], "missing.jsonl"),
        (["tasks.jsonl", "--row", "wide"], "wide"),
        (["tasks.jsonl", "--row", "left to right", "--model", "oracle:oracle.json"], "no causal encoder"),
    ],
)
def test_what_can_not_be_done_is_said_in_a_line(
    work: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
):
    assert run(["eval", *arguments]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("dg-lsp: ")
    assert said in error


def test_the_bundled_model_runs_through_every_row():
    model = load("bundled", "cpu").model
    tasks, rows = [replace(task(0), check=None)], [row for row in ROWS if not row.lacking(model)]
    assert {row.name for row in ROWS} - {row.name for row in rows} == {"canvas", "with canvases"}
    with Results(None, {}) as results:
        evaluate(model, tasks, rows, results, max_tokens=12)
    for row in rows:
        (result,) = results.of(row.name, {"task 0"})
        assert (result.steps > 0, result.ms > 0, result.passed) == (True, True, None)
        assert 0 <= result.similarity <= 1


def test_rows_are_held_beside_the_first_one_task_by_task():
    base = run_rows(oracle_of([task(0)]), [task(0)], chosen_rows(["adaptive"])).of("adaptive", {"task 0"})[0]

    def of_row(row: str, right: str) -> list[Result]:
        return [replace(base, row=row, task=str(at), passed=each == "+") for at, each in enumerate(right)]

    by_row = {"a": of_row("a", "++++----"), "b": of_row("b", "+++-++++"), "c": of_row("c", "++++")}
    second, third = paired(by_row)
    assert (second.row, second.beside, second.tasks, second.gained, second.lost) == ("b", "a", 8, 4, 1)
    assert second.difference == 3 / 8
    assert second.half_interval == pytest.approx(1.96 * (5 - 9 / 8) ** 0.5 / 8, abs=1e-4)
    assert (third.tasks, third.gained, third.lost, third.difference, third.half_interval) == (4, 0, 0, 0, 0)
    assert paired({"a": by_row["a"]}) == []
    assert report({}, by_row)["paired"][0]["gained"] == 4
    # Without tests the very text counts.
    untested = {row: [replace(each, passed=None, exact=row == "b") for each in by_row[row]] for row in ("a", "b")}
    assert paired(untested)[0].gained == 8
    console = Console(width=100, record=True, file=StringIO())
    for table in tables("t", by_row):
        console.print(table)
    assert "+37.5 ±48.2" in console.export_text()


class Recorded:
    """In the place of llama.cpp: it says what the text is, and keeps how it was asked."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.asked: list[dict[str, Any]] = []

    def fill(self, prefix: str, suffix: str, **said: Any) -> PeerAnswer:
        self.asked.append({"prefix": prefix, "suffix": suffix, **said})
        return PeerAnswer(text=self.text, tokens=3, prompt_tokens=9, ended=True, ms=5.0)


def test_llama_cpp_fills_the_same_gaps_in_its_rows():
    tasks, peer = [task(0)], Recorded("2 * x")
    names = ["llama.cpp", "llama.cpp, first line", "llama.cpp, suffix first", "llama.cpp, suffix first, first line"]
    rows = chosen_rows(["adaptive", *names], cast(Beside, SimpleNamespace(peer=peer)))
    results = run_rows(oracle_of(tasks), tasks, rows)
    for name in names:
        (result,) = of(results, name, tasks)
        assert (result.text, result.passed, result.exact, result.forwards) == ("2 * x", True, True, 4)
    asked = {"prefix": tasks[0].prefix, "suffix": tasks[0].suffix, "max_tokens": 96, "fresh": True}
    ways = [(order, first_line) for order in ("published", "suffix first") for first_line in (False, True)]
    assert peer.asked == [{**asked, "order": order, "first_line": first_line} for order, first_line in ways]


def test_a_row_of_llama_cpp_needs_a_file_that_it_reads(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    tasks = written(tmp_path / "tasks.jsonl", HUMAN_EVAL)
    assert run(["eval", str(tasks), "--row", "llama.cpp", "--device", "cpu"]) == 2
    assert "bundled is no GGUF" in capsys.readouterr().err
