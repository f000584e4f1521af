import io
import re
import time

from rich.console import Console

from engine.cli.watch import Watch, frame
from engine.common.marked import gap_at_markers
from engine.common.request import Cell, Draft

GAP = gap_at_markers("def f():\n    x = ▮\n")
CELLS = (
    Cell(text="on\ne", state="noise"),
    Cell(text="two", state="accepted"),
    Cell(text="\n", state="pinned"),
)


def draft(step: int) -> Draft:
    return Draft(step=step, text="two", cells=CELLS)


def test_noise_accepted_and_pinned_have_colours_of_their_own():
    console = Console(force_terminal=True, color_system="standard", width=80)
    with console.capture() as capture:
        console.print(frame("    x = ", draft(3)))
    shown = capture.get()
    assert "\x1b[2;35mon⏎e\x1b[0m" in shown
    assert "\x1b[1;32mtwo\x1b[0m" in shown
    assert "\x1b[36m" in shown
    assert "step 3" in shown


def test_noise_that_has_no_text_keeps_its_place():
    cells = (Cell(text="", state="noise"), Cell(text="", state="accepted"), Cell(text="x", state="accepted"))
    assert frame("", Draft(step=0, text="x", cells=cells)).plain.startswith("▒x\n")


def test_each_canvas_is_a_line_where_there_is_no_terminal():
    shown = io.StringIO()
    with Watch(GAP, Console(file=shown, width=80)) as watch:
        watch.show(draft(0))
        watch.show(draft(1))
    assert shown.getvalue() == "step   0  ▒two⏎\nstep   1  ▒two⏎\n"


def test_a_terminal_shows_every_canvas_and_is_left_clean():
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, color_system="standard", width=80, legacy_windows=False)
    with Watch(GAP, console, frame_s=0.0) as watch:
        for step in range(5):
            watch.show(draft(step))
    steps = re.findall(r"step (\d)", shown.getvalue())
    assert list(dict.fromkeys(steps)) == list("01234")
    assert shown.getvalue().endswith("\x1b[1A\x1b[2K")


def test_watching_does_not_hold_up_the_fill():
    console = Console(force_terminal=True, width=80, quiet=True)
    began = time.perf_counter()
    with Watch(GAP, console, frame_s=0.05) as watch:
        for step in range(10):
            watch.show(draft(step))
        shown_ms = (time.perf_counter() - began) * 1000
    assert shown_ms < 250
    assert time.perf_counter() - began >= 0.5
