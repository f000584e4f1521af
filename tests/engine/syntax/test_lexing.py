"""Brackets, strings and comments as the languages write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.syntax.brackets import Brackets, brackets_near
from engine.syntax.languages import GRAMMARS
from engine.syntax.lexing import lexemes


def check_lexemes(text: str, language: str, *expected: str) -> None:
    assert [text[lexeme.start : lexeme.end] for lexeme in lexemes(text, language)] == list(expected)


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("python", 'f(\'(\', """a\n)""") # (', ["(", "'('", '"""a\n)"""', ")", "# ("]),
        ("python", "x = 'a\ny = ]", ["'a", "]"]),
        ("python", r"x = '\'(' + (", [r"'\'('", "("]),
        ("javascript", "a = /[(/]/g; b = c / d / (e)", ["/[(/]/", "(", ")"]),
        ("javascript", "a.map(b => /[(]/.test(b))", ["(", "/[(]/", "(", ")", ")"]),
        ("javascript", "f(a,\n    /[(]/, 1)", ["(", "/[(]/", ")"]),
        ("javascript", "a = b\n    / c / d[(e)]", ["[", "(", ")", "]"]),
        ("javascript", "`(${x}` // {\n/* ( */ [", ["`(${x}`", "// {", "/* ( */", "["]),
        ("rust", "fn f<'a>(x: &'a str) { '(' }", ["(", ")", "{", "'('", "}"]),
        ("rust", 'r#"(" "# )', ['r#"(" "#', ")"]),
        ("lua", "--[[ ( ]] x = [==[ ) ]==] {", ["--[[ ( ]]", "[==[ ) ]==]", "{"]),
        ("csharp", 'x = @"\\" + (', ['"\\"', "("]),
        ("css", "a { content: '}' } /* { */", ["{", "'}'", "}", "/* { */"]),
        ("markdown", "(", []),
        ("klingon", "(", []),
    ],
)
def test_lexemes(language, text, expected):
    check_lexemes(text, language, *expected)


@pytest.mark.parametrize(
    ("language", "marked", "fill"),
    [
        ("javascript", "s.split(▮", "/[)]/"),
        ("typescript", "return ▮", "/[(]/"),
        ("tsx", "f(a, ▮", "/[(]/"),
        ("ruby", "s.scan(▮", "/[)]/"),
        ("csharp", "f(@▮", '"\\", 1'),
        ("rust", "f(▮", "')', 'x'"),
    ],
)
def test_what_a_fill_opens_is_told_by_what_stands_before_it(language, marked, fill):
    before, after = marked.split("▮")
    near = brackets_near(before, after, language)
    assert near.excess(fill) is None
    assert near.left_open(fill) == near.cut_off(fill) == ()


@pytest.mark.parametrize("quote", ['"', "'", '"""', "'''", "`"])
@pytest.mark.parametrize("language", [each.name for each in GRAMMARS.values() if each.lexes])
def test_a_string_goes_on_behind_a_backslash(language, quote):
    cut_off = [each for each in lexemes(f"x = {quote}a", language) if not each.ended]
    assert [(each.start, each.ended) for each in lexemes(f"x = {quote}a\\", language) if not each.ended] == [
        (each.start, False) for each in cut_off
    ]


@given(st.text(alphabet="()[]{}'\"`#/*-\\\n\r ar@=", max_size=60), st.sampled_from(list(GRAMMARS)))
def test_lexemes_are_in_order_and_never_empty(text, language):
    end = 0
    for lexeme in lexemes(text, language):
        assert end <= lexeme.start < lexeme.end <= len(text)
        end = lexeme.end


def around(text: str, language: str = "python") -> Brackets:
    before, after = text.split("▮")
    return Brackets(before, after, language)


class TestBrackets:
    def test_what_the_text_behind_does_not_close(self):
        assert around("foo(bar[▮]").closers == ")"
        assert around("foo(bar[▮").closers == "])"
        assert around("foo(bar[▮])").closers == ""
        assert around("foo(▮\nbar()\n").closers == ")"

    def test_what_the_text_before_does_not_open(self):
        assert around("if (x) ▮\n}\n", "javascript").openers == "{"
        assert around("f ▮)]").openers == "[("
        # Text that is left out may have opened it.
        assert Brackets("if (x) ", "\n}\n", "javascript", cut=True).openers == ""

    def test_a_closer_too_many(self):
        assert around("foo(▮)").excess("a, b)") == 4
        assert around("foo(▮").excess("a, b)") is None
        assert around("foo(▮").excess("a, b))") == 5
        assert around("x = ▮").excess("1]") == 1

    def test_a_bracket_may_be_closed_and_opened_again(self):
        assert around("foo(▮)").excess("a), (b") is None

    def test_brackets_in_strings_do_not_count(self):
        assert around("foo(▮)").excess("')'") is None
        assert around("foo('▮')").excess(")") is None

    def test_a_bracket_left_open(self):
        assert around("x = ▮\n").left_open("[1, (2)") == (0,)
        assert around("x = (▮)\n").left_open("1, (2") == (3,)
        assert around("x = (▮\n").left_open("1, (2))") == ()

    def test_right_behind_a_backslash_is_still_in_the_string(self):
        assert around("x = 'hello\\▮").depth == 7
        assert around("f(▮)").excess("'a\\") is None

    def test_where_the_outermost_bracket_begins(self):
        assert around("x = foo(bar(▮").depth == 5
        assert around("x = 'abc▮'").depth == 4
        assert around("x = 1▮").depth == 0

    def test_text_that_was_left_out_may_open_a_brace(self):
        padding = "x = 1;\n" * 20000
        near = brackets_near("{\n" + padding + "if (a) {", "\n}\n}\n", "javascript")
        assert len(near.before) < len(padding)
        assert near.excess("}") is None
        assert near.excess(")") == 0
