"""What is offered parses, by other parsers than ours: a share of what `python -m engine.eval.soundness` measures."""

from __future__ import annotations

import email
import json
from pathlib import Path

import pytest

from engine.eval.code_holes import code_holes
from engine.eval.erring import erring
from engine.eval.parsers import Parsers
from engine.eval.soundness import figures, outcomes
from engine.eval.tasks import Task

OWN = Path(__file__).parents[2] / "cases" / "syntax"
PYTHON = [Path(module.__file__).parent for module in (email, json)]


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    python = [task for folder in PYTHON for task in code_holes(folder, "python", 3, 0)]
    return [*python, *code_holes(OWN, "javascript", 4, 0), *code_holes(OWN, "go", 2, 0), *code_holes(OWN, "rust", 2, 0)]


@pytest.mark.timeout(600)
def test_nothing_is_offered_that_breaks_a_file_and_right_fills_are_kept(tasks):
    with Parsers() as parsers:
        found = list(outcomes(tasks, lambda task: erring(task, 0), ["unchecked", "repaired"], parsers))
    rows = {(row.model, row.way): row for row in figures(found)}
    assert {each.language for each in found} >= {"python", "go", "rust"}
    assert rows["slips", "unchecked"].broke >= 1, "the model does not err, so nothing is shown"
    assert [row.broke for (_, way), row in rows.items() if way == "repaired"] == [0, 0, 0]
    assert rows["right", "repaired"].kept >= 0.95
    assert rows["slips", "repaired"].exact > rows["slips", "unchecked"].exact
    assert rows["slips", "repaired"].refused < 0.2 * rows["slips", "unchecked"].refused + 1
