"""A client's end of a connection to a language server process. Plain JSON values; nothing is interpreted."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from dg_lsp.protocol.framing import frame, read_body

GONE_S = 10.0
"""For a server to end after it was told to."""
_LIMIT_NBYTES = 16 * 1024 * 1024


class RequestError(Exception):
    """The server answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class ServerGone(Exception):
    """The server's process ended."""


class ServerConnection:
    """Made by `start`; all methods belong to one event loop."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.on_notification: Callable[[str, Any], None] = lambda _method, _params: None
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._reading = asyncio.create_task(self._read(), name="replay reader")

    @staticmethod
    async def start(
        command: Sequence[str], environment: Mapping[str, str], stderr: IO[bytes] | None = None
    ) -> ServerConnection:
        """Start a server; what it says on standard error goes to `stderr`, or where ours goes."""
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=dict(environment),
            stderr=stderr,
            limit=_LIMIT_NBYTES,
        )
        return ServerConnection(process)

    def ask(self, method: str, params: Any) -> tuple[int, asyncio.Future[Any]]:
        """Send a request; its id and its answer to come. The answer raises RequestError or ServerGone."""
        id_ = next(self._ids)
        answer = self._waiting[id_] = asyncio.get_running_loop().create_future()
        self._send({"id": id_, "method": method, "params": params})
        return id_, answer

    async def request(self, method: str, params: Any) -> Any:
        """Send a request and wait for the answer. Raises RequestError, ServerGone."""
        return await self.ask(method, params)[1]

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    async def close(self) -> int:
        """Shut the server down; its exit code."""
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
        assert self.process.stdin is not None
        self.process.stdin.write(frame(json.dumps({"jsonrpc": "2.0", **message}).encode()))

    async def _read(self) -> None:
        assert self.process.stdout is not None
        try:
            while True:
                self._handle(json.loads(await read_body(self.process.stdout)))
        except (asyncio.IncompleteReadError, ConnectionError):
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(ServerGone("The language server ended."))

    def _handle(self, message: dict[str, Any]) -> None:
        if "method" in message and "id" in message:
            # What servers ask of editors here (progress bars, settings) may be answered with nothing.
            self._send({"id": message["id"], "result": None})
        elif "method" in message:
            self.on_notification(message["method"], message.get("params"))
        elif (answer := self._waiting.pop(message["id"], None)) and not answer.done():
            if error := message.get("error"):
                answer.set_exception(RequestError(error["code"], error["message"]))
            else:
                answer.set_result(message.get("result"))
