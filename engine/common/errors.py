"""Everything that can go wrong on purpose.

    EngineError
    ├── BadInput          the caller's fault: a file, a position, a setting (command line: exit code 2)
    │   ├── ModelError    a model that can't be had, read or used as asked
    │   │   ├── UnknownFamily  no family runs its type: see engine.models.registry
    │   │   ├── NotCached      it is not on this machine: see engine.models.checkpoints.catalog
    │   │   └── RemoteError    a server can't do what it is asked: see engine.models.remote.client
    │   │       ├── ServerAway     it can't be reached
    │   │       └── ServerBusy     it turns work away for now: see engine.models.remote.probe
    │   ├── NotRead       a file that is there, and none to read
    │   ├── SessionError  a recorded session that can't be read or made: see dg_lsp.replay.session
    │   └── TooMuch       an ignore file that can't be heeded: see dg_lsp.config.patterns
    ├── OutOfMemory       the device has too little memory for what was asked (exit code 1)
    ├── NoAnswer          an engine that can't be talked to: see engine.common.client
    │   └── Broken        one that ended in the middle of a word: see there
    ├── EngineFailure     an engine that did not do what was asked: see there
    ├── EngineSilent      an engine that takes connections and says nothing: see dg_lsp.backend.connection
    ├── HttpError         a request by HTTP gets an error instead of an answer: see engine.server.http.bodies
    ├── StatsError        counts that can't be read or written: see dg_lsp.suggest.stats
    ├── UnknownCells      a change to a notebook that is none here: see dg_lsp.documents.notebooks
    └── ProtocolError     between the two ends of a connection, and ends there
        ├── FrameError        its framing is broken, and the connection with it
        ├── BodyError         one message can't be sent
        ├── MalformedMessage  one message can't be read
        ├── VersionMismatch   the other end speaks another version
        └── Impostor          the other end proves nothing: see engine.common.challenge

The message of an EngineError is one sentence that names the thing and the way out; it is shown to users as it stands.
Where it is a clause, its class says so, and who catches it makes the sentence.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

# torch raises its own class on CUDA only; its other allocators raise RuntimeError with one of these in it.
_ALLOCATION_WORDS = ("out of memory", "can't allocate memory", "not enough memory", "_ALLOC_FAILED")
_LONGEST = 2_000
"""Characters of a message. It goes to editors, which a message of megabytes would not reach at all."""
_BROKEN_WORDS = ("CUDA error:", "HIP error:", "CUBLAS_STATUS_", "CUDNN_STATUS_", "device-side assert")


class EngineError(Exception):
    """Base of all errors raised on purpose."""

    def __str__(self) -> str:
        return shortened(super().__str__(), _LONGEST)


class BadInput(EngineError):
    """The caller asked for something that can't be done as asked."""


class ModelError(BadInput):
    """A model is unknown, incomplete, unsafe or does not fit."""


class NotRead(BadInput):
    """A file is no ordinary one, or too large. `why` says which, in a clause without the file's name."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path} {why}: name another file.")
        self.why = why


class OutOfMemory(EngineError):
    """The device ran out of memory at work."""


class ProtocolError(EngineError):
    """The two ends of a connection don't understand each other."""


class FrameError(ProtocolError):
    """A peer broke the framing, so nothing that follows on its connection can be trusted."""


class BodyError(ProtocolError):
    """A message is too large, or holds what can't be sent."""


class MalformedMessage(ProtocolError):
    """One message can't be read; its sender goes on. `id` is the request's, where one could be read."""

    def __init__(self, message: str, id: int | None = None) -> None:
        super().__init__(message)
        self.id = id


class VersionMismatch(ProtocolError):
    """The other end speaks another version of the protocol."""


def shortened(text: str, most: int = 200) -> str:
    """A complaint may quote a value of megabytes; what is wrong with it stands at the ends."""
    return text if len(text) <= most else f"{text[: most // 2]}...{text[3 - most // 2 :]}"


def unquoted(error: BaseException) -> str:
    """What failed and where, for logs. Not what the error says, which may be of somebody's text."""
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) and cause not in causes:
        causes.append(cause)
    return "\nbehind: ".join(
        "\n".join((type(each).__name__, *(line.rstrip() for line in traceback.format_tb(each.__traceback__))))
        for each in causes
    )


def is_panic(error: BaseException) -> bool:
    """Whether a library written in Rust gave up; its errors are no Exceptions, and have no class that can be named."""
    return type(error).__module__ == "pyo3_runtime"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed, on whatever device."""
    # Whoever raised an error of torch has imported it.
    of_torch: type[Exception] = getattr(sys.modules.get("torch"), "OutOfMemoryError", MemoryError)
    if isinstance(error, MemoryError | of_torch):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _ALLOCATION_WORDS)


def is_broken_device(error: BaseException) -> bool:
    """Whether a device failed in a way that lasts: after that, nothing works on it any more in this process."""
    if is_out_of_memory(error):
        return False
    of_torch: Any = getattr(sys.modules.get("torch"), "AcceleratorError", None)
    if of_torch is not None and isinstance(error, of_torch):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _BROKEN_WORDS)
