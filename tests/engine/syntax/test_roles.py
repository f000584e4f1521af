"""What a span is to the code around it."""

from __future__ import annotations

import pytest

from engine.common.marked import gap_at_markers
from engine.syntax.roles import role_of
from engine.syntax.tree import parsed


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


@pytest.mark.processor_s(10)
def test_many_comments_take_no_time():
    text = "// a\n" * 30_000
    tree = parsed(f"{text}function f(a) {{}}", "javascript")
    assert tree
    assert {role_of(tree, at, at + 1).scopes for at in range(3, 300, 5)} == {()}
    assert role_of(tree, len(text) - 2, len(text) - 1).scopes == (len(text),)


def test_the_whole_and_nothing_have_roles_too():
    assert role("▮▮").role == "use"
    assert role("▮a = 1\nb = 2\n▮").scopes == ()


@pytest.mark.parametrize(
    ("language", "parameter", "keyword", "function"),
    [
        ("python", "def f(▮a▮, b): pass", "self.f(1, ▮a▮=1)", "f"),
        ("python", "class A:\n    def __init__(self, ▮a▮=1): pass", "x = A(▮a▮='😋')", "A"),
        ("ruby", "def f(▮a▮:)\nend", "x.f(▮a▮: 1)", "f"),
        ("php", "<?php function f($▮a▮) {}", "<?php $x->f(▮a▮: 1);", "f"),
        ("csharp", "class A { void f(int ▮a▮) {} }", "class A { void g() { this.f(▮a▮: 1); } }", "f"),
    ],
)
def test_a_parameter_and_a_keyword_name_their_function(language: str, parameter: str, keyword: str, function: str):
    of_parameter, of_keyword = role(parameter, language), role(keyword, language)
    assert (of_parameter.role, of_parameter.function) == ("parameter", function)
    assert (of_keyword.role, of_keyword.function) == ("keyword", function)


def test_nobody_else_names_a_function():
    assert role("▮f▮(a=1)").function == ""
    assert role("x = lambda ▮a▮: 1").function == ""
    assert role("x = {'😋': ▮a▮}").function == ""


@pytest.mark.parametrize(
    ("language", "marked", "expected"),
    [
        ("python", 'def f(a):\n    """Of `▮a▮`, 😋."""\n', "mention"),
        ("python", 'def f(a):\n    """Of ``b``, and ▮a▮ twice."""\n', "text"),
        ("python", 'def f(a):\n    """:param int ▮a▮: of them"""\n', "mention"),
        ("python", 'def f(a):\n    """F.\n\n    Args:\n        ▮a▮: of them\n    """\n', "mention"),
        ("python", 'def f(a):\n    """F.\n\n        ▮a▮ (int): of them\n    """\n', "mention"),
        ("python", 'def f(a):\n    """F.\n\n    ▮a▮ : int\n    """\n', "mention"),
        ("python", "x = {'▮a▮': 1}\n", "text"),
        ("javascript", "/** @param {number} ▮a▮ of them */\nfunction f(a) {}", "mention"),
        ("javascript", "/** Any ▮a▮. */\nfunction f(a) {}", "text"),
    ],
)
def test_prose_may_set_a_name_as_one(language: str, marked: str, expected: str):
    assert role(marked, language).role == expected


@pytest.mark.parametrize(
    ("language", "marked"),
    [
        ("javascript", "/** Any ▮a▮. */\nexport const f = (a) => 1;"),
        ("javascript", "// Any ▮a▮.\n// 😋\nexport function f(a) {}"),
        ("rust", "/// Any ▮a▮.\n#[inline]\nfn f(a: i32) {}"),
        ("java", "class A { /** Any ▮a▮. */ @B void f(int a) {} }"),
    ],
)
def test_a_comment_lies_in_what_it_stands_before(language: str, marked: str):
    text = marked.replace("▮", "")
    inside = role(marked, language).scopes[0]
    assert inside in {text.index(start) for start in ("(a) =>", "function f", "fn f", "@B") if start in text}
    assert role("# ▮a▮\nx = 1\n").scopes == ()
