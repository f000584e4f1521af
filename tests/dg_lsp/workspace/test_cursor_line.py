"""A gap in its line, and the lines around it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dg_lsp.workspace.cursor_line import CursorLine


def of(marked: str) -> CursorLine:
    return CursorLine.of(marked.replace("▮", ""), marked.index("▮"))


@pytest.mark.parametrize(
    ("marked", "around"),
    [
        ("a\n  b\n\n  x ▮y\n \t\n  c\nd", ("  b", "  x ", "y", "  c", False)),
        ("▮", ("", "", "", "", False)),
        ("\n\n▮\n\n", ("", "", "", "", False)),
        ("a\n▮  b\nc", ("a", "", "", "  b", True)),
    ],
)
def test_lines_around_are_the_nearest_that_are_not_blank(marked: str, around: tuple[object, ...]):
    gap = of(marked)
    assert (gap.above, gap.head, gap.tail, gap.below, gap.is_line) == around


@given(st.text("ab \t\n", max_size=40), st.text("ab \t\n", max_size=40))
def test_they_are_what_splitting_finds(prefix: str, suffix: str):
    gap = CursorLine.of(prefix + suffix, len(prefix))
    above = [line for line in prefix.split("\n")[:-1] if line.strip()]
    below = [line for line in suffix.split("\n")[0 if gap.is_line else 1 :] if line.strip()]
    assert gap.above.rstrip() == (above or [""])[-1].rstrip()
    assert gap.below == (below or [""])[0]


@pytest.mark.parametrize(
    ("marked", "line", "rest"),
    [
        ("▮", "a b", "a b"),
        ("  a▮", "a b", " b"),
        ("  a ▮", "a b", "b"),
        ("a ▮ c", "a b c", "b "),
        ("a▮", "b", ""),
        ("a b▮", "a b", ""),
        ("a▮a", "a", ""),
    ],
)
def test_what_is_missing_of_a_line(marked: str, line: str, rest: str):
    assert of(marked).rest(line) == rest
