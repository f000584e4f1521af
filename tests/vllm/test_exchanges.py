"""The exchanges that tests without the server rely on: the real one still answers so, or they are recorded anew."""

from __future__ import annotations

import os

import msgspec

from tests.engine.models.remote.exchanges import FILE, Exchange, asked, exchanges
from tests.engine.models.remote.fake_server import MODEL
from tests.vllm.server import VllmServer


def test_the_recorded_exchanges_hold(server: VllmServer):
    found = exchanges()
    for each in found:
        each.status, each.answer = asked(server.url, each)
    if os.environ.get("DG_LSP_RECORD"):
        # Where the model lies is the recording machine's own affair.
        told = msgspec.json.encode(found).replace(f"{MODEL.parents[2]}/".encode(), b"")
        FILE.write_bytes(msgspec.json.format(told) + b"\n")
    recorded = msgspec.json.decode(FILE.read_bytes(), type=list[Exchange])
    assert [(each.about, each.status) for each in found] == [(each.about, each.status) for each in recorded]
