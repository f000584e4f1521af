"""A program for the model of the tests' server, and the settings that name the server."""

from __future__ import annotations

from typing import Any

from tests.engine.models.remote.fake_server import MODEL

PROGRAM = "c = 4\nd = c * 7\ne ▮\nf = e * 7\ng = f * 7\nh = g * 7\n"
"""`= d * 7` is missing."""


def settings(url: str) -> dict[str, Any]:
    """What says where the server is, and no hurry."""
    return {
        "engine": {"model": f"vllm+{url}/toy", "tokenizer": str(MODEL)},
        "inline": {"deadline_ms": 20_000, "threshold": 0},
        "context": {"enabled": False},
    }
