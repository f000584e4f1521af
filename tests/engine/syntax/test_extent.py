"""What a gap lies in, and how far it is filled. `▮` is the gap."""

import random

import pytest

from engine.lab.eval.holes import holes
from engine.syntax.brackets import Brackets, brackets_near
from engine.syntax.extent import cut_to_extent, extent, without_closers
from engine.syntax.languages import language_of
from tests.engine.syntax.test_languages import CASES


def around(marked: str, language: str) -> Brackets:
    before, after = marked.split("▮")
    return brackets_near(before, after, language)


@pytest.mark.parametrize(
    ("kind", "closed", "language", "marked"),
    [
        ("brackets", True, "python", "foo(▮)\n"),
        ("brackets", True, "python", "x.foo(a, b=[1], ▮)\n"),
        ("brackets", False, "python", "foo(a, ▮\nbar()\n"),
        ("brackets", True, "javascript", "f(g)(▮)\n"),
        ("brackets", True, "python", "x = [1, ▮]\n"),
        ("brackets", True, "python", "def f(a, ▮):\n"),
        ("brackets", True, "javascript", "if (▮) {}\n"),
        ("string", True, "python", "x = 'ab▮'\n"),
        ("string", False, "python", "x = 'ab▮\ny = 1\n"),
        ("string", True, "python", 'def f():\n    """Say ▮\n    """\n'),
        ("string", False, "python", 'def f():\n    """Say ▮\n\ndef g():\n    """Do."""\n'),
        ("comment", True, "python", "x = 1  # not ▮\n"),
        ("comment", True, "c", "/* one ▮ two */\n"),
        ("comment", False, "c", "/* one ▮\nint a; /* two */\n"),
        ("block", False, "python", "def f():\n    ▮\n\ndef g():\n    pass\n"),
        ("block", False, "python", "def f(\n    a,\n):\n    ▮\n"),
        ("block", True, "javascript", "function f() {▮}\n"),
        ("block", True, "java", "void f() {\n    ▮\n}\n"),
        ("rest_of_line", False, "python", "x = ▮\n"),
        ("rest_of_line", False, "python", "def f▮\n"),
        ("open", False, "python", "def f():\n    a = 1\n    ▮\n    return a\n"),
        ("open", False, "python", "▮\n"),
        ("open", False, "javascript", "function f() {\n  a()\n  ▮\n}\n"),
        ("open", False, "klingon", "▮"),
    ],
)
def test_kinds(kind, closed, language, marked):
    found = extent(around(marked, language))
    assert (found.kind, found.closed) == (kind, closed)


def check_cut(marked: str, fill: str, expected: str, language: str = "python") -> None:
    assert cut_to_extent(around(marked, language), fill) == expected


@pytest.mark.parametrize(
    ("marked", "fill", "expected"),
    [
        ("foo(▮)\n", "a, b)\nbar()", "a, b"),
        ("foo(▮\n", "a, b)\nbar()", "a, b)"),
        ("foo(▮)\n", "a,\n    [b, (c)],\n", "a,\n    [b, (c)],\n"),
        ("x = '▮'\n", "abc' + 'd", "abc"),
        ("x = '▮\n", "abc' + 'd'\ny = 1", "abc' + 'd'"),
        ("x = 1  # ▮\n", "one\ny = 2", "one"),
        ("def f():\n    ▮\n", "a = 1\n    return a\n\n\ndef g():\n    pass", "a = 1\n    return a"),
        ("def f():\n    ▮\n", 'a = """\n(\n"""\n    return a\nb', 'a = """\n(\n"""\n    return a'),
        ("x = ▮\n", "1\ny = 2", "1"),
        ("x = ▮\n", "[\n    1,\n]\ny = 2", "[\n    1,\n]"),
        ("if ▮\n", "a:\n    b()\nelse:\n    c()\nd()", "a:\n    b()\nelse:\n    c()"),
        ("x = 1▮\n", "\ny = 2\nz = 3", "\ny = 2\nz = 3"),
        ("def f():\n    ▮\n    return a\n", "a = 1\n    b = 2\nc", "a = 1\n    b = 2\nc"),
    ],
)
def test_cuts(marked, fill, expected):
    check_cut(marked, fill, expected)


