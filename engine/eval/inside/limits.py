"""What a sandboxed process may use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["namespaces", "guards"]
"""`namespaces`: the kernel hides network, files and other processes (Linux, where it lets users do so). `guards`: the
interpreter refuses them, which stops accidents and common tricks, but is no wall."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxLimits:
    """Of one process; `processes` counts its children and threads too."""

    level: Level = "namespaces"
    folder: str = ""
    """Empty, the process's own: all that it may write to."""
    cpu_s: int = 10
    wall_s: float = 60.0
    """A bound for machines that are busy; the processor time is the limit that counts."""
    memory_nbytes: int = 1 << 30
    file_nbytes: int = 16 << 20
    """Largest file, and largest output."""
    files: int = 64
    """Open at once."""
    processes: int = 8
