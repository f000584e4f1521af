"""`python -m tests.engine.cli.picture FILE.svg [MODEL]`: the demo in the README, filled by the bundled model; or by the
canvas of a coder, alone."""

import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from engine import load
from engine.cli.demo import EXAMPLES, DemoExample
from engine.cli.preview import figures, preview
from engine.cli.watch import canvas_line, legend
from engine.common.client import OnDraft
from engine.common.marked import gap_at_markers
from engine.common.request import Draft, Filled, FillRequest

WIDTH, FRAMES = 100, 6
"""Columns; canvases of one fill."""


def draw(
    examples: Sequence[DemoExample],
    answer: Callable[[FillRequest, OnDraft], Filled],
    out: Path,
    title: str = "make demo",
) -> None:
    """Fill gaps and draw what happens: some of each one's canvases, the result, the figures."""
    page = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, highlight=False)
    for example in examples:
        gap = gap_at_markers(example.text)
        drafts: list[Draft] = []
        request = FillRequest(prefix=gap.prefix, suffix=gap.suffix, language=example.language)
        filled = answer(request, drafts.append)
        page.rule(example.title, align="left")
        shown = drafts[:: -(-len(drafts) // FRAMES)]
        for draft in shown:
            page.print(canvas_line(gap.prefix.rpartition("\n")[2], draft), no_wrap=True, overflow="ellipsis")
        for draft in shown[-1:]:
            page.print(legend(draft))
        for candidate in filled.candidates:
            page.print(preview(gap, candidate.text, marked=False))
        page.print(figures(filled), "\n")
    page.save_svg(str(out), title=title)


if __name__ == "__main__":
    out, *named = sys.argv[1:]
    if named:
        draw(EXAMPLES[:2], load(named[0], "cpu").by_canvas, Path(out), f"make demo MODEL={named[0]}")
    else:
        draw(EXAMPLES, load("bundled", "cpu").answer, Path(out))
