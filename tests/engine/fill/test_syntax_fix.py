"""Syntax fixes: only what is broken changes, only what parses is offered, and the bundled model does it for real."""

from __future__ import annotations

import re
from collections.abc import Generator
from functools import partial
from pathlib import Path

import pytest
from torch import Tensor

from engine.common.request import Draft, FillRequest
from engine.fill.alternatives import Alternative
from engine.fill.answering import answering
from engine.fill.executor import Step, drive
from engine.fill.gap import Gap
from engine.fill.loading import load
from engine.fill.syntax_fix import Site, by_strength, syntax_fix, touched_chars
from engine.models.base import PIECE
from engine.models.oracle.model import Case, Oracle
from engine.syntax.budget import Budget
from engine.syntax.compiler import diagnose
from engine.syntax.parsed_text import parse_text
from tests.engine.coder import open_model, rows_by_step, write_coder
from tests.engine.scripted import Scripted

WHOLE = "import os\n\n\ndef area(width, height):\n    return max(width * height, 1)\n\n\nprint(area(2, 3), os.sep)\n"


def fixed(broken: str, whole: str = WHOLE, language: str = "python", drafts: list[Draft] | None = None, **options):
    """The best fix by an oracle that knows the whole text; None where there is none."""
    model = Oracle("oracle", [Case(text=f"▮{whole}▮")])
    request = FillRequest(task="fix", **{"prefix": "", "old": broken, "suffix": "", "language": language, **options})
    filled = drive(model, answering(model, request), drafts.append if drafts is not None else None)
    return filled.candidates[0].text if filled.candidates else None


def is_sound(text: str, language: str = "python") -> bool:
    parsed = parse_text(text, language)
    assert parsed is not None
    return parsed.is_sound


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("height, 1)\n", "height, 1\n"),
        ("height, 1)\n", "height, 1))\n"),
        ("height):\n", "height)\n"),
        ("(2, 3)", "(2, 3"),
        ("return max", "return return max"),
    ],
)
def test_what_was_broken_is_whole_again(right: str, wrong: str):
    assert right in WHOLE
    assert fixed(WHOLE.replace(right, wrong, 1)) == WHOLE


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_stay(end: str):
    assert fixed(WHOLE.replace(", 1)", ", 1").replace("\n", end)) == WHOLE.replace("\n", end)


def test_characters_beyond_ascii_stay():
    whole = "face = '😋'\nprint(face)\n"
    assert fixed("face = '😋'\nprint(face\n", whole) == whole


def test_javascript_is_fixed():
    whole = "function f(a) {\n  return [1, a];\n}\n"
    assert fixed(whole.replace("]", ""), whole, "javascript") == whole


def test_several_errors_are_fixed_one_after_the_other():
    # Further apart than the oracle looks.
    whole = WHOLE.replace("print", "value = 1\n" * 40 + "print")
    text = fixed(whole.replace("height):", "height)").replace("os.sep)", "os.sep))"), whole)
    assert text is not None
    assert text.startswith(whole[: whole.index("print")])
    assert is_sound(text)


def test_only_what_is_asked_for_is_touched():
    broken = "x = (1\n\n\n\n\ny = f(2))\n"
    start = broken.index("y")
    text = fixed(broken[start:], "x = (1\n\n\n\n\ny = f(2)\n", prefix=broken[:start])
    assert text in (None, "y = f(2)\n")


def test_drafts_show_the_whole_text():
    drafts: list[Draft] = []
    fixed(WHOLE.replace("return", "return return"), drafts=drafts)
    assert drafts
    assert all(draft.text.startswith("import os\n") and draft.text.endswith("os.sep)\n") for draft in drafts)


TWICE = "def area(width, height):\n    return width * * height\n"


@pytest.mark.parametrize("says", ["* height", "\n    return width * height"])
def test_a_coder_writes_the_rest_of_a_broken_line(says: str):
    model = Scripted(says=says)
    request = FillRequest(task="fix", prefix="", old=TWICE, suffix="", language="python")
    filled = drive(model, answering(model, request))
    assert [each.text for each in filled.candidates] == [TWICE.replace("* *", "*")]


def test_a_coder_that_would_lose_a_word_fixes_nothing():
    model = Scripted(says="\n    return 1")
    request = FillRequest(task="fix", prefix="", old=TWICE, suffix="", language="python")
    assert drive(model, answering(model, request)).candidates == ()


