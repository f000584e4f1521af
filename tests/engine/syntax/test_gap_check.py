"""What of a fill may be offered in its gap, judged by the file as it will be. `▮` is the gap."""

import pytest

from engine.syntax.budget import Budget
from engine.syntax.gap_check import GapCheck
from engine.syntax.questions import ValidatedFill, ValidateFills
from engine.syntax.tree import Trees


def validated(marked: str, fill: str, language: str = "python", *, may_swallow: bool = True, whole: bool = False):
    before, after = marked.split("▮")
    question = ValidateFills(
        text=before + after,
        start=len(before),
        end=len(before),
        language=language,
        fills=(fill,),
        may_swallow=may_swallow,
    )
    found = GapCheck(question, Trees()).validated(fill, Budget(10_000), whole=whole)
    assert isinstance(found, ValidatedFill)
    return found


@pytest.mark.parametrize(
    ("language", "marked", "fill", "text", "swallowed"),
    [
        ("python", "x = foo(▮)\n", "a)", "a", 0),
        ("python", "x = foo(▮)\n", "a).bar()", "a).bar(", 0),
        ("python", "x = foo(▮)\n", "a).bar", "a).bar", 1),
        ("python", "x = foo([▮])\n", "a]) + b", "a]) + b", 2),
        ("python", "x = foo([▮])\n", "a] + b", "a] + b", 1),
        ("python", "x = foo(▮)\n", "a), foo(b", "a), foo(b", 0),
        ("python", "x = '▮'\n", "a' + 'b", "a' + 'b", 0),
        ("python", "x = '▮'\n", "a' + b", "a' + b", 1),
        ("python", "x = foo(▮)\nif (\n", "a).bar", "a).bar", 1),
        ("python", "x = [0▮, 0]\n", ", 0", ", 0", 0),
        ("python", "x = foo(▮) + 1\n", "a) + 1", "a", 0),
        ("javascript", "foo(▮);\n", "a); bar();", "a); bar(", 0),
        ("javascript", "foo(▮, () => {});\n", "a)", "a", 0),
        ("typescript", "let a: Map<▮> = b;\n", "K, () => V> | C", "K, () => V> | C", 1),
        ("bash", "y=$(▮)\n", "case $z in a) echo 1;; esac", "case $z in a) echo 1;; esac", 0),
        ("c", "int f(void) {\n  while (a▮>0) {}\n}\n", "->b", "->b", 0),
        ("markdown", "(see ▮)\n", "`f)` there", "`f)` there", 0),
    ],
)
def test_what_is_swallowed_or_left_out(language, marked, fill, text, swallowed):
    found = validated(marked, fill, language)
    assert (found.text, found.swallowed) == (text, swallowed)


@pytest.mark.parametrize(
    ("marked", "fill", "text"),
    [("x = foo(▮)\n", "a).bar", "a"), ("x = '▮'\n", "a' + b", "a"), ("x = foo(▮)\n", "a)", "a")],
)
def test_nothing_is_swallowed_for_who_can_t_replace_it(marked, fill, text):
    found = validated(marked, fill, may_swallow=False)
    assert (found.text, found.swallowed) == (text, 0)


def test_what_stands_for_text_that_is_there_is_taken_as_it_is():
    assert validated("x = foo(▮)\n", "a)", whole=True).text == "a)"


@pytest.mark.parametrize(
    ("marked", "fill", "text"),
    [
        ("def f():\n    ▮\n\n\ndef g():\n    pass\n", "return 1\n\n\nx = 2", "return 1"),
        ("x = ▮\ny = 1\n", "1\nz = 1", "1"),
        ("def f():\n    a = 1\n    ▮\n    return a\n", "a += 1\n    b = 2", "a += 1\n    b = 2"),
    ],
)
def test_several_lines_go_not_beyond_what_the_gap_lies_in(marked, fill, text):
    assert validated(marked, fill).text == text
