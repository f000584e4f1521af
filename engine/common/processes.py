"""How processes of ours are started: nothing that lies in the folder they stand in is ever run. And how they yield."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path


def python_module(name: str) -> tuple[str, ...]:
    """The command that runs a module of this installation.

    Without `-P` Python looks into the working directory first: an `engine/` or a `uuid.py` there would be run.
    """
    return sys.executable, "-P", "-m", name


def home_dir() -> Path:
    """The user's home; where the system knows of none, a folder that holds nothing of anybody's."""
    try:
        return Path.home()
    except RuntimeError:
        return neutral_dir()


def at_home(path: str) -> str:
    """A path of the user's, "~/" read as a shell reads it."""
    return str(home_dir() / path[2:]) if path.startswith("~/") else path


def working_dir() -> Path:
    """Where this process stands; a neutral folder where that one is gone."""
    try:
        return Path.cwd()
    except OSError:
        return neutral_dir()


def neutral_dir() -> Path:
    """Where a process of long life stands: a folder that can't be removed meanwhile, and holds nothing of a project.

    The root, as daemons do. A home may be missing, and an empty entry of PYTHONPATH would make Python look into it.
    """
    return Path(Path(sys.executable).anchor)


def idle() -> None:
    """Take processor time only where nothing else wants it.

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
