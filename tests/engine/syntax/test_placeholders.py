"""Where something is still to be written. `▮` is the cursor, then the place."""

import time

import pytest

from engine.syntax.placeholders import indent_unit, placeholder_at


def filled_in(marked: str, language: str = "python") -> str | None:
    """The text with `▮` where something is to be filled in."""
    text, cursor = marked.replace("▮", ""), marked.index("▮")
    blank = placeholder_at(text, cursor, language)
    return blank and text[: blank.start] + blank.before + "▮" + blank.after + text[blank.end :]


@pytest.mark.parametrize(
    ("marked", "filled"),
    [
        ("def f(x):▮\n\nprint(1)\n", "def f(x):\n    ▮\n\nprint(1)\n"),
        ("def f(x▮):\n\nprint(1)\n", "def f(x):\n    ▮\n\nprint(1)\n"),
        ("def f(x):\n    ▮\n\nprint(1)\n", "def f(x):\n    ▮\n\nprint(1)\n"),
        ("def f(x):\r\n▮\r\nprint(1)\r\n", "def f(x):\r\n    ▮\r\nprint(1)\r\n"),
        ("def f(\n    a,\n):▮\n", "def f(\n    a,\n):\n    ▮\n"),
        ("if x:\n\ta()\nelse:▮\nb = 1\n", "if x:\n\ta()\nelse:\n\t▮\nb = 1\n"),
        ("try:\n  a()\nexcept E as e:▮\n", "try:\n  a()\nexcept E as e:\n  ▮\n"),
        ("def f(x):\n    pa▮ss\n", "def f(x):\n    ▮\n"),
        ("def f(x):\n    '''Do it.'''\n    ...▮\n", "def f(x):\n    '''Do it.'''\n    ▮\n"),
        ("class A: ...▮\n", "class A:\n    ▮\n"),
        ("def f():\n    # TODO: add them▮\n    pass\n", "def f():\n    # TODO: add them\n    ▮\n    pass\n"),
        ("face = '😋'; x = f(▮)\n", "face = '😋'; x = f(▮)\n"),
        ("x = f(g▮( ))\n", "x = f(g(▮))\n"),
    ],
)
def test_in_python(marked: str, filled: str):
    assert filled_in(marked) == filled


@pytest.mark.parametrize(
    ("marked", "filled", "language"),
    [
        ("function f(a) {▮}\n", "function f(a) {\n  ▮\n}\n", "javascript"),
        ("const f = (a) => { ▮ };\n", "const f = (a) => {\n  ▮\n};\n", "javascript"),
        (
            "  try {\n    a();\n  } catch (e) {\n▮\n  }\n",
            "  try {\n    a();\n  } catch (e) {\n    ▮\n  }\n",
            "typescript",
        ),
        ("if (a) {\n\tb();\n} else {▮}\n", "if (a) {\n\tb();\n} else {\n\t▮\n}\n", "c"),
        ("fn f() {\n    todo!()▮\n}\n", "fn f() {\n    ▮\n}\n", "rust"),
        ("func f() {\n\t// TODO▮\n}\n", "func f() {\n\t// TODO\n\t▮\n}\n", "go"),
    ],
)
def test_in_languages_with_braces(marked: str, filled: str, language: str):
    assert filled_in(marked, language) == filled


@pytest.mark.parametrize(
    ("marked", "language"),
    [
        ("x = 1▮\n", "python"),
        ("s = 'pass▮'\n", "python"),
        ("s = 'f(▮)'\n", "python"),
        ("def f(▮):\n    return 1\n", "python"),
        ("def f():▮\n    return 1\n", "python"),
        ("x = {'a':▮ 1}\n", "python"),
        ("passed = 1▮\n", "python"),
        ("const o = {▮};\n", "javascript"),
        ("function f(▮) { return 1; }\n", "javascript"),
        ("if (▮) { return 1; }\n", "javascript"),
        ("▮", "python"),
        ("▮", "klingon"),
    ],
)
def test_where_nothing_is_missing(marked: str, language: str):
    assert filled_in(marked, language) is None


def test_a_text_says_by_how_much_it_indents():
    assert indent_unit("a:\n\tb\n", "  ") == "\t"
    assert indent_unit("a:\n   b\n", "  ") == "   "
    assert indent_unit("a\nb\n", "  ") == "  "


def test_closers_without_openers_cost_no_more_than_other_lines():
    text = "a)\n" * 8000 + "b):\n"
    began = time.process_time()
    assert placeholder_at(text, len(text), "python") is not None
    assert time.process_time() - began < 3
