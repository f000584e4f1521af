"""`initialize`, `initialized`, and what changes a workspace: its settings, its folders, its files."""

from __future__ import annotations

from dg_lsp.handlers.server import DgServer
from dg_lsp.protocol.initialize import ClientHello
from dg_lsp.protocol.params import DidChangeConfigurationParams, DidChangeWorkspaceFoldersParams


async def initialize(ls: DgServer, hello: ClientHello) -> None:
    """Take the client's settings and capabilities."""
    ls.begin(hello)


async def initialized(ls: DgServer, params: object) -> None:
    """The client is ready: start the engine and ask for settings."""
    ls.start()


async def did_change_configuration(ls: DgServer, params: DidChangeConfigurationParams) -> None:
    """Apply the editor's new settings; request them from the editor where the notification holds none."""
    if params.settings:
        ls.configuration.change(params.settings)
        ls.refresh()
    else:
        ls.in_background(ls.pull_configuration())


async def did_change_folders(ls: DgServer, params: DidChangeWorkspaceFoldersParams) -> None:
    event = params.event
    ls.configuration.change_folders([each.uri for each in event.added], [each.uri for each in event.removed])
    ls.projects.forget_all()
    ls.index.look_anew()


async def did_change_watched_files(ls: DgServer, params: object) -> None:
    ls.projects.look_anew()
    ls.index.look_anew()
