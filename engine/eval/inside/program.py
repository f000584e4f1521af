"""Role `program`: a program that reads standard input and writes standard output."""

from __future__ import annotations

import os
import sys
from typing import Any


def play(source: int) -> None:
    """The program's text comes on a file descriptor."""
    with os.fdopen(source) as file:
        text = file.read()
    # The hidden name says what a program finds when it is started by hand.
    namespace: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
    sys.argv = ["program.py"]
    exec(compile(text, "program.py", "exec"), namespace)
