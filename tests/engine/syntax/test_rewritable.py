"""Which rewrites a selection asks for."""

from __future__ import annotations

import pytest

from engine.syntax.rewritable import rewritable
from engine.syntax.tree import parsed

MEAN = "def mean(values):\n    return sum(values) / len(values)\n"
TYPED = 'def mean(values: list[float]) -> float:\n    """Their mean."""\n    return sum(values)\n'


def kinds(text: str, language: str = "python", start: int = 0, end: int | None = None) -> set[str]:
    tree = parsed(text, language)
    assert tree is not None
    return {each.kind for each in rewritable(tree, start, len(text) if end is None else end)}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (MEAN, {"hints", "docstring", "empty"}),
        (TYPED, set()),
        ("class A:\n    def __init__(self) -> None:\n        self.x = 1\n", {"docstring"}),
        ('class A:\n    """A."""\n\n    def __init__(self):\n        """B."""\n', {"body"}),
        ('def f() -> int:\n    """One."""\n    ...\n', {"body"}),
        ('def f() -> int:\n    """One."""\n    raise NotImplementedError\n', {"body"}),
        ('x = "%s" % y\n', {"fstring"}),
        ('x = "{}".format(y)\n', {"fstring"}),
        ('x = "a" + str(y)\n', {"fstring"}),
        ('x = "a" + y\n', set()),
        ("x = 3 % y\n", set()),
        ("for x in y:\n    z.append(x)\n", {"comprehension"}),
        ("for x in y:\n    if x:\n        z.add(x)\n", {"comprehension"}),
        ("for x in y:\n    z[x] = 1\n", {"comprehension"}),
        ("for x in y:\n    print(x)\n", set()),
        ("for x in y:\n    z.append(x)\n    w(x)\n", set()),
        ("if x:\n    return True\nelse:\n    return False\n", {"simplify"}),
        ("if x:\n    if y:\n        z()\n", {"simplify"}),
        ("if x:\n    z()\nelse:\n    w()\n", set()),
        ("é = '😋'\nfor x in y:\n    z.append(x)\n", {"comprehension"}),
    ],
)
def test_what_applies_in_python(text: str, wanted: set[str]) -> None:
    assert kinds(text) == wanted


@pytest.mark.parametrize(
    ("language", "text", "wanted"),
    [
        ("typescript", "function f(x: string) {\n  return 'a' + x;\n}\n", {"comment", "template"}),
        ("typescript", "/** A. */\nexport function f(x: number) {\n  return x + 1;\n}\n", set()),
        ("rust", "/// A.\nfn f() -> i32 {\n    1\n}\n", set()),
        ("rust", "fn f() -> i32 {\n    1\n}\n", {"comment"}),
    ],
)
def test_what_applies_elsewhere(language: str, text: str, wanted: set[str]) -> None:
    assert kinds(text, language) == wanted


def test_only_what_is_selected_counts() -> None:
    text = 'x = "%s" % y\n' + TYPED
    assert kinds(text, start=13) == set()
    assert kinds(text, end=12) == {"fstring"}


def test_a_cursor_in_the_first_line_of_a_function_stands_for_all_of_it() -> None:
    text = f"x = 1\n{MEAN}y = 2\n"
    tree = parsed(text, "python")
    assert tree is not None
    at = text.index("mean")
    found = rewritable(tree, at, at)
    assert {(each.start, each.end) for each in found} == {(6, 6 + len(MEAN) - 1)}
    inside = text.index("sum")
    assert rewritable(tree, inside, inside) == ()
    assert rewritable(tree, 0, 0) == ()