def test_a_coder_that_knows_nothing_offers_nothing_broken(tmp_path: Path):
    model = open_model(write_coder(tmp_path / "tiny.gguf"))
    request = FillRequest(task="fix", prefix="", old=TWICE, suffix="", language="python")
    filled = drive(model, answering(model, request))
    assert all(is_sound(each.text) for each in filled.candidates)


def test_a_coder_reads_few_tokens_between_two_chances_to_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("engine.fill.prefill._QUICK_S", 0.0)
    model = open_model(write_coder(tmp_path / "tiny.gguf"))
    around = "".join(f"x{number} = {number} + {number}\n" for number in range(400))
    request = FillRequest(task="fix", prefix=around, old=TWICE, suffix=around, language="python")
    assert max(rows_by_step(model, request)) <= 2 * PIECE


@pytest.mark.parametrize(("text", "language"), [(WHOLE, "python"), ("x = (", "klingon"), ("", "python")])
def test_where_nothing_can_be_done_nothing_is_offered(text: str, language: str):
    assert fixed(text, language=language) is None


def test_an_edit_is_better_only_where_it_leaves_fewer_problems():
    broken = "x = (1\n\n\n\n\ny = 2)\n"
    start = parse_text(broken, "python")
    assert start is not None
    assert not start.is_sound
    better = start.edited(6, 6, ")", Budget())
    assert better is not None
    assert not better.is_sound
    assert start.edited(6, 6, "(", Budget()) is None
    assert start.edited(0, 0, "z = 1\n", Budget()) is None


@pytest.mark.parametrize("moved", ["        b()\n        c()\n", "# b()\n    c()\n", "    c()\n"])
def test_a_problem_that_is_only_pushed_down_is_not_mended(moved: str):
    broken = "def f():\n    try:\n        a()\n    b()\n    c()\n\n\ndef g():\n    return 2\n"
    span = broken.index("    b"), broken.index("\n\ndef g")
    start = parse_text(broken, "python")
    assert start is not None
    assert start.edited(*span, moved, Budget()) is None
    better = start.edited(*span, "    except ValueError:\n        pass\n", Budget())
    assert better is not None
    assert better.is_sound


def test_when_time_runs_out_the_best_fix_comes_first():
    seconds = 0.0

    def clock() -> float:
        nonlocal seconds
        seconds += 0.0001
        return seconds

    def slow(gap: Gap, site: Site) -> Generator[Step, Tensor, list[Alternative]]:
        nonlocal seconds
        seconds += 0.06
        yield from ()
        return [Alternative(text=gap.request.old.replace(";", end), likely=0.0) for end in (" ]);", "]);", "  ]);")]

    # More than one token is missing, so it takes a way.
    model = Oracle("oracle", [Case(text="▮f([1]);\ng([2]);\n▮")])
    request = FillRequest(
        task="fix", prefix="", old="f([1;\ng([2;\n", suffix="", language="javascript", n=3, deadline_ms=100
    )
    candidates = drive(model, syntax_fix(model, request, clock, [slow])).candidates
    assert candidates[0].text == "f([1]);\ng([2;\n"
    assert sum(candidate.confidence for candidate in candidates) == pytest.approx(1.0)


@pytest.fixture(scope="module")
def bundled():
    return load("bundled", "cpu").model


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "try:\n    a()\n\nb()\n\n"),
        ("json", '{"a": [1, 2, {"b": 3\n'),
        ("python", "def f():\n    try:\n        a()\n    b()\n    c()\n    return 1\n\ndef g():\n    return 2\n"),
    ],
)
def test_a_problem_on_an_empty_line_ends_in_what_parses_or_nothing(bundled, language: str, text: str):
    request = FillRequest(task="fix", prefix="", old=text, suffix="", language=language)
    filled = drive(bundled, answering(bundled, request))
    assert filled.forwards > 0
    assert all(is_sound(candidate.text, language) for candidate in filled.candidates)


def test_a_problem_before_the_text_that_is_asked_for_is_looked_for_in_it(bundled):
    whole = "let a = ;\nlet b = 1;\nlet c = ;\n"
    first, second, third = whole.splitlines(keepends=True)
    request = FillRequest(task="fix", prefix=first, old=second, suffix=third, language="javascript")
    filled = drive(bundled, answering(bundled, request))
    assert filled.forwards > 0
    assert all(candidate.text != second for candidate in filled.candidates)


