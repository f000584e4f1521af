"""Asks a server whether it can run a model, without any of the user's text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from engine.models.remote.client import RemoteError, ServerClient, shown
from engine.models.remote.completions import PATH, Served

SAMPLE = "def area(width, height):\n    return width * height  # \N{SMILING FACE WITH OPEN MOUTH}\n\n\tx += 0x1F\n"
"""Tokenizers that cut this text alike are taken for the same."""
LEAST = (0, 31)
_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})")
CANVAS = re.compile(r"must hold exactly (\d{1,9}) ids")
VOCABULARY = re.compile(r"must be in \[0, (\d{1,9})\)")
_BEYOND = 2**31
_UPGRADE = "have it run vLLM 0.31 or newer, with a diffusion model whose noise is uniform"


async def probe(client: ServerClient, url: str, model: str) -> tuple[Served, str]:
    """What the server says of the model, and the `root` that it loaded it from. Raises RemoteError, ServerAway."""
    told = await _version(client, url)
    root, most_tokens = await _model(client, url, model)
    canvas = await _refusal(client, model, [0], CANVAS)
    vocabulary = await _refusal(client, model, [_BEYOND], VOCABULARY)
    if canvas is None or vocabulary is None:
        raise RemoteError(f"vLLM {told} at {url} does not take a canvas for {model}: {_UPGRADE}.")
    served = Served(url=url, model=model, canvas_length=canvas, vocab_size=vocabulary, most_tokens=most_tokens)
    return served, root


async def check_tokenizer(client: ServerClient, url: str, model: str, tokenize: Callable[[str], Sequence[int]]) -> None:
    """Check that the server cuts text into the same tokens. Raises RemoteError."""
    body = {"model": model, "prompt": SAMPLE, "add_special_tokens": False}
    status, answer = await client.post("/tokenize", msgspec.json.encode(body))
    theirs = _object(answer).get("tokens")
    if status != 200 or not isinstance(theirs, list):
        raise RemoteError(
            f"The server at {url} does not say how {model} cuts text into tokens (/tokenize: {status}): let that pass "
            "through to vLLM."
        )
    if theirs != list(tokenize(SAMPLE)):
        raise RemoteError(
            f"The server's {model} has another tokenizer than the one here: name the directory or Hub id of the same "
            "model as tokenizer."
        )


async def _version(client: ServerClient, url: str) -> str:
    status, answer = await client.get("/version")
    told = _object(answer).get("version")
    found = _VERSION.match(told) if isinstance(told, str) else None
    if status != 200 or found is None:
        raise RemoteError(f"What answers at {url} is no vLLM (/version: {status}): name a server that runs it.")
    if tuple(map(int, found.groups())) < LEAST:
        raise RemoteError(f"The server at {url} runs vLLM {found[0]}, which takes no canvas: {_UPGRADE}.")
    return found[0]


async def _model(client: ServerClient, url: str, model: str) -> tuple[str, int]:
    status, answer = await client.get("/v1/models")
    check_status(status, answer, url)
    listed: Any = _object(answer).get("data")
    served: dict[str, dict[str, Any]] = {
        each["id"]: each
        for each in (listed if isinstance(listed, list) else [])
        if isinstance(each, dict) and isinstance(each.get("id"), str)
    }
    if model not in served:
        # Many, long or unprintable names would go to every window that asks why nothing is suggested.
        names = ", ".join([name for each in sorted(served) if (name := shown(each, 100))][:10]) or "none"
        raise RemoteError(f"The server at {url} has no model {model!r}: name one of those it has ({names}).")
    root, most = served[model].get("root"), served[model].get("max_model_len")
    if type(most) is not int or most < 1:
        raise RemoteError(f"The server at {url} does not say how long its contexts may be: does vLLM run there?")
    return root if isinstance(root, str) else "", most


async def _refusal(client: ServerClient, model: str, canvas: list[int], expected: re.Pattern[str]) -> int | None:
    """The number in the sentence by which a server that knows canvases refuses this one; None: it knows none."""
    body = {"model": model, "prompt": [0], "max_tokens": 1, "vllm_xargs": {"diffusion_seed_canvas": canvas}}
    status, answer = await client.post(PATH, msgspec.json.encode(body))
    found = expected.search(answer.decode(errors="replace")) if status == 400 else None
    return int(found[1]) if found else None


def check_status(status: int, answer: bytes, url: str) -> None:
    """Check for status 200. Raises RemoteError for another one, with what to do."""
    if status == 200:
        return
    if status in (401, 403):
        raise RemoteError(f"The server at {url} does not take the key: set DG_LSP_SERVER_KEY, or key_file.")
    if status in (429, 503):
        raise ServerBusy(f"The server at {url} has too much to do ({status}): suggestions go on in a moment.")
    said = _object(answer).get("error")
    why = said.get("message") if isinstance(said, dict) else None
    raise RemoteError(f"The server at {url} answered with {status}{_quoted(why)}: its log may say more.")


class ServerBusy(RemoteError):
    """A server refuses work for now."""


def _quoted(why: object) -> str:
    return f" ({said})" if isinstance(why, str) and (said := shown(why)) else ""


def _object(answer: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(answer)
    except (ValueError, RecursionError):  # no JSON, no UTF-8, or nested without end
        return {}
    return found if isinstance(found, dict) else {}