@pytest.mark.parametrize(
    ("language", "marked", "fill", "expected"),
    [
        ("javascript", "function f() {\n  ▮\n}\n", "g()\n}\n\nfunction h() {}", "g()\n"),
        ("javascript", "if (▮\n", "a) {\n  b()\n}\nc()", "a) {\n  b()\n}"),
        ("java", "int x = ▮\n", "1;\nint y = 2;", "1;"),
        ("ruby", "def f(▮\n", "a)\n  a + 1\nend\n\ndef g", "a)\n  a + 1\nend"),
        ("ruby", "if ▮\nend\n", "a\n  b\nend", "a\n  b"),
        ("c", "/* ▮ */\n", "one */ int a;", "one "),
    ],
)
def test_cuts_in_other_languages(language, marked, fill, expected):
    check_cut(marked, fill, expected, language)


@pytest.mark.parametrize("file", sorted(CASES.iterdir()), ids=lambda path: path.name)
def test_the_true_text_is_never_cut(file):
    language = language_of(path=file.name) or ""
    text = file.read_text(encoding="utf-8")
    for seed in range(15):
        for hole in holes(text, language, random.Random(seed), ["rest_of_line", "arguments", "block"]):
            fill = text[hole.start : hole.end]
            assert cut_to_extent(brackets_near(text[: hole.start], text[hole.end :], language), fill) == fill


def check_closers(marked: str, fill: str, expected: str, language: str = "python") -> None:
    before, after = marked.split("▮")
    assert without_closers(brackets_near(before, after, language), fill) == expected


@pytest.mark.parametrize(
    ("marked", "fill", "expected"),
    [
        ("foo(▮)\n", "a, b)", "a, b"),
        ("foo(▮)\n", "a, bar(c))", "a, bar(c)"),
        ("foo(bar(▮)\n", "a)", "a)"),
        ("foo(▮)\n", "a), foo(b", "a), foo(b"),
        ("x = [{▮}]\n", "'a': 1}]", "'a': 1"),
        ("x = '▮'\n", "abc'", "abc"),
        ("foo('▮')\n", "abc')", "abc"),
        ("x = '▮'\n", "a' + 'b", "a' + 'b"),
        ('x = """▮"""\n', 'abc"""', "abc"),
        ("x = '▮\n", "abc'", "abc'"),
    ],
)
def test_brackets_and_quotes_are_not_doubled(marked, fill, expected):
    check_closers(marked, fill, expected)


@pytest.mark.parametrize(
    ("language", "marked", "fill", "expected"),
    [
        ("javascript", "function f() {\n  ▮\n}\n", "g()\n}", "g()"),
        ("javascript", "f(() => {▮})\n", " g() })", " g() "),
        ("rust", 'let x = "▮";\n', 'abc";', "abc"),
        ("json", '{"a": "▮"}', 'b"}', "b"),
        ("python", 'x = "abc▮"\n', "def\\", "def\\"),
        ("python", 'x = """abc▮"""\n', "def\\", "def\\"),
        ("javascript", "const x = 'abc▮';\n", "\\", "\\"),
        ("javascript", "const x = `abc▮`;\n", "\\", "\\"),
        ("bash", "x='abc▮'\n", "\\", "\\"),
    ],
)
def test_nothing_is_doubled_in_other_languages(language, marked, fill, expected):
    check_closers(marked, fill, expected, language)


@pytest.mark.parametrize("file", sorted(CASES.iterdir()), ids=lambda path: path.name)
def test_the_true_text_doubles_nothing(file):
    language = language_of(path=file.name) or ""
    text = file.read_text(encoding="utf-8")
    for seed in range(15):
        for hole in holes(text, language, random.Random(seed), ["rest_of_line", "line", "arguments", "block"]):
            fill = text[hole.start : hole.end]
            assert without_closers(brackets_near(text[: hole.start], text[hole.end :], language), fill) == fill
