"""Starting an engine, in a process that outlives the language server. It starts before the rest of the language server
is imported, so this module imports next to nothing."""

from __future__ import annotations

import json
import shlex
import subprocess
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from dg_lsp.config.settings import EngineSettings
from engine.common.names import AUTO, rooted
from engine.common.processes import at_home, home_dir, neutral_dir, python_module
from engine.common.server_address import with_options
from engine.common.version import __version__

if TYPE_CHECKING:
    from engine.common.messages import EngineStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How an engine is started when none runs. All fields but the last are named as the engine's options."""

    model: str = ""
    """Empty: the engine's default."""
    device: str = ""
    """Empty: the best device there is."""
    unload_after_s: float | None = None
    exit_after_s: float | None = None
    http: str = ""
    http_token_file: str = ""
    starter: tuple[str, ...] = (*python_module("engine.server"), "--detach")

    def chosen(self, settings: EngineSettings) -> Launch:
        """The same, with an editor's settings for what it leaves open."""
        named = self.model or settings.model
        model = with_options(
            # What it is there, the engine says.
            "" if named == AUTO else named,
            tokenizer=settings.tokenizer,
            ca_file=settings.ca_file,
            key_file=settings.key_file,
            allow_insecure=settings.allow_insecure,
        )
        return replace(
            self,
            # Not of the working directory, which is the editor's choice or the project.
            model=rooted(model, home_dir()),
            device=self.device or settings.device,
            unload_after_s=settings.unload_after_s,
            exit_after_s=settings.exit_after_s,
            http=settings.http,
            http_token_file=settings.http_token_file and str(home_dir() / at_home(settings.http_token_file)),
        )

    def command(self) -> list[str]:
        """The command line. It exits once the engine answers, or with a sentence on stderr."""
        return [*self.starter, json.dumps(self.options())]

    def options(self) -> dict[str, str | float]:
        """The options that are set."""
        return {
            field.name: value
            for field in fields(self)
            if field.name != "starter" and (value := getattr(self, field.name)) not in ("", None)
        }


def is_other_release(running: EngineStatus) -> bool:
    """Whether an engine is of another release than this package."""
    return running.engine != __version__


def difference(wanted: Launch, running: EngineStatus) -> str:
    """A sentence about how a running engine differs from `wanted`, with a remedy; empty if it does not."""
    if is_other_release(running):
        return (
            f"The engine is of dg-lsp {running.engine}, this window of {__version__}. It is replaced when the last "
            f"window of {running.engine} closes; `dg-lsp engine restart` does it now, for all editors."
        )
    # Which device "auto" leads to is known once the weights are loaded.
    is_there = "auto" in (wanted.device, running.device) or running.device.startswith(wanted.device)
    device = wanted.device if is_there else running.requested_device
    unload_s, exit_s = running.unload_after_s, running.exit_after_s
    has = Launch(
        model=running.model,
        device=device,
        unload_after_s=unload_s,
        exit_after_s=exit_s,
        http=running.http,
        http_token_file=running.http_token_file,
    ).options()
    other = {name: value for name, value in wanted.options().items() if has.get(name) != value}
    if not other:
        return ""
    runs = ", ".join(f"{_option(name)} {_word(has.get(name, 'none'))}" for name in other)
    options = " ".join(f"--{_option(name)} {shlex.quote(_word(value))}" for name, value in other.items())
    return (
        f"The engine runs with {runs}, not as the settings say; `dg-lsp engine restart {options}` changes that "
        "for all editors."
    )


def _option(name: str) -> str:
    """The option's name for `dg-lsp engine restart`."""
    return name.removesuffix("_s").replace("_", "-")


def _word(value: str | float) -> str:
    return value if isinstance(value, str) else str(value).removesuffix(".0")


def begin(launch: Launch) -> subprocess.Popen[bytes]:
    """Start an engine; `started` waits for it. Raises EngineFailure."""
    return _process(launch.command())


def begin_restart() -> subprocess.Popen[bytes]:
    """Replace the running engine by one of this release, with the same options; `started` waits for it. Raises
    EngineFailure."""
    return _process([*python_module("engine"), "restart"])


def _process(command: list[str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=neutral_dir(),  # A project that an editor stands in must not say what a name means.
        )
    except OSError as error:
        from engine.common.client import EngineFailure

        raise EngineFailure("unavailable", f"The engine can't be started ({error}); run `dg-lsp doctor`.") from None
