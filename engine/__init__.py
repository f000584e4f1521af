"""The engine: a resident text-diffusion model that fills gaps in code.

>>> from engine import load
>>> load("bundled").fill("def add(a, b):\n    return ", "\n", language="python").candidates[0].text
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

# Read when torch is imported. Else its threads would wait for each other in a loop; beside a build, that takes the very
# cores they wait for: a fill on two busy cores took 18 s instead of 0.9.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

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
