"""A session from its first message to its end: one thread reads, the event loop answers, another thread writes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO

import psutil

from dg_lsp.app.routes import register
from dg_lsp.backend.client import Launch
from dg_lsp.handlers.server import DgServer
from dg_lsp.protocol.framing import Outbox

WAITING_MESSAGES = 256
"""The reader waits while so many messages are read but not handled."""
LOOK_FOR_EDITOR_S = 1.0
STUCK_S = 30.0
"""An event loop that takes no message for this long counts as stuck, and the process ends."""
END_S = 5.0
"""How long a session may take to end after its input ended or its editor is gone; then the process is killed."""
_END = object()


async def run(
    incoming: Iterator[object],
    outgoing: BinaryIO,
    launch: Launch,
    answered_initialize_id: object = None,
    begun: subprocess.Popen[bytes] | None = None,
) -> int:
    """Serve one client and return the exit code that the protocol asks for. `incoming`: its messages, as `read_json`
    returns them. The process ends in any case once the client is gone."""
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # Two threads read and write beside the event loop; at the default of 5 ms a message could wait that long for each.
    sys.setswitchinterval(0.0005)
    # It logs whole messages, users' code with them, and what it finds wrong is answered or logged here already.
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def end() -> None:
        _end_in_any_case()
        # From another thread, perhaps after the loop's own end.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(over.set)

    server = DgServer(launch, begun)
    register(server)
    outbox = Outbox(outgoing, end)
    server.rpc.set_writer(outbox)
    server.rpc.on_exit = end
    server.rpc.answered_initialize_id = answered_initialize_id
    # What is imported by now stays; to walk through it again and again would hold up answers.
    gc.freeze()
    inbox = Inbox(incoming, server.rpc.take)
    taking = asyncio.create_task(inbox.take_all(), name="inbox")
    taking.add_done_callback(lambda _: over.set())
    threading.Thread(target=_watch_editor, args=(server, end), name="editor watch", daemon=True).start()
    await over.wait()
    # A handler that starts now would be abandoned.
    taking.cancel()
    server.rpc.give_up()
    await server.finish()
    outbox.close()
    return 0 if server.rpc.was_shut_down else 1


class Inbox:
    """Queue of messages from the thread that reads them to the event loop that handles them."""

    def __init__(self, incoming: Iterator[object], take: Callable[[object], None]) -> None:
        self._incoming = incoming
        self._take = take
        self._waiting = asyncio.Queue[object]()
        self._slots = threading.Semaphore(WAITING_MESSAGES)
        self._loop = asyncio.get_running_loop()
        # At once: it sees the end of the input even where the loop never gets as far as to take anything.
        threading.Thread(target=self._read, name="reader", daemon=True).start()

    async def take_all(self) -> None:
        """Handle messages, one in each turn of the event loop, so that other tasks run between two."""
        while (message := await self._waiting.get()) is not _END:
            self._slots.release()
            self._take(message)
            await asyncio.sleep(0)

    def _read(self) -> None:
        with contextlib.suppress(RuntimeError):  # The loop is over.
            for message in self._incoming:
                if not self._slots.acquire(timeout=STUCK_S):
                    break
                self._loop.call_soon_threadsafe(self._waiting.put_nowait, message)
            _end_in_any_case()
            self._loop.call_soon_threadsafe(self._waiting.put_nowait, _END)


def _end_in_any_case() -> None:
    # Whatever holds up the loop or the disk: nobody is left to stop the process.
    timer = threading.Timer(END_S, os._exit, (1,))
    timer.daemon = True
    timer.start()


def _watch_editor(server: DgServer, end: Callable[[], None]) -> None:
    """End the session when the editor's process is gone: another child of it may hold its pipes open."""
    while server.editor.pid is None or psutil.pid_exists(server.editor.pid):
        time.sleep(LOOK_FOR_EDITOR_S)
    end()
