"""The rewrites that are measured: what is right passes, what stands there fails, and both halves are alike."""

from __future__ import annotations

from collections import Counter

import pytest

from engine.common.errors import BadInput
from engine.lab.eval.rewrites.rewrite_tasks import RewriteTask, parsed, rewrite_tasks, tasks_of
from engine.lab.eval.rewrites.tests_of import checked, is_run, plain_javascript

TASKS = rewrite_tasks()
ONE = """\
=== hints-one: Add hints.
has: int
--- file
x = 1
▮  def f(a):
    return a▮
y = 2
--- was
f(a)
--- becomes
f(a: int)
--- test
assert True
"""


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_right_rewrite_passes_and_the_unchanged_selection_fails(task: RewriteTask) -> None:
    right = checked(task, task.answer)
    assert right.passed, right.reason
    assert not checked(task, task.old).passed


def test_there_are_at_least_sixty_in_three_languages() -> None:
    counts = Counter(task.language for task in TASKS)
    assert counts["python"] >= 40
    assert counts["typescript"] >= 10
    assert counts["rust"] >= 10
    assert len({task.name for task in TASKS}) == len(TASKS)


def test_the_halves_share_nothing_and_have_as_many_of_each_language() -> None:
    development, reported = tasks_of("development"), tasks_of("reported")
    assert {task.name for task in development} | {task.name for task in reported} == {task.name for task in TASKS}
    assert not {task.name for task in development} & {task.name for task in reported}
    ours, theirs = (Counter(task.language for task in half) for half in (development, reported))
    assert all(abs(ours[language] - theirs[language]) <= 1 for language in ours)


def test_a_task_is_read_with_the_blank_ends_of_its_selection_outside() -> None:
    (task,) = parsed(ONE, "python")
    assert (task.name, task.kind, task.instruction) == ("python/hints-one", "hints", "Add hints.")
    assert task.prefix == "x = 1\n  "
    assert task.old == "def f(a):\n    return a"
    assert task.answer == "def f(a: int):\n    return a"
    assert task.file_with(task.answer) == "x = 1\n  def f(a: int):\n    return a\ny = 2"
    assert task.has == ("int",)


def test_a_replacement_of_what_stands_there_twice_is_an_error() -> None:
    with pytest.raises(BadInput):
        parsed(ONE.replace("--- was\nf(a)", "--- was\na"), "python")


def test_types_become_blanks() -> None:
    text = "class A<T> {\n  constructor(private readonly n: number, m?: string) {}\n}\nlet x = (y as string)!;\n"
    plain = plain_javascript(text)
    assert "number" not in plain
    assert "private" not in plain
    assert "this.n = n;" in plain
    assert plain.split() == (
        "class A { constructor( n , m ) { this.n = n;} } let x = (y ) ;".replace("(y )", "(y )").split()
    )


def test_a_test_that_ends_the_program_early_does_not_pass() -> None:
    (task,) = parsed(ONE, "python")
    assert not checked(task, "int\nraise SystemExit(0)").passed
    assert is_run("python")
