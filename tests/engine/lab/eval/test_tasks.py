"""Tasks come from files, or from anybody's code."""

import gzip
import json
import os
import sys
from pathlib import Path

import pytest

from engine.common.errors import BadInput
from engine.lab.eval import tasks as tasks_module
from engine.lab.eval.evaluation import run_tests, syntax_error
from engine.lab.eval.tasks import LONGEST, EvalTask, UnitTest, choose, code_holes, read_tasks

HUMAN_EVAL = {
    "task_id": "SingleLineInfilling/HumanEval/0/L0",
    "entry_point": "add",
    "prompt": "def add(a, b):\n",
    "suffix": "    return c\n",
    "canonical_solution": "    c = a + b\n",
    "test": "def check(candidate):\n    assert candidate(1, 2) == 3\n",
}


def written(path: Path, *lines: object) -> Path:
    path.write_text("".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in lines))
    return path


def test_human_eval_infilling_is_read(tmp_path: Path):
    (task,) = read_tasks(written(tmp_path / "tasks.jsonl", HUMAN_EVAL, ""))
    assert (task.name, task.kind, task.language) == (HUMAN_EVAL["task_id"], "SingleLineInfilling", "python")
    assert task.prefix + task.truth + task.suffix == "def add(a, b):\n    c = a + b\n    return c\n"
    assert task.check == UnitTest(test=HUMAN_EVAL["test"], entry_point="add")


def test_a_compressed_file_is_read(tmp_path: Path):
    path = tmp_path / "tasks.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(HUMAN_EVAL).encode()))
    assert read_tasks(path)[0].truth == "    c = a + b\n"


def test_lines_end_with_a_line_feed_and_nothing_else(tmp_path: Path):
    strange = {**HUMAN_EVAL, "prompt": "def add(a, b):  # \u2028 \x85 \x1c\n"}
    text = "\r\n".join(json.dumps({**strange, "task_id": name}, ensure_ascii=False) for name in "ab")
    (tmp_path / "tasks.jsonl").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert [task.prefix for task in read_tasks(tmp_path / "tasks.jsonl")] == [strange["prompt"]] * 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "tasks.jsonl:2 is no task"),
        ("[]", "tasks.jsonl:2 is no task"),
        ('{"task_id": "a"}', "missing required field `prompt`"),
        ("null", "tasks.jsonl:2 is no task"),
        ("[" * 100_000, "tasks.jsonl:2 is no task"),
        (
            json.dumps({**HUMAN_EVAL, "task_id": "2", "prompt": 5}),
            r"jsonl:2 is no task .*got `int` - at `\$.prompt`",
        ),
        (json.dumps({**HUMAN_EVAL, "task_id": "2", "test": None}), r"got `null` - at `\$.test`"),
        (json.dumps({**HUMAN_EVAL, "task_id": "2", "suffix": "\ud800"}), "tasks.jsonl:2 is no task"),
        (json.dumps(HUMAN_EVAL), "tasks.jsonl:2 is a second task SingleLineInfilling/HumanEval/0/L0"),
    ],
)
def test_what_is_no_task_is_named_with_its_line(tmp_path: Path, line: str, said: str):
    with pytest.raises(BadInput, match=said):
        read_tasks(written(tmp_path / "tasks.jsonl", HUMAN_EVAL, line))


def test_a_file_that_can_not_be_read_is_named(tmp_path: Path):
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"text" * 100)[:-12])
    for name in ("missing.jsonl", "empty.jsonl", "cut.gz", ""):
        with pytest.raises(BadInput, match=name or str(tmp_path)):
            read_tasks(tmp_path / name)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes there")
@pytest.mark.parametrize("shape", ["pipe", "large", "compressed"])
def test_tasks_are_read_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str):
    monkeypatch.setattr(tasks_module, "_MOST_NBYTES", 500)
    path = tmp_path / "tasks.jsonl"
    if shape == "pipe":
        os.mkfifo(path)
    else:
        text = b"\n" * 501
        path.write_bytes(gzip.compress(text) if shape == "compressed" else text)
    with pytest.raises(BadInput, match="no ordinary file" if shape == "pipe" else "is larger than 500 B"):
        read_tasks(path)


