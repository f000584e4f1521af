"""How many functions a warm key goes through, from its handler to the model's step: of the bundled model, of a coder,
which runs where one is on disk, and of the oracle, whose keys go the bundled model's way.

Counted are the functions that hand the key on: those that are on the stack where the request leaves the server, where
the engine queues it, where its context is encoded and where the model is asked for a step, or to check drafts; and,
where the stack breaks, those that made the task or hold the generator. Not counted are their helpers, which return
before the key goes on, and the loops of connections and threads, which were entered long before it.
"""

from __future__ import annotations

import asyncio
import sys
import weakref
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from engine.fill.loading import load
from engine.models.base import Model
from engine.models.canvas_model import CanvasModel
from engine.models.causal.model import Causal
from engine.models.gemma.model import DiffusionGemma
from engine.models.oracle.model import Case, Oracle
from engine.server.scheduler import Scheduler
from tests.dg_lsp.handlers.test_server import URI, Session
from tests.engine.coder import open_model, write_coder
from tests.engine.processes import home
from tests.engine.server.test_server import serving

ROOT = Path(__file__).parents[1]
PACKAGES, HANDLERS = (str(ROOT / "dg_lsp"), str(ROOT / "engine")), str(ROOT / "dg_lsp" / "handlers")
QUEUES = Scheduler.submit.__code__
MOST_FUNCTIONS, MOST_FILES = 18, 13
CODE = "x = ▮len(y)▮\n"


class KeyPath:
    """Watches key after key on its way."""

    def __init__(self) -> None:
        self.functions = dict[CodeType, None]()
        """Those that hand on the key that is under way, in the order in which they were met."""
        self.is_there = False
        """Whether the model's step was reached."""
        self._entered = list[FrameType]()
        self._loops = list[FrameType]()
        self._makers = weakref.WeakKeyDictionary[asyncio.Task[Any], list[FrameType]]()

    def begin(self) -> None:
        """The next key comes; what was entered before and goes on is a loop."""
        self._loops, self._entered = self._entered, []
        self.functions.clear()
        self.is_there = False

    def task(self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        """A task factory that keeps who made each task."""
        task = asyncio.Task(work, loop=loop, **options)
        self._makers[task] = [*self._made_by(), *stack(sys._getframe(1))]
        return task

    def here(self, caller: FrameType, called: CodeType) -> None:
        """The key is handed on by `caller`; what is `called` to queue it hands it on itself."""
        if self.is_there:
            return
        frames = [*self._made_by(), *stack(caller)]
        self._entered += frames
        at_handler = [frame.f_code.co_filename.startswith(HANDLERS) for frame in frames]
        frames = frames[at_handler.index(True) if any(at_handler) else 0 :]
        codes = [frame.f_code for frame in frames if not any(frame is loop for loop in self._loops)]
        codes += [code for generator in held(caller) for code in chain(generator)]
        codes += [called] if called is QUEUES else []
        self.functions |= dict.fromkeys(code for code in codes if code.co_filename.startswith(PACKAGES))

    def _made_by(self) -> list[FrameType]:
        try:
            task = asyncio.current_task()
        except RuntimeError:
            return []
        return self._makers.get(task, []) if task else []


def stack(frame: FrameType | None) -> list[FrameType]:
    """From the outermost function to this one."""
    frames: list[FrameType] = []
    while frame:
        frames.insert(0, frame)
        frame = frame.f_back
    return frames


def held(frame: FrameType) -> list[Generator[Any, Any, Any]]:
    """The generators of the jobs that callers are at."""
    jobs = [job for each in stack(frame) for job in each.f_locals.get("jobs", ())]
    return [job.filling for job in jobs if job.filling is not None]


def chain(generator: Any) -> Iterator[CodeType]:
    """A generator, and those that it waits for."""
    while generator is not None and hasattr(generator, "gi_code"):
        yield generator.gi_code
        generator = generator.gi_yieldfrom


def bundled(folder: Path) -> Model:
    return load("bundled", "cpu").model


def coder(folder: Path) -> Model:
    return open_model(write_coder(folder / "tiny.gguf"))


def oracle(folder: Path) -> Model:
    return Oracle("oracle", [Case(text=CODE), Case(text=f"y = 1\n{CODE}"), Case(text=f"y = 1\ny = 1\n{CODE}")])


@pytest.mark.asyncio
@pytest.mark.parametrize("model", [bundled, coder, oracle])
async def test_a_warm_key_takes_few_steps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: Callable[[Path], Model]
):
    path = KeyPath()
    with home() as place:
        for name in ("DG_LSP_RUNTIME_DIR", "DG_LSP_STATE_DIR"):
            monkeypatch.setenv(name, place.environment[name])
        with serving(place, lambda on_percent: model(tmp_path)):
            session = Session()
            await session.begin()
            session.server.configuration.initialize({"enabled": True})
            await session.open("x = \n")
            await session.server.resident.wait_until_ready()
            # Nothing warms up behind a first answer.
            await ask(session, 1, line=0)
            for owner, name in (
                (asyncio.StreamWriter, "write"),
                (Scheduler, "submit"),
                (DiffusionGemma, "encode"),
                (CanvasModel, "step"),
                (Causal, "encode"),
                (Causal, "check"),
                (Oracle, "encode"),
                (Oracle, "step"),
            ):
                monkeypatch.setattr(owner, name, seen(path, getattr(owner, name)))
            asyncio.get_running_loop().set_task_factory(path.task)
            for id, line in ((2, 1), (3, 2)):
                path.begin()
                await session.change("y = 1\n")
                await ask(session, id, line=line)
                assert path.is_there
            await session.server.finish()
    names = [f"{Path(code.co_filename).relative_to(ROOT)}: {code.co_qualname}" for code in path.functions]
    assert len(names) <= MOST_FUNCTIONS, "\n".join(names)
    assert len({name.partition(":")[0] for name in names}) <= MOST_FILES, "\n".join(names)


def seen(path: KeyPath, function: Any) -> Any:
    def seeing(*args: Any, **kwargs: Any) -> Any:
        path.here(sys._getframe(1), function.__code__)
        path.is_there |= function.__name__ in ("step", "check")
        return function(*args, **kwargs)

    return seeing


async def ask(session: Session, id: int, line: int) -> dict[str, Any]:
    """The answer to a question for a suggestion after `x = `."""
    params = {"textDocument": {"uri": URI}, "position": {"line": line, "character": 4}, "context": {"triggerKind": 2}}
    await session.send("textDocument/inlineCompletion", params, id=id)
    async with asyncio.timeout(30):
        while not (found := [each for each in session.told if each.get("id") == id and "method" not in each]):
            await asyncio.sleep(0.01)
    return found[0]["result"]
