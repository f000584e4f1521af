"""`workspace/executeCommand`: finds the command by its name. Those that edit are in `edit_commands`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from pygls.exceptions import JsonRpcInvalidParams

from dg_lsp.handlers.edit_commands import EDIT_COMMANDS
from dg_lsp.handlers.next_edit import dismiss
from dg_lsp.handlers.pull import pull
from dg_lsp.handlers.server import DgServer
from dg_lsp.protocol.initialize import ACCEPTED, DISMISS_EDIT, PULL
from dg_lsp.protocol.params import ExecuteCommandParams


async def execute(ls: DgServer, params: ExecuteCommandParams) -> Any:
    """Run a command. Raises JsonRpcInvalidParams for an unknown one."""
    command = COMMANDS.get(params.command)
    if command is None:
        raise JsonRpcInvalidParams(f"There is no command {params.command!r}.")
    return await command(ls, params)


async def accepted(ls: DgServer, params: ExecuteCommandParams) -> None:
    """The editor inserted a suggestion."""
    match params.arguments:
        case [{"id": int(id_)}, *_]:
            ls.acceptance.ran(id_)
        case _:
            pass


COMMANDS: dict[str, Callable[[DgServer, ExecuteCommandParams], Awaitable[Any]]] = {
    ACCEPTED: accepted,
    DISMISS_EDIT: dismiss,
    PULL: pull,
    **EDIT_COMMANDS,
}
