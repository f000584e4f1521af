"""`initialize` and `initialized`."""

from __future__ import annotations

from lsprotocol.types import InitializeParams

from dg_lsp.handlers.server import DgServer


async def initialize(ls: DgServer, params: InitializeParams) -> None:
    """Take the client's settings and capabilities; pygls answers with the server's."""
    ls.begin(params)
    if ls.menu.begin(params, ls.configuration.editor):
        ls.answer_menu()


async def initialized(ls: DgServer, params: object) -> None:
    """The client is ready: start the engine and ask for settings."""
    # Not before: the answer to `initialize` would promise the menu.
    ls.answer_menu()
    ls.start()
