"""What a rewrite may not change."""

from __future__ import annotations

import pytest

from engine.common.marked import gap_at_markers
from engine.common.request import FillRequest
from engine.fill.rewriting.kept import doubts, lost_names, with_kept

OLD = "def area(width, height=1):\n    return width * height"


def request_of(suffix: str = "", instruction: str = "Simplify.", old: str = OLD) -> FillRequest:
    return FillRequest(prefix="", old=old, suffix=suffix, instruction=instruction, task="rewrite")


@pytest.mark.parametrize(
    ("suffix", "instruction", "new", "lost"),
    [
        ("print(area(2))", "Simplify.", "def surface(w, h=1):\n    return w * h", ["area"]),
        ("print(1)", "Simplify.", "def surface(w, h=1):\n    return w * h", []),
        ("print(area(2))", "rename area to surface", "def surface(w, h=1):\n    return w * h", []),
        ("print(area(2))", "call it surface, rename it", "def surface(w):\n    return w", []),
        ("print(area(2, height=3))", "Simplify.", "def area(w, h=1):\n    return w * h", ["height"]),
        ("print(area(max(1, 2), height=3))", "Simplify.", "def area(w, h=1):\n    return w * h", ["height"]),
        ("print(area(2, height=3))", "Simplify.", "def area(w, *, height: int = 1):\n    return w * height", []),
        ("print(area(2) == 3)", "Simplify.", "def area(w, h=1):\n    return w * h", []),
        ("print(area(2))", "Explain it.", "# The function area multiplies.", ["area"]),
    ],
)
def test_names_that_the_file_uses_stay_unless_somebody_says_otherwise(
    suffix: str, instruction: str, new: str, lost: list[str]
) -> None:
    assert lost_names(request_of(suffix, instruction), new) == lost


@pytest.mark.parametrize(
    ("old", "new"), [("fn area() {}", "fn size() {}"), ("const area = 1;", "const size = 1;"), ("struct area;", "")]
)
def test_names_count_in_other_languages(old: str, new: str) -> None:
    assert lost_names(request_of("area()", old=old), new) == ["area"]


def test_kept_spans_stay_while_the_rest_changes() -> None:
    old = "first = 1\nsecond = 2\nthird = 3"
    new = "one = 10\ntwo = 20\nthree = 30"
    span = (old.index("second"), old.index("third") - 1)
    assert with_kept(old, new, [span]) == "one = 10\nsecond = 2\nthree = 30"
    assert with_kept(old, new, []) == new


def test_nothing_is_put_into_a_kept_span() -> None:
    assert with_kept("a b c", "a x b y c", [(0, 5)]) == "a b c"


@pytest.mark.parametrize(
    ("marked", "new", "told"),
    [
        ("▮def find(a):\n    return a▮\n", "def find_all(a):\n    return a", ["find is no longer defined."]),
        ("▮def find(a):\n    return a▮\n", "def find(a):\n    return a + 1", []),
        ("▮def find(a):\n    return a▮\n", "", []),
        ("▮def find(a):\n    return a▮\n", "def find(a):\n    print(a)", ["Nothing is returned any more."]),
        ("def f(a):\n    ▮b = {}\n    b[a] = 1▮\n    return b\n", "{a: 1}", ["b is no longer set."]),
        ("def f(a):\n    ▮b = {}\n    b[a] = 1▮\n    return b\n", "b = {a: 1}", []),
        ("def f(a):\n    ▮b = 1▮\n\ndef g(b):\n    return b\n", "c = 1", []),
        ("def f(a):\n    ▮print(a)▮\n", "print(a, size, len(a))", ["size is not defined."]),
        ("def f(a):\n    ▮print(a)▮\n", "size = 1\nprint([each for each in a], size)", []),
        ("import os\ndef f(a):\n    ▮print(a)▮\n", "os.print(a)", []),
        ("def f(a):\n    ▮print(a)▮\n    next(a)\n", "next(a)", ["It says again what stands beside it."]),
        ("def f(a):\n    ▮next(a)▮\n    next(a)\n", "next(a)", []),
    ],
)
def test_what_is_less_likely_to_be_meant(marked: str, new: str, told: list[str]) -> None:
    gap = gap_at_markers(marked)
    request = FillRequest(
        task="rewrite",
        prefix=gap.prefix,
        old=gap.old,
        suffix=gap.suffix,
        language="python",
        instruction="Make it fast.",
    )
    assert doubts(request, new) == told


@pytest.mark.parametrize(
    ("instruction", "old", "new", "is_doubtful"),
    [
        ("Remove the unused import.", "import sys", "# No changes needed", True),
        ("Remove the unused import.", "import sys", "", False),
        ("Comment it out.", "import sys", "# import sys", False),
        ("Say it better.", "# Says hallo.", "# Says hello.", False),
        ("Set it to 2.", "class A {\n  #x = 1;\n}", "#x = 2;", False),
        ("Set it to 2.", "int x = 1;", "#define x 2", False),
        ("Derive Debug.", "struct P;", "#[derive(Debug)]\nstruct P;", False),
        ("Set it to 2.", "let x = 1;", "// It is 1.\n// Set it to 2.", True),
    ],
)
def test_code_that_is_only_spoken_of_is_doubtful(instruction: str, old: str, new: str, is_doubtful: bool) -> None:
    told = doubts(request_of(instruction=instruction, old=old), new)
    assert ("Only comments are left." in told) == is_doubtful


def test_an_import_that_nobody_checks_is_doubtful() -> None:
    request = FillRequest(task="rewrite", prefix="", old="struct P;", suffix="", language="rust")
    assert doubts(request, "use std::fmt::Debug;\n\nstruct P;") == ["use std::fmt::Debug; is new."]
    assert doubts(request, "#[derive(Debug)]\nstruct P;") == []


@pytest.mark.parametrize(
    ("instruction", "new", "told"),
    [
        ("rename width to w and height to h", "def area(w, h=1):\n    return w * h", []),
        ("rename width to w and height to h", "def area(w, height=1):\n    return w * height", ["h is missing."]),
        ("rename `width` to `w`", "def area(width, w):\n    return width", ["w is missing."]),
        ("rename width to w", "def size(w, height=1):\n    return w", ["area is no longer defined."]),
        ("rename everything", "def size(w, height=1):\n    return w", []),
        ("use the constant UNIT_SIZE", "def area(width, height=1):\n    return width", ["UNIT_SIZE is missing."]),
        ("use `Size`", "def area(size: Size):\n    return size", []),
        ("Turn it into a generator.", "def areas():\n    yield 1", ["area is no longer defined."]),
        ("Turn it into the generator areas.", "def areas():\n    yield 1", ["area is no longer defined."]),
        ("do not compute, return 2", "def area(width, height=1):\n    return 2", []),
    ],
)
def test_names_that_the_instruction_gives_are_to_be_there(instruction: str, new: str, told: list[str]) -> None:
    assert doubts(request_of(instruction=instruction), new) == told
