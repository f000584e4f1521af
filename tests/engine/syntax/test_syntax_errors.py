"""Where a text is broken. An error region is shown as its lines."""

import pytest

from engine.common.analysis import SyntaxErrorRegion
from engine.syntax.budget import Budget
from engine.syntax.checks import analyze
from engine.syntax.languages import language_of
from engine.syntax.parsed_text import parse_text
from engine.syntax.syntax_errors import syntax_errors
from engine.syntax.tree import parsed
from tests.engine.syntax.test_languages import CASES


def errors_in(text: str, language: str = "python") -> tuple[SyntaxErrorRegion, ...]:
    parsed_text = parse_text(text, language)
    assert parsed_text is not None
    return syntax_errors(parsed_text)


def broken_lines(text: str, language: str = "python") -> list[str]:
    return [text[each.start : each.end] for each in errors_in(text, language)]


@pytest.mark.parametrize("file", sorted(CASES.iterdir()), ids=lambda path: path.name)
def test_nothing_is_wrong_with_real_files(file):
    assert broken_lines(file.read_text(encoding="utf-8"), language_of(path=file.name) or "") == []


@pytest.mark.parametrize(
    ("text", "lines", "language"),
    [
        ("a = 1\nx = f(1\nb = 2\n", ["x = f(1"], "python"),
        ("def f(x)\n    return x\n", ["def f(x)"], "python"),
        ("face = '😋' + 'abc\nb = 2\n", ["face = '😋' + 'abc"], "python"),
        ("a = 1\r\nwhile x\r\n    b()\r\n", ["while x\r\n    b()"], "python"),
        ("x = 1)\n", ["x = 1)"], "python"),
        ("f(;\n\n\n\n\na = [1;\n", ["f(;", "a = [1;"], "javascript"),
    ],
)
def test_the_broken_lines_are_found(text: str, lines: list[str], language: str):
    assert broken_lines(text, language) == lines


def test_what_is_missing_is_named():
    (found,) = errors_in("function f() {\n  return [1, 2;\n}\n", "javascript")
    assert found.what == "missing ]"
    (found,) = errors_in("x = 'abc\n")
    assert found.what == "unterminated string literal"


def test_what_has_nothing_to_do_with_structure_is_no_syntax_error():
    assert broken_lines("return 1\nawait x\n") == []


def test_an_unknown_language_and_a_spent_budget_say_nothing():
    assert parse_text("x = (", "klingon") is None
    assert parse_text("x = (" * 10_000, "python", Budget(0)) is None


def test_an_analysis_finds_what_is_broken_and_what_is_still_to_be_written():
    text = "function f() {}\n\n\n\n\nx = (1;\n"
    tree = parsed(text, "tsx")
    assert tree is not None
    found = analyze(tree, text.index("{") + 1, Budget())
    assert [text[each.start : each.end] for each in found.errors] == ["x = (1;"]
    assert found.placeholder is not None
