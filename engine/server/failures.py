"""From an exception of the model thread to the error that its client gets."""

from __future__ import annotations

import logging

from engine.common.errors import BadInput, ModelError, OutOfMemory, is_broken_device, is_out_of_memory
from engine.common.messages import FailureCode

_log = logging.getLogger(__name__)


def failure_of(error: BaseException, doing: str) -> tuple[FailureCode, str]:
    """Code and sentence about `doing` something; what is nobody's known mistake goes to the log with its traceback."""
    if isinstance(error, OutOfMemory):
        return "out_of_memory", str(error)
    if is_out_of_memory(error):
        return "out_of_memory", f"The device ran out of memory at {doing}; ask for less, or use a smaller model."
    if isinstance(error, ModelError):
        return "model", str(error)
    if isinstance(error, BadInput):
        return "bad_request", str(error)
    if is_broken_device(error):
        _log.error("the device failed at %s (%s)", doing, error, exc_info=error)
        return "internal", f"The device failed at {doing}; the engine is being replaced."
    _log.error("failed at %s", doing, exc_info=error)
    return "internal", f"The engine failed at {doing}; its log says more (`dg-lsp engine status` names the folder)."
