"""What typing costs the syntax check, on files small enough for a test."""

from engine.lab.bench.timing import Stopwatch
from tests.engine.lab.bench.syntax_keystroke import SYNTAX, syntax_keystroke


def test_each_way_is_measured_at_each_size():
    figures, (ratio,) = syntax_keystroke(Stopwatch(repetitions=3, limit_s=1), lines=(50, 400))
    assert {figure.part for figure in figures} == {SYNTAX}
    assert [(figure.at, figure.name) for figure in figures] == [
        (at, name) for at in (50, 400) for name in ("tree edited", "parsed anew", "tree and verdict")
    ]
    assert ratio.value > 1
