"""What a fill says that the text after its gap says again. `▮` is the gap."""

import pytest

from engine.syntax.overlap import repeats_lines, without_end, without_ends, without_lines


@pytest.mark.parametrize(
    ("marked", "fill", "expected"),
    [
        ("x = ▮\nreturn x\n", "1\nreturn x", "1"),
        ("x = ▮\nreturn x\n", "1\nreturn x\n", "1"),
        ("x = ▮\n\n\nreturn x\n", "1\nreturn x", "1"),
        ("x = ▮ + other\n", "1 + other", "1"),
        ("▮\n\ndef g():\n    pass\n", "def f():\n    pass\n\ndef g():\n    pass", "def f():\n    pass"),
        ("<p>▮</p>\n", "text</p>", "text"),
        ("x = ▮\ny = 1\n", "1\nz = 1", "1\nz = 1"),
        ("x = [0▮, 0]\n", ", 0", ", 0"),
        ("x = ▮1\n", "11", "11"),
        ("x = 1▮000\n", "000", "000"),
        ("if a:\n    ▮\n    return x\n", "if b:\n        return x", "if b:\n        return x"),
        ("if a▮\nend\n", "\n  b\nend", "\n  b\nend"),
    ],
)
def test_lines_that_follow_are_not_said_again(marked, fill, expected):
    before, after = marked.split("▮")
    assert without_lines(before, fill, after) == expected
    assert repeats_lines(fill, after) == (without_lines("", fill, after) != fill)


@pytest.mark.parametrize(
    ("marked", "fill", "expected"),
    [
        ("async (name▮> {", ") => ", [") ="]),
        ("Array<▮>", "T>", ["T"]),
        ("print('▮')", "a')", ["a"]),
        ("{{ ▮ }}", "name }}", ["name", "name }"]),
        ("f(▮ )", "a)", ["a"]),
        ("a▮b", "ab", []),
        ("a ▮b c", "a b", ["a "]),
        ("a▮\nb c\n", "a\nb", []),
        ("a▮\n", "b", []),
    ],
)
def test_ends_that_the_text_after_a_gap_begins_with(marked, fill, expected):
    before, after = marked.split("▮")
    assert list(without_ends(before, fill, after, blanks=True)) == expected


@pytest.mark.parametrize(
    ("marked", "fill", "expected"),
    [
        ("<li>{{ ▮ }}</li>", "item.name }}", "item.name"),
        ("<li>{{▮}}</li>", "item.name}}", "item.name"),
        ("{% if ▮ %}", "a %}", "a"),
        ("if x▮:", " > 1:", " > 1"),
        ("x = ▮;", "1;", "1"),
        ("Hello▮.", " world.", " world"),
        ("the ▮ dog", "quick dog", "quick"),
        ("val x = foo(▮)", "a, b)", "a, b"),
        ("val x = foo([▮])", "a, b])", "a, b"),
        ('say "▮"', 'hi"', "hi"),
        ("a:\n  ▮\n  c: 1\n", "b: 2\n  c: 1", "b: 2"),
        # What would be missing stays.
        ("foo(bar(▮)", "a)", "a)"),
        ("(a\n  (b\n    c▮)\n", ")", ")"),
        ("a =▮= b", "=", "="),
        ("wait.▮.", ".", "."),
        ("boo▮keeper", "k", "k"),
        ("v.split(▮)", "/[)]/", "/[)]/"),
        ("y=$(▮)", "case $z in a) echo 1;; esac", "case $z in a) echo 1;; esac"),
        ("say ▮", "hi", "hi"),
        ("the user▮'s name", " doesn't know the other", " doesn't know the other"),
        ("my ▮\nworld is round\n", "small world", "small world"),
        ("m: Map<K, ▮> = x", "() -> V", "() -> V"),
    ],
)
def test_without_a_grammar_the_end_that_follows_is_not_said_again(marked, fill, expected):
    before, after = marked.split("▮")
    assert without_end(before, fill, after) == expected
