"""The engine's process: one at a time by a lock, logs, an event loop, an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import gc
import logging
import logging.handlers
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from engine.common import runtime_paths, torch_import
from engine.common.client import welcome
from engine.common.errors import BadInput, EngineError, unquoted
from engine.common.names import AUTO, BUNDLED, Device
from engine.common.version import __version__
from engine.models.addressed import named
from engine.server import memory
from engine.server.server import EngineServer
from engine.server.settings import EngineOptions
from engine.server.stopping import engine_lock

if TYPE_CHECKING:
    from engine.models.base import Model

_log = logging.getLogger(__name__)
_LOG_NBYTES = 1024 * 1024
_LOG_FILES = 3
_LOCK_S = 20.0
_HUNG_EXIT = 70
_OPEN_FILES = 4096


def run(settings: EngineOptions) -> bool:
    """Be the engine until its end, which is the process's; False where one is running already. Raises EngineError."""
    is_well = True
    settings = replace(settings, model=_resolved(settings.model), auto=settings.auto or settings.model == AUTO)
    runtime_paths.make_runtime_dir()
    with _the_only_one() as chosen:
        if chosen:
            _allow_open_files()
            with _logging() as why_not:
                _log.info("started: pid %d, model %s, device %s", os.getpid(), settings.model, settings.device)
                is_well = _run_loop(settings, why_not)
                _log.info("ended")
    if chosen:
        # An ordinary exit waits for threads, and one that hangs in native code or looks at a text would keep it.
        os._exit(0 if is_well else _HUNG_EXIT)
    return False


@contextlib.contextmanager
def _the_only_one() -> Generator[bool]:
    ends = time.monotonic() + _LOCK_S
    while (lock := engine_lock()) is None:
        if welcome(max(ends - time.monotonic(), 0.1)):
            yield False
            return
        # The holder is starting or ending; either takes a moment.
        if time.monotonic() > ends:
            raise EngineError(
                f"Another process holds {runtime_paths.lock_path()} but answers nobody: "
                "`dg-lsp engine restart` ends it."
            )
        time.sleep(0.05)
    try:
        yield True
    finally:
        lock.release()


def _resolved(model: str) -> str:
    if model != AUTO:
        return model
    if not (runtime_paths.data_dir() / "models").is_dir():
        return BUNDLED
    # Not for those who have nothing to choose from: an editor waits.
    from engine.models.checkpoints.choice import resolved

    return resolved(model)


def _allow_open_files() -> None:
    """Each client takes one; systems let a process have more than they give it at first."""
    try:
        import resource
    except ImportError:  # Windows counts none
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        # What a system does not let an engine have it may do without.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _run_loop(settings: EngineOptions, why_no_log: str) -> bool:
    # The event loop shares the interpreter with the model thread; at the default of 5 ms each message would wait that
    # long for its turn.
    sys.setswitchinterval(0.0005)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_serve(settings, why_no_log))


def _loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.Loop


async def _serve(settings: EngineOptions, why_no_log: str) -> bool:
    def load(on_percent: Callable[[float], None]) -> Model:
        from engine.fill.loading import load

        return load(settings.model, cast(Device, settings.device), on_percent).model

    memory.share_one_heap()
    torch_import.defer()
    if not named(settings.model).is_test:
        # Most of the way to a first answer; it can begin during the first client's handshake.
        threading.Thread(target=_import_loader, name="imports", daemon=True).start()
    server = EngineServer(settings, load, why_no_log, _advice if settings.auto and settings.model == BUNDLED else str)
    for number in (signal.SIGINT, signal.SIGTERM):
        # Windows has no handlers on the loop; there Ctrl-C ends the loop by an exception.
        with contextlib.suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(number, server.stop, f"signal {number.name}")
    return await server.serve()


def _advice() -> str:
    """What a coder would bring to who has only the bundled model, said once on a machine."""
    from engine.models.checkpoints.choice import choose, tell_once

    return tell_once(choose())


def _import_loader() -> None:
    # Next to nothing that imports make is garbage; to look for it again and again takes a tenth of their time.
    gc.disable()
    try:
        import_module("engine.fill.loading")
    finally:
        gc.freeze()
        gc.enable()


@contextlib.contextmanager
def _logging() -> Generator[str]:
    """The log of this process; prompts and code never go there. Tracebacks of crashes have a file of their own.

    Yields why there is none, in a sentence: a home that is missing or can't be written costs nobody a suggestion.
    """
    with contextlib.ExitStack() as stack:
        why_not = ""
        try:
            with runtime_paths.log_dir_usable():
                handler = _log_file(runtime_paths.make_log_dir(), stack)
        except BadInput as error:
            handler, why_not = logging.NullHandler(), f"No log is kept. {error}"
        # What a full disk does not take is not worth a traceback each time.
        logging.raiseExceptions = False
        logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
        logging.captureWarnings(True)
        stack.callback(logging.shutdown)
        yield why_not


class _Unquoted(logging.Formatter):
    def formatException(self, ei: Any) -> str:
        return unquoted(ei[1])


def _log_file(folder: Path, stack: contextlib.ExitStack) -> logging.Handler:
    handler = logging.handlers.RotatingFileHandler(
        folder / "engine.log", maxBytes=_LOG_NBYTES, backupCount=_LOG_FILES - 1, encoding="utf-8"
    )
    stack.callback(handler.close)
    handler.setFormatter(_Unquoted("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    faulthandler.enable(_crash_file(folder / "engine.crash"))
    stack.callback(faulthandler.disable)
    return handler


def _crash_file(path: Path) -> int:
    """Where this engine's traceback would go, behind those of the engines before it."""
    if path.is_file() and path.stat().st_size > _LOG_NBYTES:
        path.replace(path.with_suffix(".crash.1"))
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, f"{time.strftime('%Y-%m-%d %H:%M:%S')} started: pid {os.getpid()}, version {__version__}\n".encode())
    return file
