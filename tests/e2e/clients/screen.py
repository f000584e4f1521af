"""A program in a terminal of its own, whose screen can be read."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyte

ROWS, COLUMNS = 30, 100


class _Silent(pyte.Screen):
    """A terminal that leaves all questions unanswered, also those of which pyte does not know that they are asked."""

    def report_device_status(self, *_: object, **__: object) -> None: ...

    def report_device_attributes(self, *_: object, **__: object) -> None: ...


class Terminal:
    """What a user sees and types. `text` is what is on the screen now."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._screen = _Silent(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)

    def type(self, keys: str) -> None:
        os.write(self._descriptor, keys.encode())

    @property
    def text(self) -> str:
        while select.select([self._descriptor], [], [], 0.05)[0]:
            try:
                said = os.read(self._descriptor, 65536)
            except OSError:  # Linux says so where the program has ended.
                break
            self._stream.feed(said)
        return "\n".join(line.rstrip() for line in self._screen.display)


@contextmanager
def terminal(command: Sequence[str | Path], cwd: Path, env: Mapping[str, str]) -> Iterator[Terminal]:
    """A program from start to end."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(command, cwd=cwd, env=env, stdin=its, stdout=its, stderr=its, start_new_session=True)
    os.close(its)
    try:
        yield Terminal(ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