@pytest.mark.parametrize(
    ("broken", "whole"),
    [
        ("def add(a, b)\n    return a + b\n", "def add(a, b):\n    return a + b\n"),
        ("def f(x):\n    return max(x, 1\n\n\ny = 1\n", "def f(x):\n    return max(x, 1)\n\n\ny = 1\n"),
    ],
)
def test_the_bundled_model_fixes_small_errors(bundled, broken: str, whole: str):
    request = FillRequest(task="fix", prefix="", old=broken, suffix="", language="python", n=3)
    candidates = drive(bundled, answering(bundled, request)).candidates
    assert whole in [candidate.text for candidate in candidates]
    assert sum(candidate.confidence for candidate in candidates) <= 1.0001
    for candidate in candidates:
        assert is_sound(candidate.text)


AREA = "def area(w, h):\n    return w * h\n\n\n"


def check_mended(bundled, marked: str, language: str = "python"):
    """`⟦x⟧` marks what was left out: with it, the text is as its author wanted it."""
    whole = marked.replace("⟦", "").replace("⟧", "")
    broken = re.sub("⟦.*?⟧", "", marked, flags=re.DOTALL)
    assert not is_sound(broken, language)
    request = FillRequest(task="fix", prefix="", old=broken, suffix="", language=language)
    candidates = drive(bundled, answering(bundled, request)).candidates
    assert [each.text for each in candidates] == [whole]


@pytest.mark.parametrize(
    "marked",
    [
        "def f(a, b):\n    return a\n\n\nprint(f(1, 2)⟦)⟧\n",
        AREA + "print(area(1, 2)⟦)⟧\n",
        AREA.replace("h):", "h⟦)⟧:"),
        "class B: ...\n\n\nclass A(B⟦)⟧:\n    x = 1\n",
        'print("hello⟦"⟧)\n',
        "if f(x⟦)⟧:\n    pass\n",
        "x = [1, 2⟦]⟧\ny = 3\n",
        "foo(\n    a,\n    b,\n⟦)⟧\nx = 2\n",
        "print⟦(⟧area(1, 2))\n",
        "x = {'a': 'b⟦'⟧, 'c': 'd'}\n",
        "x = [⟦'⟧ab', 'cd']\n",
        "try:\n    f()\nexcept⟦:⟧\n    pass\n",
        "x = {1: 2⟦,⟧ 3: 4}\n",
        "from os⟦ import⟧ path\n",
        "⟦import⟧ os\nprint(os.sep)\n",
        'def f():\n    """Doc.⟦"""⟧\n    return 1\n\n\ndef g():\n    """Doc of g."""\n    return 2\n',
        'def f():\n    """Doc.""⟦"⟧\n    return 1\n',
        'a = 1\nprint(f"{a⟦}⟧")\n',
        "a = {}\nprint(f'{a[1]⟦}⟧ b')\n",
        "s = 'it⟦\\⟧'s'\n",
    ],
)
def test_what_was_left_out_is_put_where_a_person_would(bundled, marked: str):
    check_mended(bundled, marked)


@pytest.mark.parametrize(
    ("language", "marked"),
    [
        ("javascript", "function f(a) {\n  if (a⟦)⟧ {\n    g(a);\n  }\n}\n"),
        ("javascript", "function f(a) {\n  if (a) {\n    g(a);\n  ⟦}⟧\n}\n\nfunction g(b) {\n  return b;\n}\n"),
        ("typescript", "const a: string[] = ['x', ⟦'⟧y'];\n"),
        ("go", 'package a\n\nfunc f() {\n\tg(1, "a⟦"⟧)\n}\n'),
        ("rust", "fn f() -> i32 {\n    g(h(1), 2⟦)⟧\n}\n"),
        ("java", "class A {\n    int f() {\n        return g(1, h(2)⟦)⟧;\n    }\n}\n"),
        ("c", "int f(int a) {\n    return g(a[1⟦]⟧);\n}\n"),
        ("bash", "if true; then\n  echo a\n⟦fi⟧\n"),
        ("bash", "for x in a b; do\n  echo $x\n⟦done⟧\n"),
        ("lua", "local function f()\n  return 1\n⟦end⟧\n"),
        ("ruby", "def f\n  1\n⟦end⟧\n"),
        ("ruby", "def f\n  1\n⟦end\n⟧"),
        ("javascript", "if (a) {\n  b();\n⟦}\n⟧"),
        ("javascript", "const a = `b ${c⟦}⟧ d`;\n"),
        ("css", "a {\n  color: red;\n⟦}⟧\n\nb {\n  color: blue;\n}\n"),
        ("css", "a { color: red⟦}⟧\nb { color: blue; }\n"),
        ("bash", 'echo "a⟦"⟧\n'),
        ("bash", "echo 'a⟦'⟧\necho b\n"),
        ("bash", 'echo "a b⟦"⟧\necho "c"\n'),
        ("bash", 'a=$(basename "$0"⟦)⟧\necho "$a"\n'),
        ("bash", 'echo "${a⟦}⟧"\n'),
        ("bash", "if [ $a = 1 ]⟦; then⟧\n  echo 1\nfi\n"),
        ("bash", "for a in b c⟦; do⟧\n  echo $a\ndone\n"),
        ("yaml", 'a: "b⟦"⟧\nc: 1\n'),
        ("yaml", "a: [1, 2⟦]⟧\nc: 1\n"),
        ("html", '<a href="b⟦"⟧>c</a>\n'),
    ],
)
def test_other_languages(bundled, language: str, marked: str):
    check_mended(bundled, marked, language)


