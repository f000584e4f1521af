"""Starts llama.cpp's process and sends it requests."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from subprocess import PIPE
from typing import Any, Literal, Self, TypeVar

import msgspec
import platformdirs
from msgspec import Struct

from engine.common.errors import BadInput, EngineError
from engine.models.checkpoints.catalog import find
from engine.models.checkpoints.working import CONTEXT

NAME = "llama.cpp"
FOLDER = "DG_LSP_PEER"
"""The environment variable for a virtual environment other than the one that `make bench-peer` makes."""
Order = Literal["published", "suffix first"]
"""The order of a prompt: prefix, then suffix, as coders were trained; or the suffix first, as ours, where typing only
appends."""
_INSIDE = Path(__file__).with_name("inside.py")
_GGUF = ".gguf"
_PATIENCE_S = 5.0
_T = TypeVar("_T")


class PeerAbout(Struct, frozen=True, kw_only=True):
    """What the process says of itself."""

    version: str
    """The version of the package llama-cpp-python."""
    system: str
    """The instruction sets that llama.cpp was built for."""


class PeerAnswer(Struct, frozen=True, kw_only=True):
    text: str
    tokens: int
    """Tokens written, without the one that ended the answer."""
    prompt_tokens: int
    ended: bool
    """Whether the model ended it."""
    ms: float
    """Time from text to text, measured in its process."""


class LlamaCpp:
    """A coder that llama.cpp serves in a process of its own. Not thread-safe."""

    about: PeerAbout

    def __init__(self, file: Path, *, threads: int, context: int, python: Path | None = None) -> None:
        """`file`: a GGUF; `context`: most tokens of a prompt; `python`: of an environment with llama-cpp-python. Raises
        BadInput where there is none, EngineError where the process does not start."""
        command = [str(python or peer_python()), "-I", str(_INSIDE), str(file), str(threads), str(context)]
        with ExitStack() as held:
            self._log = held.enter_context(tempfile.TemporaryFile())
            try:
                self._process = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=self._log, bufsize=0)
            except OSError as error:
                said = f"{command[0]} does not start ({error.strerror}): build its environment anew."
                raise EngineError(said) from None
            held.callback(_end, self._process)
            self.about = self._read(PeerAbout)
            self._held = held.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def fill(
        self,
        prefix: str,
        suffix: str,
        *,
        order: Order = "published",
        max_tokens: int = 96,
        first_line: bool = False,
        fresh: bool = False,
    ) -> PeerAnswer:
        """A greedy fill between two texts, up to where the model ends it; with `first_line`, at most to the end of the
        first line that is not blank. `fresh`: with an empty cache. Raises EngineError."""
        said = {"prefix": prefix, "suffix": suffix, "order": order, "max_tokens": max_tokens}
        return self._ask("fill", PeerAnswer, **said, first_line=first_line, fresh=fresh)

    def prefill(self, tokens: int) -> float:
        """The time of a prefill of so many tokens, in milliseconds. Raises EngineError."""
        return self._ask("prefill", dict[str, float], tokens=tokens)["ms"]

    def chat(self, messages: Sequence[Mapping[str, str]], *, max_tokens: int) -> PeerAnswer:
        """The greedy answer to messages (each with `role` and `content`), by the template in the file. Raises
        EngineError."""
        said = [dict(message) for message in messages]
        return self._ask("chat", PeerAnswer, messages=said, max_tokens=max_tokens)

    def _ask(self, do: str, kind: type[_T], **said: Any) -> _T:
        assert self._process.stdin
        try:
            self._process.stdin.write(msgspec.json.encode({"do": do, **said}) + b"\n")
        except OSError:
            raise self._ended() from None
        return self._read(kind)

    def _read(self, kind: type[_T]) -> _T:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            raise self._ended()
        try:
            said = msgspec.json.decode(line, type=dict[str, Any])
            if "error" in said:
                raise EngineError(f"{NAME} can't do that: {said['error']}.")
            return msgspec.convert(said, kind)
        except msgspec.MsgspecError as error:
            raise EngineError(f"{NAME} answered what makes no sense ({error}): build its environment anew.") from None

    def _ended(self) -> EngineError:
        self._log.seek(0)
        said = [line.strip() for line in self._log.read().decode(errors="replace").splitlines() if line.strip()]
        return EngineError(f"{NAME} ended ({said[-1] if said else 'without a word'}): ask it for less.")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process: it ends by itself once its input is closed, else it is killed."""
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Beside(ExitStack):
    """llama.cpp with the file of a model; it starts when it is first used."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    @cached_property
    def peer(self) -> LlamaCpp:
        """The running process. Raises as `peer_of` does."""
        return self.enter_context(peer_of(self._name))


def peer_of(name: str) -> LlamaCpp:
    """llama.cpp with the file that a model's name means, and as many threads as ours has. Raises as `LlamaCpp` does,
    and BadInput where the model is no GGUF."""
    file = find(name).path
    if file.suffix.lower() != _GGUF:
        raise BadInput(f"{name} is no GGUF, which is all that {NAME} reads: name one with --model.")
    import torch

    return LlamaCpp(file, threads=torch.get_num_threads(), context=CONTEXT)


def peer_python() -> Path:
    """The Python of the environment that `make bench-peer` makes, or that DG_LSP_PEER names. Raises BadInput."""
    given = os.environ.get(FOLDER)
    folder = Path(given) if given else platformdirs.user_cache_path("dg-lsp") / "llama.cpp"
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not python.is_file():
        raise BadInput(f"{folder} has no {NAME}: run `make bench-peer`, or set {FOLDER} to an environment with it.")
    return python
