"""A session from its first message to its end: a thread reads, the event loop answers, another thread writes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO

from dg_lsp.app.processes import is_alive
from dg_lsp.app.routes import register
from dg_lsp.app.server import Server
from dg_lsp.backend.client import Launch
from dg_lsp.protocol.framing import Outbox

WAITING_MESSAGES = 256
"""Read but not handled; the reader waits when there are so many."""
LOOK_FOR_EDITOR_S = 1.0
STUCK_S = 30.0
"""An event loop that takes no message for so long will not come back."""
END_S = 5.0
"""For a session to end once its input did, or its editor is gone; then the process ends without it."""


def run(incoming: Iterator[bytes], outgoing: BinaryIO, launch: Launch, greeted_id: object = None) -> int:
    """Serve one client; the exit code that the protocol wants. The process is its own and ends in any case."""
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # Two threads read and write beside the event loop; at the default of 5 ms a message could wait that long for each.
    sys.setswitchinterval(0.0005)
    # It logs whole messages, users' code with them, and what it finds wrong is answered or logged here already.
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    return asyncio.run(_run(incoming, outgoing, launch, greeted_id))


async def _run(incoming: Iterator[bytes], outgoing: BinaryIO, launch: Launch, greeted_id: object) -> int:
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def end() -> None:
        # Whatever holds up the loop or the disk: nobody is left to stop the process.
        timer = threading.Timer(END_S, os._exit, (1,))
        timer.daemon = True
        timer.start()
        # From another thread, perhaps after the loop's own end.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(over.set)

    server = Server(launch)
    register(server)
    outbox = Outbox(outgoing, end)
    server.rpc.set_writer(outbox)
    server.rpc.on_exit = end
    server.rpc.greeted_id = greeted_id
    # What is imported by now stays; to walk through it again and again would hold up answers.
    gc.freeze()

    def receive(body: bytes) -> None:
        # Messages read before the end may come up after it; a handler begun then would be left behind.
        if not over.is_set():
            server.rpc.receive(body)

    reader = threading.Thread(target=_read, args=(incoming, receive, loop, end), name="reader", daemon=True)
    reader.start()
    threading.Thread(target=_watch_editor, args=(server, end), name="editor watch", daemon=True).start()
    await over.wait()
    server.rpc.give_up()
    await server.finish()
    outbox.close()
    return 0 if server.rpc.was_shut_down else 1


def _read(
    incoming: Iterator[bytes],
    receive: Callable[[bytes], None],
    loop: asyncio.AbstractEventLoop,
    end: Callable[[], None],
) -> None:
    slots = threading.Semaphore(WAITING_MESSAGES)

    def handle(body: bytes) -> None:
        slots.release()
        receive(body)

    with contextlib.suppress(RuntimeError):
        for body in incoming:
            if not slots.acquire(timeout=STUCK_S):
                break
            loop.call_soon_threadsafe(handle, body)
    end()


def _watch_editor(server: Server, end: Callable[[], None]) -> None:
    """An editor that was killed closes its pipes, unless another child of it holds them open."""
    while server.editor_pid is None or is_alive(server.editor_pid):
        time.sleep(LOOK_FOR_EDITOR_S)
    end()
