"""An editor window for tests: pytest-lsp's client around a real `dg-lsp serve`, with an editor's manners."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from lsprotocol import types
from lsprotocol.converters import get_converter
from pygls.lsp.client import LanguageClient as PyglsClient
from pygls.protocol import JsonRPCNotification, JsonRPCResponseMessage, default_converter
from pytest_lsp import LanguageClient
from pytest_lsp.client import register_lsp_features

from dg_lsp.replay.editor import Editor, Ghost
from tests.engine.processes import WAIT_S, Home

CAPABILITIES = Path(__file__).parent / "capabilities"
CLIENTS = ("vscode", "neovim", "emacs")
_converter = get_converter()


def recorded(client: str) -> dict[str, Any]:
    """A client's capabilities, as captured from the real editor in its file."""
    return json.loads((CAPABILITIES / f"{client}.json").read_text())["capabilities"]


def _typed(method: str, params: Any) -> Any:
    kind = types.METHOD_TO_TYPES.get(method, (None, None, None))[2]
    return _converter.structure(params, kind) if kind else params


def _plain_converter() -> Any:
    """pygls makes named tuples of what it has no type for; here such values stay JSON values."""
    made = default_converter()
    for kind in (JsonRPCResponseMessage, JsonRPCNotification):
        made.register_structure_hook(kind, lambda value, kind: kind(**value))
    return made


class Client(LanguageClient):
    """pytest-lsp's client; keeps what the server writes to standard error, and the server's own notifications."""

    def __init__(self, **options: Any) -> None:
        super().__init__(converter_factory=_plain_converter, **options)
        register_lsp_features(self)
        self.statuses: list[Any] = []
        self.registrations: list[str] = []
        self.stderr = ""
        self.feature("dg/status")(lambda params: self.statuses.append(params))
        self.feature(types.CLIENT_REGISTER_CAPABILITY)(lambda params: self._register(params))

    def _register(self, params: types.RegistrationParams) -> None:
        self.registrations += [registered.method for registered in params.registrations]

    async def start_io(self, cmd: str, *args: Any, **kwargs: Any) -> None:
        await PyglsClient.start_io(self, cmd, *args, **kwargs)
        self._stderr_forwarder = asyncio.create_task(self._keep_stderr())

    async def _keep_stderr(self) -> None:
        assert self._server
        assert self._server.stderr
        while line := await self._server.stderr.readline():
            self.stderr += line.decode()

    @property
    def server(self) -> asyncio.subprocess.Process:
        assert self._server
        return self._server


async def until(holds: Callable[[], Awaitable[Any]], what: str) -> Any:
    """The first true value of `holds`; fails with `what` when none comes."""
    ends_s = time.monotonic() + WAIT_S
    while not (value := await holds()):
        assert time.monotonic() < ends_s, f"waited in vain for {what}"
        await asyncio.sleep(0.02)
    return value


class Window:
    """One editor window. Offsets instead of positions; answers as plain JSON values."""

    def __init__(self, client: Client, home: Home) -> None:
        self.client = client
        self.home = home
        self._ids = itertools.count(1)
        self.encoding = "utf-16"
        self.editor = Editor(self, "utf-16")

    def initialized(self, result: types.InitializeResult, folder: str) -> None:
        self.encoding = str(result.capabilities.position_encoding)
        self.editor = Editor(self, self.encoding, folder)

    def ask(self, method: str, params: Any) -> tuple[int, asyncio.Future[Any]]:
        number = next(self._ids)
        # Around pytest-lsp's checks, which know no messages of our own.
        answer = self.client.protocol.send_request(method, _typed(method, params), msg_id=number)

        async def plain() -> Any:
            return _converter.unstructure(await asyncio.wrap_future(answer))

        return number, asyncio.ensure_future(plain())

    def notify(self, method: str, params: Any) -> None:
        self.client.protocol.notify(method, _typed(method, params))

    async def request(self, method: str, params: Any) -> Any:
        async with asyncio.timeout(WAIT_S):
            return await self.ask(method, params)[1]

    def open(self, marked: str, path: str = "", language: str = "python") -> None:
        """Open a document with a cursor at the first ▮; what stands up to a second one is left out."""
        before, _, rest = marked.partition("▮")
        after = rest.partition("▮")[2] if "▮" in rest else rest
        self.editor.open(path or f"file{next(self._ids)}.py", language, before + after, len(before))

    async def ghosts(self, *, invoked: bool = False) -> list[Ghost]:
        """The suggestions at the cursor."""
        asked = self.editor.ask(invoked=invoked)
        async with asyncio.timeout(WAIT_S):
            return self.editor.ghosts(asked, await asked.answer)

    async def ghost(self, *, invoked: bool = False) -> str | None:
        """What the first suggestion would put behind the cursor."""
        ghosts = await self.ghosts(invoked=invoked)
        return self.shown(ghosts[0]) if ghosts else None

    def shown(self, ghost: Ghost) -> str:
        """A suggestion without what is typed of it already."""
        typed = self.editor.buffer.text[ghost.start : self.editor.buffer.cursor]
        assert ghost.text.startswith(typed)
        return ghost.text[len(typed) :]

    async def status(self, **params: Any) -> Any:
        return await self.request("dg/status", params)

    async def counts(self) -> dict[str, int]:
        return (await self.status())["counts"]

    async def until_ready(self) -> None:
        """Wait for the model."""
        async with asyncio.timeout(WAIT_S * 2):
            while (told := await self.status())["state"] != "ready" or told["message"]:
                await asyncio.sleep(0.02)


@asynccontextmanager
async def window(
    home: Home,
    capabilities: dict[str, Any] | str = "vscode",
    *,
    options: Any = None,
    folders: Sequence[Path] = (),
    model: str = "",
    ready: bool = True,
    configuration: dict[str, Any] | None = None,
    log: str = "",
    name: str = "",
) -> AsyncIterator[Window]:
    """A window from start to end, of a client of that name. At the end the server has shown no popup, and said on
    standard error only `log`."""
    client = Client(configuration=configuration)
    command = [sys.executable, "-m", "dg_lsp", "serve", *(["--model", model] if model else [])]
    await client.start_io(*command, env=home.environment)
    held = Window(client, home)
    given = recorded(capabilities) if isinstance(capabilities, str) else capabilities
    params = {
        "processId": None,
        "rootUri": None,
        "clientInfo": {"name": name} if name else None,
        "capabilities": given,
        "initializationOptions": options,
        "workspaceFolders": [{"uri": folder.as_uri(), "name": folder.name} for folder in folders] or None,
    }
    result = await client.initialize_session(_converter.structure(params, types.InitializeParams))
    held.initialized(result, str(folders[0]) if folders else "/untitled")
    try:
        if ready:
            await held.until_ready()
        yield held
        if client.server.returncode is None:
            async with asyncio.timeout(WAIT_S):
                await client.shutdown_session()
        assert client.messages == []
        assert client.error is None
        assert log in client.stderr
        assert log or client.stderr == ""
        assert client.server.returncode in (0, None)
    finally:
        if client.server.returncode is None:
            client.server.kill()
        await client.stop()
