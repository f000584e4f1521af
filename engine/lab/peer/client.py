"""Start llama.cpp's process and ask it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Literal, Self, TypeVar

import msgspec
import platformdirs
from msgspec import Struct

from engine.common.errors import BadInput, EngineError
from engine.models.checkpoints.catalog import find
from engine.models.checkpoints.working import CONTEXT

NAME = "llama.cpp"
FOLDER = "DG_LSP_PEER"
"""The environment variable that names the virtual environment where it is not the one that `make bench-peer` makes."""
Order = Literal["published", "suffix first"]
"""Of a prompt: what precedes the gap and then what follows it, as coders were trained; or ours, where typing only
appends."""
_INSIDE = Path(__file__).with_name("inside.py")
_GGUF = ".gguf"
_PATIENCE_S = 5.0
_T = TypeVar("_T")


class PeerAbout(Struct, frozen=True, kw_only=True):
    """What answers."""

    version: str
    """Of the package llama-cpp-python."""
    system: str
    """What llama.cpp was built for."""
    load_ms: float


class PeerAnswer(Struct, frozen=True, kw_only=True):
    text: str
    tokens: int
    """Written, without the one that ended the answer."""
    prompt_tokens: int
    ended: bool
    """Whether the model ended it."""
    ms: float
    """From text to text, in its own process."""


class _Prefill(Struct, frozen=True, kw_only=True):
    ms: float


class _Failed(Struct, frozen=True, kw_only=True):
    error: str


class LlamaCpp:
    """A coder that llama.cpp serves in a process of its own. Not thread-safe."""

    about: PeerAbout

    def __init__(self, file: Path, *, threads: int, context: int, python: Path | None = None) -> None:
        """`file`: a GGUF; `context`: tokens of a prompt at the most; `python`: of an environment with llama-cpp-python.
        Raises BadInput where there is none, EngineError where it does not start."""
        command = [str(python or peer_python()), "-I", str(_INSIDE), str(file), str(threads), str(context)]
        with ExitStack() as held:
            self._log = held.enter_context(tempfile.TemporaryFile())
            self._process = _started(command, self._log)
            held.callback(_end, self._process)
            self.about = self._read(PeerAbout)
            self._held = held.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
        """What it writes between two texts, greedily, until it says that the answer ends; with `first_line`, at most to
        the end of the first line that has something on it. `fresh`: nothing is kept of what was asked before. Raises
        EngineError."""
        said = {"prefix": prefix, "suffix": suffix, "order": order, "max_tokens": max_tokens}
        return self._ask("fill", PeerAnswer, **said, first_line=first_line, fresh=fresh)

    def prefill(self, tokens: int) -> float:
        """Milliseconds that reading a context of so many tokens takes. Raises EngineError."""
        return self._ask("prefill", _Prefill, tokens=tokens).ms

    def chat(self, messages: Sequence[Mapping[str, str]], *, max_tokens: int, fresh: bool = False) -> PeerAnswer:
        """What it answers to messages (each with `role` and `content`), greedily, by the template that is in the file.
        Raises EngineError."""
        said = [dict(message) for message in messages]
        return self._ask("chat", PeerAnswer, messages=said, max_tokens=max_tokens, fresh=fresh)

    def close(self) -> None:
        self._held.close()

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
                raise EngineError(f"{NAME} can't do that: {msgspec.convert(said, _Failed).error}.")
            return msgspec.convert(said, kind)
        except msgspec.MsgspecError as error:
            raise EngineError(f"{NAME} answered what makes no sense ({error}): build its environment anew.") from None

    def _ended(self) -> EngineError:
        self._log.seek(0)
        said = [line.strip() for line in self._log.read().decode(errors="replace").splitlines() if line.strip()]
        return EngineError(f"{NAME} ended ({said[-1] if said else 'without a word'}): ask it for less.")


def _started(command: Sequence[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, bufsize=0)
    except OSError as error:
        raise EngineError(f"{command[0]} does not start ({error.strerror}): build its environment anew.") from None


def _end(process: subprocess.Popen[bytes]) -> None:
    """It ends by itself when nothing more can be asked."""
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Beside:
    """A peer with the file of a model, which starts when it is first asked."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._held = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    @cached_property
    def peer(self) -> LlamaCpp:
        """Raises as `peer_of` does."""
        return self._held.enter_context(peer_of(self._name))


def peer_of(name: str) -> LlamaCpp:
    """llama.cpp with the file that a model's name means, and as many threads as ours may have. Raises as it does,
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
