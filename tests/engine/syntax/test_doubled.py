"""What stands behind the gap is not said twice. `▮` is the gap."""

import random

import pytest

from engine.syntax.brackets import brackets_near
from engine.syntax.doubled import undoubled
from engine.syntax.holes import holes
from engine.syntax.languages import language_of
from tests.engine.syntax.test_languages import CASES


def check_undoubled(marked: str, fill: str, expected: str, language: str = "python") -> None:
    before, after = marked.split("▮")
    assert undoubled(brackets_near(before, after, language), fill) == expected


@pytest.mark.parametrize(
    ("marked", "fill", "expected"),
    [
        ("foo(▮)\n", "a, b)", "a, b"),
        ("foo(▮)\n", "a, bar(c))", "a, bar(c)"),
        ("foo(▮) + 1\n", "a) + 1", "a"),
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
def test_brackets_and_quotes(marked, fill, expected):
    check_undoubled(marked, fill, expected)


@pytest.mark.parametrize(
    ("marked", "fill", "expected"),
    [
        ("x = ▮\nreturn x\n", "1\nreturn x", "1"),
        ("x = ▮\nreturn x\n", "1\nreturn x\n", "1"),
        ("x = ▮ + other\n", "1 + other", "1"),
        ("▮\n\ndef g():\n    pass\n", "def f():\n    pass\n\ndef g():\n    pass", "def f():\n    pass"),
        ("x = ▮\ny = 1\n", "1\nz = 1", "1\nz = 1"),
        ("x = [0▮, 0]\n", ", 0", ", 0"),
        ("x = ▮1\n", "11", "11"),
    ],
)
def test_text(marked, fill, expected):
    check_undoubled(marked, fill, expected)


@pytest.mark.parametrize(
    ("language", "marked", "fill", "expected"),
    [
        ("javascript", "function f() {\n  ▮\n}\n", "g()\n}", "g()"),
        ("javascript", "f(() => {▮})\n", " g() })", " g() "),
        ("rust", 'let x = "▮";\n', 'abc";', "abc"),
        ("json", '{"a": "▮"}', 'b"}', "b"),
        ("html", "<p>▮</p>\n", "text</p>", "text"),
    ],
)
def test_other_languages(language, marked, fill, expected):
    check_undoubled(marked, fill, expected, language)


@pytest.mark.parametrize("file", sorted(CASES.iterdir()), ids=lambda path: path.name)
def test_the_true_text_doubles_nothing(file):
    language = language_of(path=file.name) or ""
    text = file.read_text(encoding="utf-8")
    for seed in range(15):
        for hole in holes(text, language, random.Random(seed), ["rest_of_line", "line", "arguments", "block"]):
            fill = text[hole.start : hole.end]
            assert undoubled(brackets_near(text[: hole.start], text[hole.end :], language), fill) == fill
