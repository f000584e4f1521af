"""The engine's end of the process that checks syntax: the order of questions, their deadlines, and a new process when
one ends.

A document may crash a parser, or keep it busy for ever. Then the process ends or is killed, the requests for that
document go on without an answer, and the next question goes to a new process. Without an answer a fill is offered
unchecked, an edit is not offered, and a list of actions fails as late.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import psutil

from engine.common.errors import ProtocolError
from engine.common.frames import HEAD_NBYTES, announced
from engine.common.processes import python_module
from engine.syntax.questions import Question, Reply, SyntaxCheck
from engine.syntax.suspects import Suspects
from engine.syntax.wire import MOST_NBYTES, packed_question, unpacked_reply

_log = logging.getLogger(__name__)
COMMAND = python_module("engine.syntax.child")
_SLOWER = 4.0
"""Wall time for each second of processor time, after which a child counts as hung. A child that waits for its turn on a
busy machine is not hung, and gets all of its processor time."""
_GRACE_S = 0.25
"""Processor seconds by which a child that stops by itself may be late."""
_TICK_S, _LEAST_TICK_S = 0.25, 0.02
_LONG_S = 1.0
"""Seconds that a question goes on after nobody waits for it."""
_RECENT_S = 60.0
_FIRST_REST_S, _LAST_REST_S = 0.1, 2.0
"""Shortest and longest rest before a new child: starting one takes half a second of a processor, so starts take at most
a fifth of its time."""
_WAITED_FOR_S = 0.5
"""Longest rest that requests wait for; in a longer one nothing is checked."""
_FREE_DEATHS = 2
"""Recent deaths without a rest: by then one document is set aside."""
_CRASHES_NBYTES = 256 * 1024
_CREATION_FLAGS = 0
if sys.platform == "win32":
    _CREATION_FLAGS = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW


@dataclass(slots=True, kw_only=True, eq=False)
class Ticket:
    """A question that waits or is being answered."""

    check: SyntaxCheck
    urgency: int
    """Tickets with the lowest number go first."""
    deliver: Callable[[Reply | None], None]
    """Called once, on the loop's thread."""
    wanted: Callable[[], bool] = lambda: True
    """Whether anybody still waits."""
    delivered: bool = False
    timer: asyncio.TimerHandle | None = field(default=None, repr=False)

    def settle(self) -> None:
        """Deliver nothing from now on, and stop the timer."""
        self.delivered = True
        if self.timer:
            self.timer.cancel()


