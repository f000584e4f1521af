"""What a fill adds to the syntax of its file. Between the markers stands the fill."""

import pytest

from engine.syntax.budget import Budget
from engine.syntax.tree import parsed
from engine.syntax.validator import Validator
from engine.syntax.verdict import Verdict


def validated(marked: str, language: str = "python", old: str = "") -> tuple[Verdict, str]:
    before, fill, after = marked.split("▮")
    verdict = Validator(before, after, language, old).verdict(fill)
    assert verdict is not None
    assert all(0 <= problem.start <= problem.end <= len(fill) for problem in verdict.problems)
    return verdict, fill


def check_whole(marked: str, language: str = "python", old: str = "") -> None:
    """The fill adds nothing, and nothing at the gap is broken with it."""
    verdict, _ = validated(marked, language, old)
    assert (verdict.problems, verdict.whole) == ((), True)


def check_unfinished(marked: str, language: str = "python", old: str = "") -> None:
    """The fill adds nothing, but what was missing at the gap still is."""
    verdict, _ = validated(marked, language, old)
    assert (verdict.problems, verdict.whole) == ((), False)


def check_broken(marked: str, *places: str, language: str = "python", old: str = "") -> None:
    """The fill adds problems; the first ones lie at these pieces of the fill, if any are given."""
    verdict, fill = validated(marked, language, old)
    assert verdict.problems
    found = [fill[problem.start : problem.end] for problem in verdict.problems]
    assert tuple(found[: len(places)]) == places


class TestFinishedCode:
    @pytest.mark.parametrize(
        "marked",
        [
            "x = ▮foo()▮\n",
            "x = foo(▮a, b▮)\n",
            "def f(a, b):\n    ▮if a:\n        return b▮\n",
            "x = '▮abc▮'\n",
            "x = '😋' + ▮y▮\r\nz = 1\r\n",
            "a = 1\rb = ▮2▮\rc = 3\r",
            "▮▮",
            "▮import os▮",
            "if a:\n    pass\n▮else:\n    pass▮\n",
            '"""▮doc▮"""\n',
            'def f():\n    ▮"""doc\n\n    with x = = y▮\n    """\n    return 1\n',
        ],
    )
    def test_good_fills(self, marked):
        check_whole(marked)

    @pytest.mark.parametrize(
        ("marked", "place"),
        [
            ("x = ▮foo(▮\n", "("),
            ("x = ▮a)▮\n", ")"),
            ("x = [▮1, (2▮]\n", "("),
            ("x = foo(▮a]▮)\n", "]"),
            ("▮x = 'abc▮\n", "'"),
        ],
    )
    def test_broken_fills_and_where(self, marked, place):
        check_broken(marked, place)

    @pytest.mark.parametrize(
        "marked",
        [
            "x = ▮await f()▮\n",
            "▮async with a as b:\n    pass▮\n",
            "if a:\n    x = ▮[i async for i in f()]▮\n",
            "x = ▮await f()▮\ny = await g(\n",
        ],
    )
    def test_await_outside_of_functions_is_for_notebooks(self, marked):
        assert not validated(marked, "ipython")[0].problems
        check_broken(marked)

    @pytest.mark.parametrize("marked", ["def f():\n    return ▮await g()▮\n", "▮return await g()▮\n", "x = ▮await▮\n"])
    def test_await_in_the_wrong_place_is_for_nobody(self, marked):
        check_broken(marked, language="ipython")

    @pytest.mark.parametrize(
        "marked",
        [
            "▮if a▮\n",
            "def f(a, b):\n    ▮if a:▮\n",
            "def f(a, b):\n    ▮if a:\n  return b▮\n",
            "▮def f():\n    x = 1\n   y = 2▮\n",
            "def f():\n    x = 1▮\n      y = 2▮\n",
            "▮return 1▮\n",
            "while True:\n    pass\n▮break▮\n",
            "▮else:\n    pass▮\n",
            "▮for = 1▮\n",
            "▮x = yield = 2▮\n",
            "if a:\n    pass\nelse:\n    pass\n▮else:\n    pass▮\n",
        ],
    )
    def test_what_the_grammar_lets_pass(self, marked):
        check_broken(marked)

    def test_a_gap_that_nothing_usual_fits(self):
        check_whole("for x ▮in▮ y:\n    pass\n")
        check_broken("for x ▮of▮ y:\n    pass\n")

    def test_a_problem_behind_the_gap_is_put_at_its_end(self):
        verdict, fill = validated("▮x = '''abc▮\ny = 1\n")
        assert verdict.problems
        assert all(problem.start <= len(fill) for problem in verdict.problems)


