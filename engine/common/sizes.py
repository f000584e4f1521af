"""Human-readable sizes."""

from __future__ import annotations


def decimal_bytes(nbytes: int) -> str:
    """Disk and download sizes, in powers of ten as the Hub and disks state them: "51.6 GB"."""
    size = float(nbytes)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def binary_bytes(nbytes: int) -> str:
    """Memory sizes, in powers of two as GPUs and main memory are sold: "48.1 GiB"."""
    return f"{nbytes / (1 << 30):.1f} GiB" if nbytes >= 1 << 30 else f"{nbytes / (1 << 20):.1f} MiB"
