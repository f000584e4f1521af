"""Starting an engine: in a process of its own that outlives the language server."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from dataclasses import dataclass

from engine.core.processes import neutral_dir, python_module
from engine.core.version import __version__
from engine.ipc.client import EngineFailure
from engine.ipc.messages import EngineStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How an engine is started when none runs."""

    model: str = ""
    """Empty: the engine's default."""
    device: str = ""
    """Empty: the best there is."""
    unload_after_s: float | None = None
    exit_after_s: float | None = None
    engine: tuple[str, ...] = python_module("engine")

    def command(self) -> list[str]:
        """The command line; it returns once the engine answers, or with a sentence on stderr."""
        options = (word for name, value in self.options().items() for word in (name, value))
        return [*self.engine, "run", "--detach", *options]

    def options(self) -> dict[str, str]:
        """What is not left to the engine, by the names that `dg-lsp engine run` has for it."""
        options = {
            "--model": self.model,
            "--device": self.device,
            "--unload-after": _seconds(self.unload_after_s),
            "--exit-after": _seconds(self.exit_after_s),
        }
        return {name: value for name, value in options.items() if value}


def difference(wanted: Launch, running: EngineStatus) -> str:
    """Where an engine runs otherwise than it would be started, a sentence with the way out; else nothing."""
    if running.engine != __version__:
        return (
            f"The engine is of dg-lsp {running.engine}, this window of {__version__}. It is replaced when the last "
            f"window of {running.engine} closes; `dg-lsp engine restart` does it now, for all editors."
        )
    device = wanted.device if _is_on(wanted.device, running) else running.device_asked
    has = {
        "--model": running.model,
        "--device": device,
        "--unload-after": _seconds(running.unload_after_s),
        "--exit-after": _seconds(running.exit_after_s),
    }
    other = {name: value for name, value in wanted.options().items() if has[name] != value}
    if not other:
        return ""
    runs = ", ".join(f"{name.lstrip('-')} {has[name]}" for name in other)
    options = " ".join(f"{name} {shlex.quote(value)}" for name, value in other.items())
    return (
        f"The engine runs with {runs}, not as the settings say; `dg-lsp engine restart {options}` changes that "
        "for all editors."
    )


def _seconds(time_s: float | None) -> str:
    return "" if time_s is None else f"{time_s:g}"


def _is_on(device: str, running: EngineStatus) -> bool:
    # Which device "auto" leads to is known once the weights are loaded.
    return device == "auto" or running.device == "auto" or running.device.startswith(device)


async def start(launch: Launch) -> None:
    """Start an engine, or find that one runs by now. Raises EngineFailure with the starter's own sentence."""
    try:
        process = await asyncio.create_subprocess_exec(
            *launch.command(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            cwd=neutral_dir(),  # A project that an editor stands in must not say what a name means.
        )
    except OSError as error:
        raise EngineFailure("unavailable", f"The engine can't be started ({error}); run `dg-lsp doctor`.") from None
    try:
        _, errors = await process.communicate()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    if process.returncode:
        lines = errors.decode(errors="replace").strip().splitlines()
        said = lines[-1].removeprefix("dg-lsp: ") if lines else "The engine did not start; run `dg-lsp doctor`."
        raise EngineFailure("unavailable", said)
