"""`dg/status` and `dg/setEnabled`."""

from __future__ import annotations

import dataclasses
import zlib
from typing import Any

import msgspec
from pygls.exceptions import JsonRpcInvalidParams

from dg_lsp.backend.client import EngineFailure
from dg_lsp.documents.documents import NOT_OPEN
from dg_lsp.handlers.server import DgServer
from dg_lsp.protocol.params import SetEnabledParams, StatusParams


async def status(ls: DgServer, params: StatusParams | None) -> dict[str, Any]:
    """The state of the server, the document and the engine. The client is notified of changes from now on."""
    ls.editor.wants_status = True
    params = params or StatusParams()
    account, snapshot = _account(ls), None
    if params.uri is not None:
        await ls.projects.look(params.uri)
        snapshot = ls.documents.get(params.uri)
        known = {"version": snapshot.version, "crc32": zlib.crc32(snapshot.text.encode())} if snapshot else {}
        account["document"] = {"uri": params.uri, "off": snapshot.policy.off if snapshot else NOT_OPEN, **known}
    # The user's choice alone: an excluded file stays excluded, whatever is switched on.
    configuration = ls.configuration
    account["enabled"] = (
        not configuration.why_off(snapshot.file_uri, snapshot.language) if snapshot else configuration.switched_on
    )
    if params.engine:
        try:
            account["engine"] = msgspec.to_builtins(await ls.resident.client.status())
        except EngineFailure as failure:
            account["engine"] = {"error": str(failure)}
    return account


async def set_enabled(ls: DgServer, params: SetEnabledParams) -> dict[str, Any]:
    """Switch suggestions on or off; the answer is that of `dg/status`."""
    try:
        ls.configuration.switch(enabled=params.enabled, language=params.language, folder=params.folder)
    except ValueError as error:
        raise JsonRpcInvalidParams(str(error)) from None
    # Links in the folder's path are resolved when its documents are looked at next.
    ls.projects.look_anew()
    ls.refresh()
    return _account(ls)


def _account(ls: DgServer) -> dict[str, Any]:
    counts = {
        **dataclasses.asdict(ls.suggester.counts),
        "sent": ls.in_flight.sent,
        "superseded": ls.in_flight.superseded,
    }
    return {**dataclasses.asdict(ls.board.current), "counts": counts}
