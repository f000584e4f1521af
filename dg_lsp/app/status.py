"""How things stand, as clients ask for it, and what they switch on and off there."""

from __future__ import annotations

import dataclasses
import zlib
from typing import Any

import msgspec
from pygls.exceptions import JsonRpcInvalidParams

from dg_lsp.app.server import DgServer
from dg_lsp.backend.client import EngineFailure
from dg_lsp.documents.documents import NOT_OPEN
from dg_lsp.protocol.messages import SetEnabledParams, StatusParams


async def status(ls: DgServer, params: StatusParams | None) -> dict[str, Any]:
    """How things stand; who asks once is told of changes from then on."""
    ls.editor.wants_status = True
    params = params or StatusParams()
    account, snapshot = _account(ls), None
    if params.uri is not None:
        await ls.projects.look(params.uri)
        snapshot = ls.documents.get(params.uri)
        known = {"version": snapshot.version, "crc32": zlib.crc32(snapshot.text.encode())} if snapshot else {}
        account["document"] = {"uri": params.uri, "off": snapshot.policy.off if snapshot else NOT_OPEN, **known}
    # By choice: what is kept from the model stays so, whatever is switched.
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
    try:
        ls.configuration.switch(enabled=params.enabled, language=params.language, folder=params.folder)
    except ValueError as error:
        raise JsonRpcInvalidParams(str(error)) from None
    # Where the folder is, links followed, is seen when its documents are looked at next.
    ls.projects.look_anew()
    ls.refresh()
    return _account(ls)


def _account(ls: DgServer) -> dict[str, Any]:
    in_flight = ls.suggester.in_flight
    counts = {
        **dataclasses.asdict(ls.suggester.counts),
        "asked": in_flight.asked,
        "superseded": in_flight.superseded,
    }
    return {**dataclasses.asdict(ls.board.current), "counts": counts}
