"""Seeded breakages of real code: what they are, and a sample of them mended by the bundled model."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest

from engine.fill.loading import load
from tests.engine.lab.eval.breakages import KINDS, breakage_figures, breakages, broken, files_in, is_sound, mended

CODE = 'def f(a, b):\n    return [a, f"{b}"]\n\n\nfor x in f(1, 2):\n    print(x)\n'


@pytest.mark.parametrize("kind", KINDS)
def test_a_breakage_takes_out_one_token_that_is_missed(kind):
    found = broken("f.py", CODE, "python", kind, random.Random(0))
    assert found is not None
    assert not is_sound(found.broken, "python")
    assert found.broken[: found.start] + found.text[found.start : found.end] + found.broken[found.start :] == CODE
    taken = found.text[found.start : found.end]
    assert taken in {"bracket": "()[]", "quote": '"', "colon": ":", "comma": ",", "keyword": "def for in"}[kind]


def test_what_is_broken_already_or_lacks_the_kind_gives_none():
    assert broken("f.py", "x = (\n", "python", "bracket", random.Random(0)) is None
    assert broken("f.py", "x = 1\n", "python", "quote", random.Random(0)) is None


def test_the_same_seed_gives_the_same():
    files = [("f.py", CODE, "python")]
    assert breakages(files, 10, seed=3) == breakages(files, 10, seed=3)
    assert breakages([], 10) == []


def test_real_code_is_as_it_was():
    folder = Path(ast.__file__).parent
    files = [each for each in files_in(folder / "json", "python") if len(each[1]) < 20_000]
    cases = breakages(files, 15, seed=1)
    figures = breakage_figures(list(mended(load("bundled").model, cases)))
    assert figures.count == 15
    assert figures.damaged == 0
    assert figures.parse >= 0.95
    assert figures.as_they_were >= 0.8
