"""How processes of ours are started: nothing that lies in the folder they stand in is ever run."""

from __future__ import annotations

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


def neutral_dir() -> Path:
    """Where a process of long life stands: a folder that can't be removed meanwhile, and holds nothing of a project.

    The root, as daemons do. A home may be missing, and an empty entry of PYTHONPATH would make Python look into it.
    """
    return Path(Path(sys.executable).anchor)
