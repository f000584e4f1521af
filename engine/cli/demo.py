"""`make demo`: three gaps in real code, filled by the bundled model while one watches."""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from engine.cli.preview import figures, preview
from engine.cli.watch import Watch, canvas_line, legend
from engine.core.exits import one_line_errors
from engine.core.names import BUNDLED
from engine.core.request import Draft, FillRequest
from engine.loader.catalog import bundled
from engine.text.marked import gap_at_markers

if TYPE_CHECKING:
    from engine.loader.loading import Infiller


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoExample:
    """Code with a gap."""

    title: str
    language: str
    text: str


# From this project, chosen before the model was trained; what it answers is what it answers.
EXAMPLES = (
    DemoExample(
        title="the end of a line: what to catch (engine/text/textfile.py)",
        language="python",
        text="""\
def read_text(name: str) -> TextFile:
    path = Path(name)
    try:
        return decode(path.read_bytes(), path)
    except ▮:
        raise BadInput(f"There is no file {name}: check the path.") from None
    except IsADirectoryError:
        raise BadInput(f"{name} is a directory: name a file in it.") from None
""",
    ),
    DemoExample(
        title="a line in a class: what a constructor keeps (engine/cli/watch.py)",
        language="python",
        text="""\
class Watch:
    def __init__(self, gap: Gap, console: Console, frame_s: float = FRAME_S) -> None:
        self._console = console
        ▮
        self._thread = Thread(target=self._play, name="watch", daemon=True)

    def __exit__(self, kind, error, trace) -> None:
        if error is not None:
            self._frame_s = 0
        self._thread.join()
""",
    ),
    DemoExample(
        title="the middle of a call: an argument (JavaScript)",
        language="javascript",
        text="""\
function offsetAt(lines, position) {
  let offset = 0;
  for (let index = 0; index < position.line; index++) {
    offset += lines[▮].length + 1;
  }
  return offset + position.character;
}
""",
    ),
)
PICTURE_WIDTH, PICTURE_FRAMES = 100, 6
"""Columns; canvases of one fill."""


@one_line_errors()
def main(
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Also draw the fills into a picture.")
    ] = None,
) -> None:
    """Fill the examples one after the other. Exits as `dg-lsp fill` does."""
    console = Console(highlight=False)
    console.print(
        f"[bold]dg-lsp[/] fills {len(EXAMPLES)} gaps in real code with the model that ships in the package "
        f"({bundled().parameters / 1e6:.1f} M parameters), on the CPU, without network.\n"
        "Each canvas starts as noise; the text on both sides of the gap holds still while the tokens between settle.\n"
    )
    with console.status("Loading the model"):
        began = time.perf_counter()
        from engine.loader.loading import load

        infiller = load(BUNDLED, "cpu")
        load_ms = (time.perf_counter() - began) * 1000
    console.print(f"Loaded in {load_ms:.0f} ms.\n")
    for example in EXAMPLES:
        show(example, infiller, console)
    if picture:
        draw(EXAMPLES, infiller, picture)
    console.print("Your own code: [bold].venv/bin/dg-lsp fill FILE --at LINE:COL --watch[/]")


def show(example: DemoExample, infiller: Infiller, console: Console) -> None:
    """Fill one gap: the canvas settling, the result, the figures."""
    gap = gap_at_markers(example.text)
    console.rule(example.title, align="left")
    request = FillRequest(prefix=gap.prefix, suffix=gap.suffix, language=example.language)
    with Watch(gap, console) as watch:
        filled = infiller.answer(request, watch.show)
    for candidate in filled.candidates:
        console.print(preview(gap, candidate.text, marked=console.color_system is None), soft_wrap=True)
    console.print(figures(filled), soft_wrap=True)
    console.print()


def draw(examples: Sequence[DemoExample], infiller: Infiller, out: Path) -> None:
    """Fill gaps again and draw what happens: some of each one's canvases, the result, the figures."""
    page = Console(record=True, width=PICTURE_WIDTH, file=io.StringIO(), force_terminal=True, highlight=False)
    for example in examples:
        gap = gap_at_markers(example.text)
        drafts: list[Draft] = []
        request = FillRequest(prefix=gap.prefix, suffix=gap.suffix, language=example.language)
        filled = infiller.answer(request, drafts.append)
        page.rule(example.title, align="left")
        shown = drafts[:: -(-len(drafts) // PICTURE_FRAMES)]
        for draft in shown:
            page.print(canvas_line(gap.prefix.rpartition("\n")[2], draft), no_wrap=True, overflow="ellipsis")
        for draft in shown[-1:]:
            page.print(legend(draft))
        for candidate in filled.candidates:
            page.print(preview(gap, candidate.text, marked=False))
        page.print(figures(filled), "\n")
    page.save_svg(str(out), title="make demo")


if __name__ == "__main__":
    typer.run(main)
