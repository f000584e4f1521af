"""Shows the canvas while it settles: noise, accepted and pinned tokens in different colours."""

from __future__ import annotations

import time
from queue import SimpleQueue
from threading import Thread
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from engine.cli.preview import visible
from engine.common.marked import MarkedText
from engine.common.request import Cell, CellState, Draft

FRAME_S = 0.06
"""Each canvas is shown this long, since steps of a small model are too fast to see."""
STYLES: dict[CellState, str] = {"noise": "dim magenta", "accepted": "bold green", "pinned": "cyan"}
_PLAIN_NOISE = "▒"
_LINE_END = "⏎"


class Watch:
    """Context manager that shows drafts, in a separate thread so that the fill is not slowed down."""

    def __init__(self, gap: MarkedText, console: Console, frame_s: float = FRAME_S) -> None:
        self._lead = gap.prefix.rpartition("\n")[2][-console.width // 2 :]
        self._console = console
        self._frame_s = frame_s
        self._drafts: SimpleQueue[Draft | None] = SimpleQueue()
        self._thread = Thread(target=self._play, name="watch", daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._frame_s = 0
        self._drafts.put(None)
        self._thread.join()

    def show(self, draft: Draft) -> None:
        self._drafts.put(draft)

    def _play(self) -> None:
        if not self._console.is_terminal:
            while draft := self._drafts.get():
                # Without colours, on one line: noise as shades.
                plain = Text(f"step {draft.step:>3}  {''.join(map(_plain, draft.cells))}")
                self._console.print(plain, soft_wrap=True)
            return
        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            while draft := self._drafts.get():
                live.update(frame(self._lead, draft), refresh=True)
                time.sleep(self._frame_s)


def frame(lead: str, draft: Draft) -> Text:
    """A canvas after `lead`, the start of its line, with a legend."""
    return canvas_line(lead, draft).append("\n").append_text(legend(draft))


def canvas_line(lead: str, draft: Draft) -> Text:
    """A canvas after `lead`, the start of its line."""
    return Text.assemble(visible(lead), *((_shown(cell), STYLES[cell.state]) for cell in draft.cells), overflow="fold")


def legend(draft: Draft) -> Text:
    """The legend and the step."""
    return Text.assemble((f"step {draft.step}  ", "dim"), *((f"■ {state}  ", style) for state, style in STYLES.items()))


def _shown(cell: Cell) -> str:
    """Line breaks in noise would make the picture jump, and control tokens have no text."""
    text = visible(cell.text)
    return text.replace("\n", _LINE_END) or _PLAIN_NOISE if cell.state == "noise" else text


def _plain(cell: Cell) -> str:
    return _PLAIN_NOISE if cell.state == "noise" else visible(cell.text).replace("\n", _LINE_END)
