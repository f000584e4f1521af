"""Memory of the process and of its accelerator: how much is held, and giving it back."""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import suppress

import psutil


def rss_nbytes() -> int:
    """Main memory that the process holds."""
    return psutil.Process().memory_info().rss


def device_nbytes() -> int:
    """Accelerator memory that torch holds for the process; 0 where torch is not imported or has no accelerator."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return 0
    return sum(torch.cuda.memory_reserved(device) for device in range(torch.cuda.device_count()))


def settle() -> None:
    """Keep the garbage collector from what is loaded to stay: to walk through all of it takes tens of milliseconds."""
    gc.collect()
    gc.freeze()


def give_back() -> None:
    """Return to the system what nothing refers to any more."""
    gc.unfreeze()
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
    if sys.platform == "linux":
        # glibc keeps freed pages for later; musl has no malloc_trim.
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
