"""What a span is to the code around it."""

from __future__ import annotations

import pytest

from engine.syntax.roles import role_of
from engine.syntax.tree import parsed
from engine.text.marked import gap_at_markers


def role(marked: str, language: str = "python"):
    gap = gap_at_markers(marked)
    tree = parsed(gap.prefix + gap.old + gap.suffix, language)
    assert tree
    return role_of(tree, len(gap.prefix), len(gap.prefix) + len(gap.old))


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("def ▮f▮(a):\n    pass\n", "definition"),
        ("class ▮A▮: pass\n", "definition"),
        ("def f(▮a▮): pass\n", "parameter"),
        ("def f(▮a▮: int = 1): pass\n", "parameter"),
        ("def f(a: ▮int▮ = 1): pass\n", "use"),
        ("from a import ▮b▮\n", "import"),
        ("▮a▮ = 1\n", "assigned"),
        ("▮a▮, b = 1, 2\n", "assigned"),
        ("for ▮a▮ in b: pass\n", "assigned"),
        ("c = ▮a▮ + b\n", "use"),
        ("self.▮a▮ = 1\n", "assigned_member"),
        ("print(self.▮a▮)\n", "member"),
        ("f(▮a▮=1)\n", "keyword"),
        ("f('the ▮a▮ of 😋')\n", "text"),
        ("x = '😋'  # ▮a▮\n", "text"),
        ("y = '😋' + ▮a▮\n", "use"),
    ],
)
def test_roles_in_python(marked: str, expected: str):
    assert role(marked).role == expected


@pytest.mark.parametrize(
    ("language", "marked", "expected"),
    [
        ("javascript", "function ▮f▮(a) {}", "definition"),
        ("javascript", "function f(▮a▮) {}", "parameter"),
        ("javascript", "let ▮a▮ = 1;", "assigned"),
        ("javascript", "b.▮a▮(1);", "member"),
        ("rust", "fn ▮f▮() {}", "definition"),
        ("rust", "fn f() { let ▮a▮ = 1; }", "assigned"),
        ("rust", "fn f() { b.▮a▮; }", "member"),
        ("go", "package m\nfunc ▮f▮() {}", "definition"),
    ],
)
def test_roles_elsewhere(language: str, marked: str, expected: str):
    assert role(marked, language).role == expected


def test_scopes_begin_where_functions_and_classes_do():
    text = "class A:\n    def f(self):\n        return ▮a▮\n"
    assert role(text).scopes == (text.index("def"), 0)
    assert role("▮a▮\n").scopes == ()
    assert role("function f() { return () => ▮a▮; }", "javascript").scopes == (22, 0)


def test_the_whole_and_nothing_have_roles_too():
    assert role("▮▮").role == "use"
    assert role("▮a = 1\nb = 2\n▮").scopes == ()
