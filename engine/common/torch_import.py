"""Torch without the shapes of tensors that have no numbers, which are a third of the time that importing it takes.

`torch.compile`, exports and the meta device ask for them, and so may any library. The model that ships asks nothing on
a processor, and is what a new user waits for: there torch is imported without, and completed before anything else.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, version
from types import FrameType, ModuleType
from typing import Any

_SHAPES = "torch._meta_registrations"
_TRIED = ((2, 9), (2, 13))
"""The first and the last torch that was seen to work without; others are imported whole."""


class _StandIns(MetaPathFinder, Loader):
    """Finds an empty module, which becomes the real one as soon as something in it is asked for."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        return ModuleSpec(fullname, self) if fullname == _SHAPES else None

    def exec_module(self, module: ModuleType) -> None:
        def ask(name: str) -> Any:
            # Whoever walks through all modules asks for these.
            if name.startswith("__"):
                raise AttributeError(name)
            complete()
            return getattr(sys.modules[_SHAPES], name)

        module.__dict__["__getattr__"] = ask


_STAND_INS = _StandIns()
_ORIGINAL = inspect.getmodule
_COMPLETING = threading.RLock()
"""Nobody goes on before all of it is there."""


def defer() -> None:
    """Have torch imported without them, where it is not imported yet. Only for processes that are all ours."""
    try:
        release = tuple(int(part) for part in version("torch").split(".")[:2])
    except (PackageNotFoundError, ValueError):
        return
    if "torch" not in sys.modules and _TRIED[0] <= release <= _TRIED[1]:
        sys.meta_path.insert(0, _STAND_INS)
        inspect.getmodule = _module_of


def _module_of(object: Any, _filename: str | None = None) -> ModuleType | None:
    """As inspect's own, which asks the system for the path of every module that is loaded, to find that of one frame.
    Torch wants to know it for each operator that is defined in Python: a tenth of a second."""
    if isinstance(object, FrameType):
        return sys.modules.get(object.f_globals.get("__name__", ""))
    return _ORIGINAL(object, _filename)


def complete() -> None:
    """Import what was left out, if anything was."""
    with _COMPLETING:
        if _STAND_INS in sys.meta_path:
            sys.meta_path.remove(_STAND_INS)
            inspect.getmodule = _ORIGINAL
            sys.modules.pop(_SHAPES, None)
            import_module(_SHAPES)
