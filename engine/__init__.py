"""The engine: a resident text-diffusion model that fills gaps in code.

>>> from engine import load
>>> load("bundled").fill("def add(a, b):\n    return ", "\n", language="python").candidates[0].text
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

_SPINS = "3000"
"""Turns of a loop, some tens of microseconds, that a thread waits for the next product before it sleeps. To sleep at
once makes a coder's prefill 1.3 to 1.6 times as long on idle cores; with 10,000 turns it takes twice as long where four
other processes want two cores, as the loop takes the cores that it waits for."""

# Read when torch is imported: the first by Apple's and Intel's OpenMP, the second by GNU's, which prefers it.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    os.environ.setdefault("GOMP_SPINCOUNT", _SPINS)

if TYPE_CHECKING:
    from engine.common.names import Device
    from engine.fill.loading import Infiller


def load(name: str = "auto", device: Device = "auto") -> Infiller:
    """Load "auto", "bundled", a coder by its name, a directory, a GGUF or a cached Hub id; see engine.fill.loading.

    Raises ModelError for a model that is unknown, incomplete, unsafe or too big, OutOfMemory where memory ran out.
    """
    # Torch takes a second to import: not before it is needed.
    from engine.fill.loading import load

    return load(name, device)
