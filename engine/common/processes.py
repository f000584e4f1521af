"""How our processes start, without running anything from their working directory, and how they yield."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path


def python_module(name: str) -> tuple[str, ...]:
    """The command that runs a module of this installation. Without `-P` Python would run an `engine/` or `uuid.py` in
    the working directory.
    """
    return sys.executable, "-P", "-m", name


def home_dir() -> Path:
    """The user's home; an empty folder where there is none."""
    try:
        return Path.home()
    except RuntimeError:
        return neutral_dir()


def at_home(path: str) -> str:
    """A path of the user's, "~/" read as a shell reads it."""
    return str(home_dir() / path[2:]) if path.startswith("~/") else path


def working_dir() -> Path:
    """The working directory; a neutral folder where it was deleted."""
    try:
        return Path.cwd()
    except OSError:
        return neutral_dir()


def neutral_dir() -> Path:
    """The working directory for long-lived processes: it can't be removed and holds nothing of a project.

    The root, as daemons do. A home may be missing, and an empty entry of PYTHONPATH would make Python look into it.
    """
    return Path(Path(sys.executable).anchor)


def idle() -> None:
    """Use only processor time that nothing else needs.

    Linux with autogroups weighs sessions against each other before it looks at what is in them. So without a terminal,
    whose Ctrl-C would be lost, this becomes a session of its own that weighs next to nothing. In a terminal's session
    it yields to what else is in there, and shares with other sessions.
    """
    if hasattr(os, "SCHED_IDLE"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        if not _has_terminal():
            with contextlib.suppress(OSError):
                os.setsid()
        if os.getsid(0) == os.getpid():
            with contextlib.suppress(OSError):
                Path("/proc/self/autogroup").write_text("19", encoding="ascii")
    elif hasattr(os, "nice"):
        os.nice(19)


def _has_terminal() -> bool:
    """Whether a Ctrl-C somewhere reaches this process."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
