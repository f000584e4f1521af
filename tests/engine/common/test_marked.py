import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.common.errors import BadInput
from engine.common.marked import Position, gap_at_markers, gap_between, parse_position
from engine.common.newlines import dominant_line_end, with_line_ends

texts = st.text(alphabet=st.sampled_from("ab \t\n\r😋é\u2028"), max_size=40)


def check_position(marked: str, at: str) -> None:
    """`at` names the place of the one marker in `marked`."""
    expected = gap_at_markers(marked)
    assert gap_between(marked.replace("▮", ""), parse_position(at)) == expected


@pytest.mark.parametrize(
    ("marked", "at"),
    [
        ("▮", "1:1"),
        ("▮a", "1:1"),
        ("a▮", "1:2"),
        ("a\n▮", "2:1"),
        ("a\n▮\nb", "2:1"),
        ("x = '😋' + ▮y\n", "1:11"),
        ("a\r\nbc▮\r\nd", "2:3"),
        ("a\rb▮\rc", "2:2"),
        ("\n\r\n\r▮z", "4:1"),
        ("\tif▮", "1:4"),
        ("one\u2028two▮", "1:8"),
        ("form\x0cfeed▮", "1:10"),
        ("e\u0301▮", "1:3"),
    ],
)
def test_a_position_counts_lines_and_characters_from_one(marked: str, at: str):
    check_position(marked, at)


def test_a_span_is_replaced():
    gap = gap_between("a = bad\nb", Position(line=1, column=5), Position(line=1, column=8))
    assert (gap.prefix, gap.old, gap.suffix) == ("a = ", "bad", "\nb")


def test_two_markers_hold_the_text_to_replace():
    gap = gap_at_markers("a = ▮bad▮\n")
    assert (gap.prefix, gap.old, gap.suffix) == ("a = ", "bad", "\n")


@pytest.mark.parametrize(
    ("text", "at", "to", "message"),
    [
        ("a\nb", "3:1", None, "Line 3 is outside the text, whose last line is 2."),
        ("a\nb", "1:3", None, "Column 3 is outside line 1, whose end is column 2."),
        ("a\r\nb", "1:3", None, "Column 3 is outside line 1, whose end is column 2."),
        ("", "1:2", None, "Column 2 is outside line 1, whose end is column 1."),
        ("a\nb", "2:1", "1:1", "The span ends at 1:1, before it starts at 2:1: swap the two."),
        ("a\nb", "1:1", "9:1", "Line 9 is outside the text, whose last line is 2."),
    ],
)
def test_a_position_outside_says_where_the_text_ends(text: str, at: str, to: str | None, message: str):
    with pytest.raises(BadInput) as error:
        gap_between(text, parse_position(at), None if to is None else parse_position(to))
    assert str(error.value) == message


@pytest.mark.parametrize("text", ["", "3", "3:", ":3", "0:1", "1:0", "a:b", "1:2:3", "-1:2", "١:١", "9" * 5000 + ":1"])
def test_what_is_no_position_is_refused(text: str):
    with pytest.raises(BadInput, match="is not a position"):
        parse_position(text)


def test_leading_zeros_change_nothing():
    assert parse_position("007:010") == Position(line=7, column=10)


@pytest.mark.parametrize(
    ("text", "message"), [("nothing", "has no ▮"), ("▮a▮b▮", "has 3 ▮ markers"), ("▮" * 4, "has 4 ▮")]
)
def test_no_marker_or_too_many_are_refused(text: str, message: str):
    with pytest.raises(BadInput, match=message):
        gap_at_markers(text)


@given(texts, texts, texts)
@example("", "", "")
def test_markers_cut_a_text_without_loss(prefix: str, old: str, suffix: str):
    gap = gap_at_markers(f"{prefix}▮{old}▮{suffix}")
    assert (gap.prefix, gap.old, gap.suffix) == (prefix, old, suffix)


@given(texts, st.integers(min_value=0, max_value=40))
def test_every_offset_outside_a_line_end_has_one_position(text: str, offset: int):
    offset = min(offset, len(text))
    if text[offset - 1 : offset + 1] == "\r\n":
        return
    before = text[:offset].replace("\r\n", "\n").replace("\r", "\n").split("\n")
    gap = gap_between(text, Position(line=len(before), column=len(before[-1]) + 1))
    assert len(gap.prefix) == offset


@pytest.mark.parametrize(
    ("text", "line_end"), [("", "\n"), ("a\n", "\n"), ("a\r\nb\r\nc\n", "\r\n"), ("a\rb\rc\n", "\r"), ("\r\n\n", "\n")]
)
def test_the_most_used_line_end_is_the_files(text: str, line_end: str):
    assert dominant_line_end(text) == line_end


def test_line_ends_are_replaced_once():
    assert with_line_ends("a\nb\r\nc\rd", "\r\n") == "a\r\nb\r\nc\r\nd"
