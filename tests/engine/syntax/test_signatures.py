"""What calls have to become after a parameter came or went."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.syntax.signatures import calls_to_change
from engine.syntax.tree import parsed


def changed(marked: str, language: str = "python") -> str:
    """A text in which `▮old⇢new▮` is edited, with what follows from it."""
    before, edit, behind = marked.split("▮")
    old, new = edit.split("⇢")
    text = before + new + behind
    trees = [parsed(before + each + behind, language) for each in (old, new)]
    was, now = trees
    assert was
    assert now
    # As an editor's history has it, whole lines are known to have changed.
    for each in sorted(calls_to_change(was, now, before.rfind("\n") + 1), key=lambda each: -each.start):
        text = text[: each.start] + each.new + text[each.end :]
    return text.removeprefix(before + new)


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        (
            "def f(a▮⇢, b▮):\n    pass\n\n\ndef g(b):\n    f('😋') + f(\n        1\n    )\n",
            "f('😋', b) + f(\n        1, b\n    )",
        ),
        ("def f(▮⇢b▮):\n    pass\n\n\ndef g(b):\n    f()\n", "f(b)\n"),
        ("def f(▮⇢b, ▮a):\n    pass\n\n\ndef g(b):\n    f(1)\n", "f(b, 1)\n"),
        ("def f(a▮⇢, b: int▮, c=1):\n    pass\n\n\ndef g(b):\n    f(1, c=2)\n", "f(1, b, c=2)\n"),
        ("b = 2\n\n\ndef f(a▮⇢, b▮):\n    pass\n\n\nf(1)\n", "f(1, b)\n"),
        ("def f(a▮, b⇢▮):\n    pass\n\n\nf(1, 2)\n", "f(1)\n"),
        ("def f(▮a, ⇢▮b):\n    pass\n\n\nf(1, f(2, 3))\n", "f(f(3))\n"),
        ("def f(a▮, b⇢▮):\n    pass\n\n\nf(1, f(2, 3))\n", "\nf(1)\n"),
        ("def f(a▮, b=1⇢▮):\n    pass\n\n\nf(1, b=2)\nf(b='😋', a=1)\n", "f(1)\nf(a=1)\n"),
        (
            "class A:\n    def f(self, a▮, b⇢▮):\n        pass\n\n\nself.f(1, 2)\nsuper().f(3, 4)\n",
            "self.f(1)\nsuper().f(3)\n",
        ),
        ("class A:\n    def __init__(self, a▮, b⇢▮):\n        pass\n\n\nx = m.A(1, 2)\n", "x = m.A(1)\n"),
    ],
)
def test_a_call_follows(marked: str, expected: str):
    assert expected in changed(marked)


@pytest.mark.parametrize(
    "marked",
    [
        # What would have to be made up, or need not be there.
        "def f(a▮⇢, b▮):\n    pass\n\n\ndef g(c):\n    f(1)\n",
        "def f(a▮⇢, b=1▮):\n    pass\n\n\ndef g(b):\n    f(1)\n",
        "def f(a▮⇢, *b▮):\n    pass\n\n\ndef g(b):\n    f(1)\n",
        # What is there.
        "def f(a▮⇢, b▮):\n    pass\n\n\ndef g(b):\n    f(1, b)\n    f(1, b=b)\n",
        "def f(a▮, b⇢▮):\n    pass\n\n\nf(1)\n",
        # What might be another's.
        "def f(a▮, b⇢▮):\n    pass\n\n\nx.f(1, 2)\n",
        "class A:\n    def f(self, a▮, b⇢▮):\n        pass\n\n\nf(1, 2)\nx.f(1, 2)\nx().f(1, 2)\n",
        "def f(a▮, b⇢▮):\n    pass\n\n\ndef f(a, b):\n    pass\n\n\nf(1, 2)\n",
        "from m import f\n\n\ndef f(a▮, b⇢▮):\n    pass\n\n\nf(1, 2)\n",
        # What nobody can tell.
        "def f(a▮, b⇢▮):\n    pass\n\n\nf(*c, 2)\nf(1, **c)\n# f(1, 2)\n'f(1, 2)'\n",
        "def f(▮a, b⇢b, a▮):\n    pass\n\n\nf(1, 2)\n",
        "def f(▮a, b⇢c▮):\n    pass\n\n\nf(1, 2)\n",
        "def f(a):\n    return ▮b, c⇢b▮\n\n\nf(1)\n",
    ],
)
def test_a_call_stays(marked: str):
    assert changed(marked) == marked.split("▮")[2]


@pytest.mark.parametrize(
    ("language", "marked"),
    [
        ("ruby", "def f?(a▮, b⇢▮)\nend\nf?(1, 2)\n"),
        ("javascript", "class A { ['('](a▮, b⇢▮) { this.x(1, 2); } }\n"),
        ("javascript", "(function (a▮, b⇢▮) {})(1, 2);\n"),
        ("cpp", "int operator+(A a▮, A b⇢▮) { return f(1, 2); }\n"),
        ("json", "[1▮, 2⇢▮]\n"),
        ("python", "▮⇢def f(a): pass▮\nf(1, 2)\n"),
    ],
)
def test_what_has_no_name_to_call_leads_nowhere(language: str, marked: str):
    assert changed(marked, language) == marked.split("▮")[2]


@pytest.mark.processor_s(10)
def test_a_long_word_takes_no_time():
    rest = f"):\n    pass\n\n\n{'a' * 200_000} = 1\nf(1, 2)\n"
    assert changed(f"def f(a▮, b⇢▮{rest}").endswith("f(1)\n")


@pytest.mark.parametrize(
    ("language", "marked", "expected"),
    [
        ("javascript", "const f = (a▮⇢, b▮) => 1;\nfunction g(b) { return f(1) + x.f(1); }\n", "f(1, b) + x.f(1)"),
        ("typescript", "class A { m(a: number▮, b: string⇢▮) { this.m(1, '😋'); m(1, 2); } }\n", "this.m(1); m(1, 2)"),
        ("typescript", "class A { constructor(▮private a: A, ⇢▮b: A) {} }\nnew A(1, 2);\n", "new A(2)"),
        ("rust", "impl A { fn f(&self, ▮mut a: i32, ⇢▮b: i32) {} }\nfn g(x: A) { self.f(1, 2); }\n", "self.f(2)"),
        ("go", "package m\nfunc (r *R) F(a int▮, b int⇢▮) { r.F(1, 2) }\n", "r.F(1)"),
        ("java", "class A { void f(int a▮, int b⇢▮) { this.f(1, 2); f(3, 4); } }\n", "this.f(1); f(3)"),
        ("csharp", "class A { void F(int a▮, int b⇢▮) { this.F(1, 2); F(b: 4, a: 3); } }\n", "this.F(1); F(a: 3)"),
        ("ruby", "def f(a▮, b⇢▮)\nend\nf(1, 2)\n", "f(1)"),
        ("php", "<?php class A { function f($a▮, $b⇢▮) { $this->f($a, 2); } }\n", "$this->f($a)"),
    ],
)
def test_calls_follow_elsewhere(language: str, marked: str, expected: str):
    assert expected in changed(marked, language)


ARGUMENTS = ("1", "'😋, b'", "g(1, 2)", "[x, y]", "x if y else (3, 4)", "lambda x, y: x")


@given(st.lists(st.lists(st.sampled_from(ARGUMENTS), min_size=4, max_size=4), min_size=1, max_size=5), st.data())
def test_each_call_becomes_what_it_has_to_and_nothing_else_changes(calls: list[list[str]], data: st.DataObject):
    count = data.draw(st.integers(2, 4))
    place = data.draw(st.integers(0, count - 1))
    names = [f"a{at}" for at in range(count)]
    fewer = names[:place] + names[place + 1 :]
    begin = data.draw(
        st.sampled_from(["    f({})\n", "    x = [f({}), '😋']\n", "    f(  # f(1)\n        {}\n    )\n"])
    )

    def text(parameters: list[str], without: int | None, known: str = "") -> tuple[str, str]:
        given_ = [[each for at, each in enumerate(call[:count]) if at != without] for call in calls]
        lines = [begin.format(", ".join(each)) for each in given_]
        return f"def f({', '.join(parameters)}):\n", f"    pass\n\n\ndef h({known}):\n{''.join(lines)}"

    (old, many), (new, few) = text(names, None), text(fewer, place)
    assert changed(f"▮{old}⇢{new}▮{many}") == few
    # The other way round each gets the name of what came.
    calls = [[*call[:place], names[place], *call[place + 1 :]] for call in calls]
    (old, few), (new, many) = text(fewer, place, names[place]), text(names, None, names[place])
    assert changed(f"▮{old}⇢{new}▮{few}") == many
