"""A client's connection to a language server process, in plain JSON values."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import IO, Any

from pygls.exceptions import JsonRpcException

from dg_lsp.protocol.framing import frame, read_body

GONE_S = 10.0
"""How long a server may take to end after `exit`."""


class ServerConnection:
    """Made by `start` or `served`; all methods belong to one event loop."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin
        assert process.stdout
        self.process = process
        self.initialized: dict[str, Any] = {}
        """The server's answer to `initialize`."""
        self.on_notification: Callable[[str, Any], None] = lambda _method, _params: None
        self._stdin, self._stdout = process.stdin, process.stdout
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._reading = asyncio.create_task(self._read(), name="replay reader")

    @staticmethod
    async def start(
        command: Sequence[str], environment: Mapping[str, str], stderr: IO[bytes] | None = None
    ) -> ServerConnection:
        """Start a server. Its standard error goes to `stderr`, or where ours goes."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, stderr=stderr, env=dict(environment)
        )
        return ServerConnection(process)

    def ask(self, method: str, params: Any) -> tuple[int, asyncio.Future[Any]]:
        """Send a request and return its id and a future of the answer, which raises JsonRpcException or
        ConnectionError."""
        id_ = next(self._ids)
        answer = self._waiting[id_] = asyncio.get_running_loop().create_future()
        self._send({"id": id_, "method": method, "params": params})
        return id_, answer

    async def request(self, method: str, params: Any) -> Any:
        """Send a request and wait for the answer. Raises JsonRpcException, ConnectionError."""
        return await self.ask(method, params)[1]

    def notify(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    async def close(self) -> int:
        """Shut the server down and return its exit code."""
        try:
            async with asyncio.timeout(GONE_S):
                await self.request("shutdown", None)
                self.notify("exit", None)
                return await self.process.wait()
        except TimeoutError:
            self.process.kill()
            return await self.process.wait()
        finally:
            self._reading.cancel()

    def _send(self, message: dict[str, Any]) -> None:
        self._stdin.write(frame(json.dumps({"jsonrpc": "2.0", **message}).encode()))

    async def _read(self) -> None:
        try:
            while True:
                self._handle(json.loads(await read_body(self._stdout)))
        except (asyncio.IncompleteReadError, ConnectionError):
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(ConnectionError("The language server ended."))

    def _handle(self, message: dict[str, Any]) -> None:
        if "method" in message and "id" in message:
            # The server's requests here (progress bars, settings) may be answered with null.
            self._send({"id": message["id"], "result": None})
        elif "method" in message:
            self.on_notification(message["method"], message.get("params"))
        elif (answer := self._waiting.pop(message["id"], None)) and not answer.done():
            if error := message.get("error"):
                answer.set_exception(JsonRpcException(error["message"], error["code"]))
            else:
                answer.set_result(message.get("result"))


@asynccontextmanager
async def served(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    encodings: Sequence[str] = ("utf-16",),
    settings: Mapping[str, Any],
    stderr: IO[bytes] | None = None,
) -> AsyncGenerator[ServerConnection]:
    """A server initialized as by an editor with ghost text, for the duration of the block. Statistics are off."""
    wire = await ServerConnection.start(command, environment, stderr)
    try:
        offered = {
            "general": {"positionEncodings": list(encodings)},
            "textDocument": {"inlineCompletion": {"dynamicRegistration": False}},
        }
        options = {**settings, "stats": False}
        params = {"processId": None, "rootUri": None, "capabilities": offered, "initializationOptions": options}
        wire.initialized = await wire.request("initialize", params)
        wire.notify("initialized", {})
        yield wire
    finally:
        if wire.process.returncode is None:
            await wire.close()
