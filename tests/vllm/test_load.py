"""People who replay recorded sessions against the real server."""

from __future__ import annotations

import pytest

from tests.vllm.load import SESSIONS, measured
from tests.vllm.server import VllmServer

pytestmark = pytest.mark.asyncio


async def test_two_people_type_and_the_server_s_work_is_counted(server: VllmServer):
    settings = {"inline": {"max_tokens": 4, "candidates": 1, "deadline_ms": 2_000}}
    figures = await measured(server.model, 2, SESSIONS, 8, settings)
    # On a machine that is too slow for any answer all is shed.
    assert 20 < figures["answered"] + figures["shed"] <= figures["keys"], figures
    assert figures["canvases_per_s"] >= 0, figures
    assert figures["stale"] == figures["errors"] == 0, figures
