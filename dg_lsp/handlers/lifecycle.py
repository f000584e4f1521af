"""`initialize` and `initialized`."""

from __future__ import annotations

from dg_lsp.handlers.server import DgServer
from dg_lsp.protocol.initialize import ClientHello


async def initialize(ls: DgServer, hello: ClientHello) -> None:
    """Take the client's settings and capabilities."""
    ls.begin(hello)


async def initialized(ls: DgServer, params: object) -> None:
    """The client is ready: start the engine and ask for settings."""
    ls.start()