class Checker:
    """Manages the process that checks syntax. All methods belong to one event loop."""

    def __init__(
        self,
        *,
        crashes: Path | None = None,
        command: tuple[str, ...] = COMMAND,
    ) -> None:
        """`crashes`: the file for a crashing child's output."""
        self._loop = asyncio.get_running_loop()
        self._crashes = crashes
        self._command = command
        self._waiting: list[Ticket] = []
        self._come = asyncio.Event()
        self._suspects = Suspects(self._loop.time)
        self._deaths: deque[float] = deque()
        self._resting = False
        self._child: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._ending: asyncio.Future[None] | None = None
        self._tried = asyncio.Event()
        self.restarts = 0

    @property
    def aside(self) -> int:
        """How many documents are set aside."""
        return self._suspects.aside

    @property
    def pid(self) -> int | None:
        """The process number of the child; None while there is none."""
        return self._child.pid if self._child else None

    async def start(self) -> None:
        """Start the child without waiting until it is up; questions may be submitted before."""
        self._task = asyncio.create_task(self._run(), name="checker")
        await self._tried.wait()

    async def close(self) -> None:
        """End the child; waiting tickets get no answer."""
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self._ending:
            with contextlib.suppress(OSError):
                await self._ending
        self._give_up()

    def submit(self, ticket: Ticket) -> None:
        """Queue a question: `ticket.deliver` is called with the answer or None, in time for its asker."""
        if self._resting or self._is_aside(ticket.check.question):
            self._deliver(ticket, None)
            return
        if ticket.check.left_ms < math.inf:
            ticket.timer = self._loop.call_later(ticket.check.left_ms / 1000, self._deliver, ticket, None)
        self._waiting.append(ticket)
        self._come.set()

    def _deliver(self, ticket: Ticket, reply: Reply | None) -> None:
        if not ticket.delivered:
            ticket.settle()
            ticket.deliver(reply)

    def _give_up(self) -> None:
        waiting, self._waiting = self._waiting, []
        for ticket in waiting:
            self._deliver(ticket, None)

    def _is_aside(self, question: Question) -> bool:
        return self._suspects.is_aside(question.text, question.language)

    async def _run(self) -> None:
        while True:
            try:
                with self._crash_file() as said:
                    await self._live(said)
            except OSError as error:
                _log.warning("the process that checks syntax can't be started: %s", error)
                self._note_death()
                self._tried.set()
            self.restarts += 1
            await self._rest()

    async def _live(self, said: IO[bytes] | int) -> None:
        """One child, from its start to its end."""
        starting = asyncio.ensure_future(self._started(said))
        try:
            child = await asyncio.shield(starting)
            self._child = child
            self._tried.set()
            await self._serve(child)
        finally:
            self._child = None
            self._ending = asyncio.ensure_future(_end(starting))
            await asyncio.shield(self._ending)

    async def _started(self, said: IO[bytes] | int) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            # Not asked to end with the engine's console: it ends with the pipe.
            start_new_session=sys.platform != "win32",
            creationflags=_CREATION_FLAGS,
        )

    async def _serve(self, child: asyncio.subprocess.Process) -> None:
        """Ask one question after the other; returns when the child has ended."""
        ending = asyncio.ensure_future(child.wait())
        ending.add_done_callback(lambda _: self._come.set())
        try:
            while ticket := await self._next(ending):
                if not await self._ask(child, ticket):
                    return
        finally:
            ending.cancel()
        _log.warning("the process that checks syntax ended, with %s", child.returncode)
        self._note_death()

    async def _next(self, ending: asyncio.Future[int]) -> Ticket | None:
        """The most urgent question; None where the child ends before there is one."""
        while not ending.done():
            self._come.clear()
            for each in self._waiting:
                if not each.wanted():
                    each.settle()
            self._waiting = [each for each in self._waiting if not each.delivered]
            # Of equals the first.
            ticket = min(self._waiting, key=lambda each: each.urgency, default=None)
            if ticket is None:
                await self._come.wait()
                continue
            self._waiting.remove(ticket)
            if not self._is_aside(ticket.check.question):
                return ticket
            self._deliver(ticket, None)
        return None

    async def _ask(self, child: asyncio.subprocess.Process, ticket: Ticket) -> bool:
        """Put a question to the child. Returns whether the child still lives."""
        assert child.stdin
        assert child.stdout
        question = ticket.check.question
        budget_ms = self._suspects.budget_ms(question.text, question.language, ticket.check.budget_ms)
        watch = _Watch(self._loop, child, budget_ms / 1000, ticket.wanted)
        try:
            child.stdin.write(packed_question(question, budget_ms, (watch.most_s + _LONG_S) * 1000))
            nbytes = announced(await child.stdout.readexactly(HEAD_NBYTES), MOST_NBYTES)
            reply, out_of_time = unpacked_reply(await child.stdout.readexactly(nbytes), question)
        except (OSError, asyncio.IncompleteReadError, ProtocolError) as error:
            self._mourn(ticket, watch, error)
            return False
        finally:
            watch.stop()
        self._suspects.took(question.text, question.language, out_of_time=out_of_time)
        self._deliver(ticket, reply)
        return True

    def _mourn(self, ticket: Ticket, watch: _Watch, error: Exception) -> None:
        question = ticket.check.question
        _log.warning(
            "the process that checks syntax %s over a document of %d characters of %s",
            "was killed" if watch.killed else f"ended ({type(error).__name__})",
            len(question.text),
            question.language,
        )
        self._note_death()
        # What was only given up is no document's fault.
        if not watch.given_up and self._suspects.accuse(question.text, question.language):
            _log.warning("that document is set aside")
        self._deliver(ticket, None)

    def _note_death(self) -> None:
        now = self._loop.time()
        self._deaths.append(now)
        while self._deaths[0] < now - _RECENT_S:
            self._deaths.popleft()

    async def _rest(self) -> None:
        """Wait before the next child, the longer the more deaths there were lately."""
        seconds = rest_s(len(self._deaths))
        if seconds > _WAITED_FOR_S:
            self._resting = True
            self._give_up()
        await asyncio.sleep(seconds)
        self._resting = False

    def _crash_file(self) -> contextlib.AbstractContextManager[IO[bytes] | int]:
        """The file to which a crashing child's words are added."""
        if self._crashes is None:
            return contextlib.nullcontext(subprocess.DEVNULL)
        with contextlib.suppress(OSError):
            too_long = self._crashes.exists() and self._crashes.stat().st_size > _CRASHES_NBYTES
            return self._crashes.open("wb" if too_long else "ab")
        return contextlib.nullcontext(subprocess.DEVNULL)


def rest_s(deaths: int) -> float:
    """Seconds without a child after so many recent deaths."""
    excess = deaths - _FREE_DEATHS
    # Doubled no oftener than a number can be.
    return min(_FIRST_REST_S * 2 ** (min(excess, 16) - 1), _LAST_REST_S) if excess > 0 else 0.0


class _Watch:
    """Kills a child that takes too long, or goes on long after nobody waits for its answer."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        child: asyncio.subprocess.Process,
        budget_s: float,
        wanted: Callable[[], bool],
    ) -> None:
        self._loop, self._child, self._wanted = loop, child, wanted
        self.most_s = budget_s + _GRACE_S
        """Most processor seconds."""
        self._began = loop.time()
        self._spent_before_s: float | None = None
        self.killed = self.given_up = False
        self._timer = loop.call_later(_TICK_S, self._look)

    def stop(self) -> None:
        """Stop watching: the child has answered, or is dead."""
        self._timer.cancel()

    def _look(self) -> None:
        passed_s = self._loop.time() - self._began
        spent_s = self._spent_s()
        # It is not asked how long the process has run before each question: few come to a first look.
        if self._spent_before_s is None:
            self._spent_before_s = spent_s - min(passed_s, _TICK_S)
        self.given_up = self.most_s > _LONG_S and passed_s >= _LONG_S and not self._wanted()
        left_s = self.most_s - (spent_s - self._spent_before_s)
        if not self._is_running():
            left_s = min(left_s, _SLOWER * self.most_s - passed_s)
        if self.given_up or left_s <= 0:
            self.killed = True
            with contextlib.suppress(ProcessLookupError):
                self._child.kill()
        else:
            self._timer = self._loop.call_later(min(_TICK_S, max(left_s, _LEAST_TICK_S)), self._look)

    def _is_running(self) -> bool:
        """Whether the child runs or waits for its turn; Windows does not tell."""
        try:
            return sys.platform != "win32" and psutil.Process(self._child.pid).status() == psutil.STATUS_RUNNING
        except psutil.Error:
            return False

    def _spent_s(self) -> float:
        try:
            times = psutil.Process(self._child.pid).cpu_times()
        except psutil.Error:
            return 0.0
        return times.user + times.system


async def _end(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    """Kill a child, and let go of its pipes."""
    child = await starting
    with contextlib.suppress(ProcessLookupError):
        child.kill()
    with contextlib.suppress(OSError):
        await child.communicate()
