"""Other processes."""

from __future__ import annotations

import os
import sys


def is_alive(pid: int) -> bool:
    """Whether a process runs on this machine. On Windows nobody can tell without a handle: True."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