class TestUnfinishedCode:
    @pytest.mark.parametrize(
        "marked",
        [
            "foo(▮a▮",
            "foo(▮a, b▮\nbar()\n",
            "def f(▮a, b▮",
            "def f(▮a, b):▮",
            "def f(a, b▮):\n    ▮",
            "def f(a, b):\n    ▮# soon▮\n",
            "if ▮y > 0▮",
            "class A:\n    def f(self):\n        foo([▮1, 2▮",
            "try:\n    ▮x = 1▮\n",
        ],
    )
    def test_what_was_missing_may_stay_missing(self, marked):
        check_unfinished(marked)

    @pytest.mark.parametrize(
        "marked",
        [
            "foo(▮a)▮",
            "def f(▮a, b):\n    return a▮",
            "if ▮y > 0:\n    pass▮",
            "try:\n    ▮x = 1\nexcept E:\n    pass▮\n",
        ],
    )
    def test_a_fill_may_finish_it(self, marked):
        check_whole(marked)

    @pytest.mark.parametrize(
        "marked",
        [
            "foo(▮a]▮",
            "def f(a, b▮):\n    return (a▮",
            "foo(▮(a▮",
            "if ▮y > > 0▮",
            "if ▮y >= ;▮\n    pass\n",
            "from .▮a import for▮\n",
            "x = y ▮else'▮\n",
            "def▮ g.h▮\n    pass\n",
            "▮def f if▮\n    a,\n    b,\n):\n    pass\n",
        ],
    )
    def test_and_may_not_break_more(self, marked):
        check_broken(marked)

    @pytest.mark.parametrize(
        ("language", "marked"),
        [
            ("javascript", "foo(▮a▮\nbar();\n"),
            ("javascript", "if (▮a▮"),
            ("javascript", "if (▮a) {▮"),
            ("javascript", "class A {\n  foo() {\n    bar(▮a▮"),
            ("go", "func f() {\n\tg(▮1, 2▮\n"),
            ("java", "class A {\n  void f() {\n    g(▮1, 2▮\n"),
            ("c", "int main(void) {\n  puts(▮x▮"),
            ("lua", "function f()\n  ▮return 1▮\n"),
            ("json", '{"a": [▮1▮'),
        ],
    )
    def test_in_other_languages(self, language, marked):
        check_unfinished(marked, language)


class TestBrokenElsewhere:
    def test_a_head_that_is_missing_is_not_somewhere_else(self):
        before = "class A:\n    def f(self):\n        return 1\n\n\n"
        after = "\n    x = 1\n    if x:\n        return 2\n    return 3\n"
        check_unfinished(f"{before}▮pass▮{after}")
        check_whole(f"{before}▮def h():▮{after}")

    def test_in_another_statement(self):
        check_whole("x = (▮1, 2▮)\n\ndef f():\n    pass\n\ny = = 3\n")
        check_broken("x = (▮1, (2▮)\n\ndef f():\n    pass\n\ny = = 3\n", "(")

    def test_in_the_same_function_before_and_behind(self):
        code = "def f():\n    y = = 3\n    x = (▮{}▮)\n    z = 1 +\n    return x\n"
        assert not validated(code.format("1, 2"))[0].problems
        check_broken(code.format("1, (2"))
        check_broken(code.format("1, 2 2"))

    @pytest.mark.parametrize("language", ["javascript", "typescript", "java", "c", "go"])
    def test_in_other_languages(self, language):
        code = "int f() {{ return ; }} = = ;\n\n\nint g() {{ g(▮{}▮); }}\n"
        if language in ("javascript", "typescript"):
            code = code.replace("int ", "function ")
        if language == "go":
            code = code.replace("int ", "func ")
        assert not validated(code.format("a, b"), language)[0].problems
        check_broken(code.format("a, [b"), language=language)

    def test_a_missing_brace_far_below_blocks_nothing(self):
        code = "class A {\n  f() {\n    return ▮this.g(1)▮;\n  }\n\n  g(x) {\n    if (x) {\n      return x;\n  }\n}\n"
        assert not validated(code, "javascript")[0].problems


class TestOldText:
    def test_a_problem_of_the_old_text_may_stay(self):
        check_broken("a ▮= =▮ b\n")
        assert not validated("a ▮= =▮ b\n", old="= =")[0].problems

    def test_the_old_text_is_judged_like_any_other(self):
        check_whole("x = ▮1▮\n", old="1")
        check_broken("x = ▮2 2▮\n", old="1")

    def test_old_text_that_was_needed(self):
        check_broken("def f▮(a▮:\n    return a\n", old="(a)")


