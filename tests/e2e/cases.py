"""What the oracle knows in these tests. Each text is one case; the part between the markers is its answer."""

from __future__ import annotations

from typing import Any

ADD = "def add(a, b):\n    return ▮a + b▮\n"
BODY = "def total(items):\n    ▮result = 0\n    for item in items:\n        result += item\n    return result\n▮"
ASTRAL = "face = '😋' + ▮mouth▮\n"
CRLF = "def three(one):\r\n    ▮two = one + one\r\n    return two + one▮\r\n"
LONE_CR = "def twice(one):\r    ▮two = one + one\r    return two + one▮\r"
COLUMN_0 = "▮import os▮\nprint(os.sep)\n"
END = "last = ▮line▮"
EMPTY = {"text": "▮print('hello')▮", "confidence": 0.99}
CALL = "value = ▮compute(first, second)▮\nprint(value)\n"
INSIDE = "shown = f(▮left▮, right)\n"
SEVERAL = {"text": "colour = ▮red▮\n", "alternatives": ["green", "blue", "grey"]}
UNSURE = {"text": "guess = ▮maybe▮\n", "confidence": 0.01}
SLOW = {"text": f"slow = ▮{'+'.join('abcdefghij')}▮\n", "reveal": 1, "delay_ms": 60}
UNSURE_AND_SLOW = {"text": f"vague = ▮{'+'.join('abcdefghij')}▮\n", "confidence": 0.1, "reveal": 1, "delay_ms": 60}
CHAIN = "alpha = ▮1\nbeta = 2\ngamma = 3▮\n"
NAME = "result = ▮pressure * volume▮\n"
RENAMED = "def scaled(width):  # 😋\n▮    return width * 2▮\n"
BOTH = "def both(size):  # 😋\n    area = size * 2\n    return size + area\n"
BOTH_RENAMED = (
    "def both(width):  # 😋\n▮    area = width * 2▮\n    return size + area\n",
    "def both(width):  # 😋\n    area = size * 2\n▮    return width + area▮\n",
    "def both(width):  # 😋\n    area = width * 2\n▮    return width + area▮\n",
    "def both(width):  # 😋\n▮    area = width * 2▮\n    return width + area\n",
)
FAR = "some_name = another_name + 1  # 😋\n"
DEEP = f"{FAR * 10}def add(a, b):\n    return ▮a + b▮\n{FAR * 10}"
SWALLOWED = "shown = compute(▮left, right)▮)\nprint(shown)\n"
"""An editor has closed the bracket by itself, and the model closes it once more."""
MONEY = 'def price(n):\n    ▮x = {n}\n    return f"\\\\${x}"▮\n'
"""What means something in a snippet."""
PARTED = "class Pair:\n    ▮first = 1\n\n    second = 2▮\n"
DEDENTED = "def both():\n    return call(\n        ▮first,\n        second,\n    )▮\n"
ONE_NOTEBOOK = "side = 2\n\narea = ▮side * side▮\n\nprint(area)\n"
OTHER_NOTEBOOK = "radius = 3\n\n# Boxes\n#cd ..\nwidth = 4\n\narea = ▮radius * width▮\n\nprint(area)\n"
"""The cells of a notebook as one text: without those above, the first case would match as well."""
CASES: tuple[dict[str, Any] | str, ...] = (
    EMPTY,  # First: an empty document is the beginning of any other case, too.
    ADD,
    BODY,
    ASTRAL,
    CRLF,
    LONE_CR,
    COLUMN_0,
    END,
    CALL,
    INSIDE,
    SEVERAL,
    UNSURE,
    SLOW,
    UNSURE_AND_SLOW,
    CHAIN,
    NAME,
    RENAMED,
    *BOTH_RENAMED,
    DEEP,
    SWALLOWED,
    MONEY,
    PARTED,
    DEDENTED,
    ONE_NOTEBOOK,
    OTHER_NOTEBOOK,
)


def text_of(case: dict[str, Any] | str) -> str:
    """The case's text with its markers."""
    return case if isinstance(case, str) else case["text"]