def test_a_seed_draws_the_same_tasks_and_another_others(tmp_path: Path):
    lines = [{**HUMAN_EVAL, "task_id": f"Kind/{number}"} for number in range(50)]
    tasks = read_tasks(written(tmp_path / "tasks.jsonl", *lines))
    assert choose(tasks, 10, 1) == choose(tasks, 10, 1) != choose(tasks, 10, 2)
    whole = choose(tasks, None, 1)
    assert whole == choose(tasks, 50, 1) != choose(tasks, None, 2)
    assert sorted(whole, key=tasks.index) == tasks != whole


def test_the_truth_passes_and_nothing_does_not(tmp_path: Path):
    (task,) = read_tasks(written(tmp_path / "tasks.jsonl", HUMAN_EVAL))
    right, empty, other = run_tests(task, task.truth), run_tests(task, ""), run_tests(task, "    c = 7\n")
    assert right is not None
    assert right.passed
    assert empty is not None
    assert not empty.passed
    assert other is not None
    assert not other.passed


def test_what_is_no_python_needs_no_sandbox(tmp_path: Path):
    (task,) = read_tasks(written(tmp_path / "tasks.jsonl", HUMAN_EVAL))
    assert syntax_error(task, "    c = (\n").startswith("SyntaxError: ")
    assert syntax_error(task, task.truth) == ""


@pytest.fixture
def code(tmp_path: Path) -> Path:
    for name in ("a.py", "b.py", ".hidden/c.py", "node_modules/d.py", "e.js", "notes.bin"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"def function{number}(a, b):\n    return call(a, b)\n\n\n" for number in range(20)))
    (tmp_path / "short.py").write_text("x = 1\n")
    (tmp_path / "broken.py").write_bytes(b"\xff" * 500)
    return tmp_path


def test_gaps_are_cut_into_real_code(code: Path):
    tasks = code_holes(code, "python", 8, seed=1)
    assert tasks == code_holes(code, "py", 8, seed=1) != code_holes(code, "python", 8, seed=2)
    assert {task.name.partition(":")[0] for task in tasks} == {"a.py", "b.py"}
    assert {task.kind for task in tasks} <= {"rest_of_line", "line", "block", "arguments"}
    text = (code / "a.py").read_text()
    for task in tasks:
        assert task.prefix + task.truth + task.suffix == text
        assert 0 < len(task.truth) <= LONGEST
        assert task.language == "python"


def test_every_file_gives_one_gap_before_any_gives_two(code: Path):
    names = [task.name.partition(":")[0] for task in code_holes(code, None, 3, seed=0)]
    assert sorted(names) == ["a.py", "b.py", "e.js"]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes there")
def test_what_is_no_ordinary_file_or_too_large_has_no_gaps(code: Path):
    os.mkfifo(code / "pipe.py")
    (code / "endless.py").symlink_to("/dev/zero")
    with (code / "large.py").open("wb") as file:
        file.truncate(1 << 40)
    assert {task.name.partition(":")[0] for task in code_holes(code, "python", 8, seed=1)} == {"a.py", "b.py"}


def test_a_folder_without_code_is_named(tmp_path: Path):
    for folder, language in ((tmp_path, None), (tmp_path / "missing", None), (tmp_path, "klingon")):
        with pytest.raises(BadInput, match=language or folder.name):
            code_holes(folder, language, None, 0)


@pytest.mark.parametrize("name", ["SingleLineInfilling", "RandomSpanInfillingLight"])
def test_the_published_solutions_pass(name: str):
    folder = os.environ.get("DG_LSP_HUMAN_EVAL")
    if not folder:
        pytest.skip("DG_LSP_HUMAN_EVAL does not name the folder of HumanEval-Infilling's files")
    tasks: list[EvalTask] = choose(read_tasks(Path(folder) / f"HumanEval-{name}.jsonl.gz"), 15, seed=0)
    assert [task.name for task in tasks if not _passes(task, task.truth)] == []
    assert [task.name for task in tasks if not syntax_error(task, "") and _passes(task, "")] == []


def _passes(task: EvalTask, text: str) -> bool:
    said = run_tests(task, text)
    assert said is not None
    return said.passed