class TestRules:
    @pytest.mark.parametrize(
        ("marked", "place"),
        [
            ("f(▮a,, b▮)\n", ","),
            ("f(▮, b▮)\n", ","),
            ("f(x▮,▮ , b)\n", ""),
            ("f(▮a, /* one */, b▮)\n", ","),
            ("x = {▮a,, b▮}\n", ","),
            ("const {▮a,, b▮} = c\n", ","),
            ("x = ▮for▮;\n", "for"),
            ("x = {▮file, true▮}\n", "true"),
        ],
    )
    @pytest.mark.parametrize("language", ["javascript", "typescript", "tsx"])
    def test_scripts(self, language, marked, place):
        check_broken(marked, place, language=language)

    @pytest.mark.parametrize(
        ("marked", "place"),
        [
            ("function f() { ▮await g()▮ }\n", "await g()"),
            ("function f() { ▮yield 1▮ }\n", "yield 1"),
            ("async function f() { const r = ▮{ await }▮ }\n", "await"),
            ("function f() { ▮const x▮ }\n", "x"),
        ],
    )
    def test_scripts_where_a_word_has_no_place(self, marked, place):
        verdict, fill = validated(marked, "javascript")
        assert place in [fill[problem.start : problem.end] for problem in verdict.problems]

    @pytest.mark.parametrize(
        "marked",
        [
            "async function f() { ▮await g()▮ }\n",
            "const f = async () => { ▮for await (const x of g()) {}▮ }\n",
            "async function f() { const r = ▮await (0, x.y)(z)▮ }\n",
            "▮export const x = await y▮\n",
            "function* f() { ▮yield 1▮ }\n",
            "class A { async *f() { ▮yield await 1▮ } }\n",
            "for (▮const x of y▮) {}\n",
            "[▮a,, b▮]\n",
            "f(▮a, /* one */ b,▮)\n",
            "x = {▮get, true: this, null: null, async▮}\n",
            "class A extends B { constructor() { ▮super(); super.x = super['y']▮ } }\n",
        ],
    )
    def test_scripts_that_follow_them(self, marked):
        check_whole(marked, "javascript")

    def test_what_was_there_already_is_nobodys_fault(self):
        check_whole("function f() { g(a,, ▮1▮) }\n", "javascript")
        check_whole("g(▮a▮, , b)\n", "javascript")

    def test_what_is_no_code_yet_breaks_no_rule(self):
        check_unfinished("f(▮a,▮", "javascript")
        check_unfinished("x = {▮true▮", "javascript")

    @pytest.mark.parametrize(
        ("language", "code"), [("go", "x := ▮func▮"), ("c", "int x = ▮while▮;"), ("lua", "x = ▮end▮")]
    )
    def test_keywords_are_no_names(self, language, code):
        check_broken(code, language=language)


class TestUnchecked:
    def test_an_unknown_language(self):
        assert Validator("x = ", "\n", "klingon").verdict("((((") is None

    def test_no_time(self):
        assert Validator("x = ", "\n", "python").verdict("a", Budget(0)) is None
        assert Validator("x = ", "\n", "javascript").verdict("a", Budget(0)) is None

    @pytest.mark.parametrize("language", ["python", "javascript"])
    @pytest.mark.parametrize("fill", ["a(", "a]", "'a", "(')')]"])
    def test_brackets_and_quotes_need_none(self, language, fill):
        verdict = Validator("x = ", "\n", language).verdict(fill, Budget(0))
        assert verdict
        assert verdict.problems

    def test_time_that_runs_out_does_no_harm_later(self):
        validator = Validator("x = (1,\n" * 300, "\n", "javascript")
        ticks = iter([0.0] * 20 + [10.0] * 100)
        assert validator.verdict("a", Budget(1, clock=lambda: next(ticks))) is None
        assert validator.verdict("a") is not None


def test_a_known_tree_is_used():
    tree = parsed("x = 1\n", "python")
    verdict = Validator("x = ", "\n", "python", "1", tree).verdict("(")
    assert verdict is not None
    assert verdict.problems


def test_a_place_deep_in_a_long_class_is_no_place_in_a_string():
    method = '    def f(self):\n        """Say\n\n        it.\n        """\n        return [1]\n\n'
    before = "class A:\n" + method * 400 + "    def f(self"
    verdict = Validator(before, "\n        a,\n    ):\n        pass\n", "python").verdict("]")
    assert verdict
    assert verdict.problems


def test_a_large_file_is_judged_by_what_is_near():
    padding = "def f(a):\n    return [a]\n\n\n" * 3000
    code = f"{padding}class A:\n    def g(self):\n        return ▮{{}}▮\n\n\n{padding}"
    check_whole(code.format("self.h(1)"))
    check_broken(code.format("self.h(1"), "(")
