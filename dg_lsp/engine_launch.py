"""Starting an engine: in a process of its own that outlives the language server."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from dataclasses import dataclass

from dg_lsp.engine_connection import EngineFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How an engine is started when none runs."""

    model: str = ""
    """Empty: the engine's default."""
    device: str = ""
    """Empty: the best there is."""
    unload_after_s: float | None = None
    exit_after_s: float | None = None
    python: tuple[str, ...] = (sys.executable, "-m", "engine")

    def command(self) -> list[str]:
        """The command line; it returns once the engine answers, or with a sentence on stderr."""
        command = [*self.python, "run", "--detach"]
        if self.model:
            command += ["--model", self.model]
        if self.device:
            command += ["--device", self.device]
        if self.unload_after_s is not None:
            command += ["--unload-after", str(self.unload_after_s)]
        if self.exit_after_s is not None:
            command += ["--exit-after", str(self.exit_after_s)]
        return command


async def start(launch: Launch) -> None:
    """Start an engine, or find that one runs by now. Raises EngineFailure with the starter's own sentence."""
    process = await asyncio.create_subprocess_exec(
        *launch.command(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, errors = await process.communicate()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    if process.returncode:
        lines = errors.decode(errors="replace").strip().splitlines()
        raise EngineFailure("unavailable", lines[-1] if lines else "The engine did not start; run `dg-lsp doctor`.")
