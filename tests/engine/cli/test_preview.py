from msgspec.structs import replace
from rich.console import Console

from engine.cli.preview import figures, preview, visible
from engine.common.marked import gap_at_markers
from engine.common.request import Candidate, Filled, Timings


def plain(marked: str, filled: str) -> str:
    return preview(gap_at_markers(marked), filled, marked=True).plain


def test_lines_around_the_gap_are_numbered_and_the_filled_ones_marked():
    assert plain("a\nb\nc\nd\nreturn ▮\nf\ng\nh\ni\n", "e") == (
        "2   b\n3   c\n4   d\n5 ▌ return ▮e▮\n6   f\n7   g\n8   h"
    )


def test_a_fill_of_several_lines_is_marked_whole():
    assert plain("if x:▮\nz", "\n  y\n  y") == "1 ▌ if x:▮\n2 ▌   y\n3 ▌   y▮\n4   z"


def test_the_ends_of_a_text_need_no_lines_around():
    assert plain("▮", "x = 1\n") == "1 ▌ ▮x = 1\n2 ▌ ▮"


def test_an_empty_fill_leaves_the_text():
    assert plain("a▮b", "") == "1 ▌ a▮▮b"


def test_every_line_end_is_one():
    assert plain("a\r\nb\r▮\r\nd", "c\r\nC") == "1   a\n2   b\n3 ▌ ▮c\n4 ▌ C▮\n5   d"


def test_long_lines_are_cut_away_from_the_gap():
    shown = plain(f"{'p' * 500}▮{'s' * 500}", "MID")
    assert shown == f"1 ▌ …{'p' * 300}▮MID▮{'s' * 300}…"


def test_colours_replace_the_markers():
    console = Console(force_terminal=True, color_system="standard", width=80)
    with console.capture() as capture:
        console.print(preview(gap_at_markers("x = ▮\n"), "1", marked=False))
    assert "x = \x1b[1;32m1\x1b[0m" in capture.get()


def test_control_characters_can_not_reach_the_terminal():
    assert visible("\x1b[2J\tbell\x07\x7f\x9b\n") == "␛[2J\tbell␇␡␛\n"
    # A title, and what a program may put into the clipboard.
    assert visible("\x9d0;mine\x9c \x90q\x85") == "␛0;mine␛ ␛q␛"


def test_figures_fit_a_narrow_terminal():
    candidate = Candidate(text="x", tokens=3, confidence=0.914, score=-0.2)
    ms = Timings(load=800.4, encode=3.6, denoise=41.2, total=846.1)
    filled = Filled(model="m", device="cpu", candidates=(candidate,), width=16, steps=4, forwards=5, ms=ms)
    assert figures(filled).plain == (
        "m · cpu · 3 tokens in a gap of 16 · confidence 0.91 · 4 steps, 5 forward passes\n"
        "load 800 + encode 4 + denoise 41 = 846 ms"
    )
    one = replace(filled, candidates=(replace(candidate, tokens=1),), steps=1, forwards=1)
    assert "1 token in a gap of 16" in figures(one).plain
    assert "1 step, 1 forward pass" in figures(one).plain
    none = replace(filled, candidates=(), model="m" * 70)
    assert "no answer: the time was up" in figures(none, why="the time was up").plain
    assert max(map(len, figures(none, "by the engine").plain.splitlines())) <= 80
