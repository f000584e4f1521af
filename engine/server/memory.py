"""Memory of the process and of its accelerator: how much is held, how much was read, and giving it back."""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import suppress

import psutil

_BLOCK_NBYTES = 512
_ARENA_MAX = -8
"""Of glibc's `mallopt`."""


def rss_nbytes() -> int:
    """Main memory that the process holds."""
    return psutil.Process().memory_info().rss


def device_nbytes() -> int:
    """Accelerator memory that torch holds for the process; 0 where torch is not imported or has no accelerator."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return 0
    return sum(torch.cuda.memory_reserved(device) for device in range(torch.cuda.device_count()))


def device_total_nbytes() -> int:
    """Memory of all accelerators; 0 where torch is not imported or there is none."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return 0
    return sum(torch.cuda.mem_get_info(device)[1] for device in range(torch.cuda.device_count()))


def read_nbytes() -> int:
    """Bytes that the process read from disks so far, mapped files included; 0 where the system does not tell."""
    if sys.platform == "win32":
        return 0
    import resource

    usage = resource.getrusage(resource.RUSAGE_SELF)
    # Where a file system in user space counts no blocks, each fault that waited for it brought a page at least.
    return usage.ru_inblock * _BLOCK_NBYTES + usage.ru_majflt * resource.getpagesize()


def share_one_heap() -> None:
    """Let all threads allocate from one heap, from now on: `trim` gives nothing back of the ends of others, which hold
    tens of megabytes after a load in several threads."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def settle() -> None:
    """Keep the garbage collector from what is loaded to stay: to walk through all of it takes tens of milliseconds."""
    gc.collect()
    gc.freeze()


def give_back() -> None:
    """Return to the system the memory that nothing refers to any more."""
    gc.unfreeze()
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
    trim()


def trim() -> None:
    """Return freed pages to the system."""
    if sys.platform == "linux":
        # glibc keeps freed pages for later; musl has no malloc_trim.
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
