"""What the oracle knows of edits; the extension's own tests have the same texts."""

from __future__ import annotations

from typing import Any

from dg_lsp.edits.rewrites import REWRITES

LINES = "# Growth.\ndef grow(size):\n    size = size + 1\n    total = size * 2\n    return total\n"
BETTER = LINES.replace("size = size + 1", "size += 1")
BY_TWO = LINES.replace("size = size + 1", "size += 2")
HINTED = LINES.replace("grow(size)", "grow(size: int) -> int")
BROKEN = "def area(width, height):\n    return max(width * height, 1\n\n\nprint(area(2, 3))\n"
WHOLE = BROKEN.replace(", 1\n", ", 1)\n")
EMPTY_BODY = "# Twice.\ndef double(value):\n\n\nprint(double(2))\n"
FULL_BODY = "# Twice.\ndef double(value):\n    return value * 2\n\n\nprint(double(2))\n"
PASSES = "# Pair.\ndef left():\n    pass\n\n\ndef right():\n    pass\n"
PAIR = "# Pair.\ndef left():\n    return 1\n\n\ndef right():\n    return 2\n"
# As many tokens after as before: an answer that found no room would be no answer.
SLOW_OLD = "# Slow.\nslowly = [1, 2, 3, 4, 5, 6, 7, 8, 9]\n"
SLOW_NEW = "# Slow.\nslowly = [9, 8, 7, 6, 5, 4, 3, 2, 1]\n"
SHADE = "# Shade.\nshade = 'green'\n"
SHADES = ("shade = 'red'", "shade = 'tan'", "shade = 'blue'")
EDITS: tuple[dict[str, Any] | str, ...] = (
    {"text": f"▮{BETTER}▮", "instruction": ""},
    {"text": f"▮{BY_TWO}▮", "instruction": "by two"},
    {"text": f"▮{HINTED}▮", "instruction": REWRITES["hints"][1]},
    f"▮{WHOLE}▮",
    f"▮{FULL_BODY}▮",
    # The second is filled where the first one is.
    PAIR.replace("return 2", "▮return 2▮"),
    PASSES.replace("pass", "▮return 1▮", 1),
    {"text": f"▮{SLOW_NEW}▮", "reveal": 2, "delay_ms": 150},
    {"text": f"# Shade.\n▮{SHADES[0]}▮\n", "alternatives": SHADES[1:], "instruction": "another"},
)
