"""Exchanges with a server: which are recorded, how, and what of them has to stay the same.

`make test-vllm RECORD=1` records them anew with the real server, into `exchanges.json`.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from msgspec import Struct

from engine.models.remote.completions import PATH, Served, request_body
from tests.engine.models.remote.fake_server import KEY, MAX_MODEL_LEN, NAME

FILE = Path(__file__).with_name("exchanges.json")
SERVED = Served(url="http://127.0.0.1", model=NAME, canvas_length=96, vocab_size=400, most_tokens=MAX_MODEL_LEN)
CONTEXT = [2, 7, 6, 83, 272, 308, 274, 279, 214]
SEED = [84, 272, 309, 274, 279, 214, 90, 91]
_GOOD = json.loads(request_body(SERVED, CONTEXT, SEED, [5], max_steps=1, choices=3))


class Exchange(Struct, kw_only=True):
    """One request and what was answered."""

    about: str
    path: str
    body: dict[str, Any] | None = None
    key: str = KEY
    status: int = 0
    answer: Any = None


def exchanges() -> list[Exchange]:
    """All that are recorded, without their answers."""
    xargs = _GOOD["vllm_xargs"]

    def changed(about: str, **more: Any) -> Exchange:
        return Exchange(about=about, path=PATH, body={**_GOOD, **more})

    def other(about: str, **more: Any) -> Exchange:
        return changed(about, vllm_xargs={**xargs, **more})

    probe = {"model": NAME, "prompt": [0], "max_tokens": 1}
    return [
        Exchange(about="version", path="/version"),
        Exchange(about="models", path="/v1/models"),
        Exchange(about="no key", path="/v1/models", key=""),
        Exchange(about="probe: canvas", path=PATH, body={**probe, "vllm_xargs": {"diffusion_seed_canvas": [0]}}),
        Exchange(about="probe: words", path=PATH, body={**probe, "vllm_xargs": {"diffusion_seed_canvas": [2**31]}}),
        changed("one step"),
        changed("another model", model="other"),
        changed("a seed for the random numbers", seed=1),
        changed("logits changed", logit_bias={"5": 1.0}),
        changed("too many choices", logprobs=21),
        changed("cooler", temperature=0.5),
        other("too wide", diffusion_canvas_length=97),
        other("too narrow", diffusion_canvas_length=0),
        other("a canvas of another width", diffusion_seed_canvas=SEED[:-1]),
        other("a token that is none", diffusion_seed_canvas=[*SEED[:-1], 400]),
        other("pinned outside", diffusion_pinned=[8]),
        other("no steps", diffusion_max_steps=0),
        other("neither read only nor not", diffusion_read_only=2),
    ]


def asked(url: str, exchange: Exchange) -> tuple[int, Any]:
    """Status and answer of a server, by nothing of ours."""
    data = None if exchange.body is None else json.dumps(exchange.body).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {exchange.key}"}
    request = urllib.request.Request(url + exchange.path, data, headers if exchange.key else {})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)