@pytest.mark.parametrize(
    ("broken", "fixes"),
    [
        ("print 'x'\n", ["print('x')\n"]),
        ("print'x' % y\n", ["print('x' % y)\n"]),
        ("if a: print b, 'c'  # d\n", ["if a: print(b, 'c')  # d\n"]),
        ("print 'a'\nprint not b\nprint 'c'; print 'd'\n", ["print('a')\nprint(not b)\nprint('c'); print('d')\n"]),
        ("print 'a' % (b,\n    c)\nd = 1\n", ["print('a' % (b,\n    c))\nd = 1\n"]),
        ("print 'x',\n", []),
        ("exec 'x'\n", ["exec('x')\n"]),
        ("exec 'x' in d\n", []),
        ("try:\n    f()\nexcept E, e:\n    pass\n", ["try:\n    f()\nexcept E as e:\n    pass\n"]),
        ("try:\n    f()\nexcept E, F:\n    pass\n", ["try:\n    f()\nexcept (E, F):\n    pass\n"]),
        ("raise E, 'x'\n", ["raise E('x')\n"]),
        ("raise E, 'x', y\n", []),
        ("x = `y`\n", ["x = repr(y)\n"]),
        ("if x <> y:\n    pass\n", ["if x != y:\n    pass\n"]),
        ("x = 0777\n", ["x = 0o777\n"]),
        ("x = 10L\n", ["x = 10\n"]),
        ("x = ur'a'\n", []),
        ("def f((a, b)):\n    return a\n", []),
    ],
)
def test_python_2_comes_out_as_what_says_the_same_or_stays(bundled, broken: str, fixes: list[str]):
    request = FillRequest(task="fix", prefix="", old=broken, suffix="", language="python", n=10)
    assert [each.text for each in drive(bundled, answering(bundled, request)).candidates] == fixes


@pytest.mark.parametrize("broken", ["return = 5\n", "def f(x):\n    yield = x\n"])
def test_no_word_is_cut_in_two_by_a_mark(bundled, broken: str):
    request = FillRequest(task="fix", prefix="", old=broken, suffix="", language="python", n=10)
    candidates = drive(bundled, answering(bundled, request)).candidates
    assert not any(re.search(r"\w[:,]\w", each.text) for each in candidates)


@pytest.mark.parametrize("broken", ["def area(w, h:\n    return w * h\n", "def f(a b):\n    pass\n", "f(a=1, b=2\n"])
def test_nothing_is_offered_that_the_compiler_refuses(bundled, broken: str):
    request = FillRequest(task="fix", prefix="", old=broken, suffix="", language="python", n=10)
    candidates = drive(bundled, answering(bundled, request)).candidates
    assert candidates
    assert [diagnose(each.text) for each in candidates] == [None] * len(candidates)


def test_what_the_compiler_says_of_other_statements_stands_in_no_way(bundled):
    request = FillRequest(task="fix", prefix="", old="return 1\n\nprint(1, 2\n", suffix="", language="python")
    assert drive(bundled, answering(bundled, request)).candidates[0].text == "return 1\n\nprint(1, 2)\n"


def test_starting_from_noise_is_another_way(bundled):
    request = FillRequest(task="fix", prefix="", old="x = f(1\ny = 2\n", suffix="", language="python")
    candidates = drive(bundled, syntax_fix(bundled, request, ways=[partial(by_strength, 1.0)])).candidates
    assert candidates
    assert all(is_sound(candidate.text) for candidate in candidates)


def test_touched_characters_are_those_between_what_is_the_same():
    assert touched_chars("f(1)", "f(1)") == 0
    assert touched_chars("f(1", "f(1)") == 1
    assert touched_chars("abcd", "axyd") == 4
