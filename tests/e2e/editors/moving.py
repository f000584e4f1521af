"""Moving pictures: what a terminal showed, one frame after the other, as one SVG that plays by itself."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

LAST_S = 2.5
"""The last frame stays for so long before it all begins again."""
_INSIDE = re.compile(r"<svg[^>]*>(.*)</svg>", re.DOTALL)
_OPENING = re.compile(r"<svg[^>]*>")


def drawn(screen: str, *, width: int, height: int, title: str, unique_id: str | None = None) -> str:
    """A screen, with its escape sequences, as an SVG."""
    lines = screen.rstrip("\n").split("\n")
    lines += [""] * (height - len(lines))
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi("\n".join(lines)))
    return console.export_svg(title=title, unique_id=unique_id)


def moving(frames: Sequence[tuple[float, str]], *, width: int, height: int, title: str) -> str:
    """Screens, each with the second at which it came, as one SVG."""
    ends = [*(at for at, _ in frames[1:]), frames[-1][0] + LAST_S]
    begin, length = frames[0][0], ends[-1] - frames[0][0]
    styles: list[str] = []
    groups: list[str] = []
    for index, ((at, screen), end) in enumerate(zip(frames, ends, strict=True)):
        svg = drawn(screen, width=width, height=height, title=title, unique_id=f"f{index}")
        since, until = (100 * (moment - begin) / length for moment in (at, end))
        hidden_before = "0%{visibility:hidden}" if since else ""
        hidden_after = f"{until:.3f}%{{visibility:hidden}}" if until < 100 else ""
        styles.append(
            f"@keyframes k{index}{{{hidden_before}{since:.3f}%{{visibility:visible}}{hidden_after}}}"
            f".k{index}{{visibility:hidden;animation:k{index} {length:.2f}s step-end infinite}}"
        )
        found = _INSIDE.search(svg)
        assert found, "Rich draws one <svg>."
        groups.append(f'<g class="k{index}">{found[1]}</g>')
    opening = _OPENING.search(drawn("", width=width, height=height, title=title))
    assert opening, "Rich draws one <svg>."
    return f"{opening[0]}<style>{''.join(styles)}</style>{''.join(groups)}</svg>"
