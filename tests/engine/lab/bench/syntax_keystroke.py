"""What checking the syntax costs at a keystroke in a large file: the tree edited or parsed anew, and a verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from engine.lab.bench.timing import Figure, Ratio, Stopwatch
from engine.syntax.budget import Budget
from engine.syntax.tree import Trees, parsed
from engine.syntax.validator import Validator

SYNTAX = "syntax"
LINES = (1_000, 20_000)
"""Of the file that is typed in."""
_FUNCTION = "def f(a, b=1):\n    if a > b:\n        return [a, 'text', {b: 2}]\n    return a\n\n"
_BUDGET_MS = 10_000.0


def syntax_keystroke(watch: Stopwatch, lines: Sequence[int] = LINES) -> tuple[list[Figure], list[Ratio]]:
    """Typing in the middle of Python files so many lines long; nothing of it depends on a model."""
    figures = [figure for count_ in lines for figure in _at(watch, count_)]
    times = {(figure.name, figure.at): figure.spread.median for figure in figures}
    most = max(lines)
    ratio = times["parsed anew", most] / times["tree edited", most]
    return figures, [Ratio(name=f"parsing anew by editing, {most} lines", value=ratio, aim=">= 4")]


def _at(watch: Stopwatch, lines: int) -> list[Figure]:
    half = _FUNCTION * (lines // 10)
    before, after = half + "def g(a):\n    value = ", "\n    return value\n\n\n" + half
    trees = Trees()
    documents = (f"{before}a + {number}{after}" for number in count())

    def judge() -> None:
        tree = trees.tree(before + after, "python", Budget(_BUDGET_MS))
        verdict = Validator(before, after, "python", tree=tree).verdict("a + 1", Budget(_BUDGET_MS))
        assert verdict
        assert verdict.is_clean

    works: dict[str, Callable[[], object]] = {
        "tree edited": lambda: trees.tree(next(documents), "python", Budget(_BUDGET_MS)),
        "parsed anew": lambda: parsed(next(documents), "python", Budget(_BUDGET_MS)),
        "tree and verdict": judge,
    }
    return [Figure(part=SYNTAX, name=name, spread=watch.time(work), at=lines) for name, work in works.items()]
