"""Requests to vLLM and its answers: one canvas each, checked before it is sent and after it came back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from engine.common.errors import BadInput
from engine.models.base import CanvasReply
from engine.models.remote.client import RemoteError, shown

PATH = "/v1/completions"
_TOKEN = "token_id:"
_LEAST = -1e4
"""Below every log-probability that vLLM reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What a server says of its model."""

    url: str
    model: str
    canvas_length: int
    vocab_size: int
    most_tokens: int
    """Most tokens of a context and its canvas together."""


class _TokenLogprobs(Struct):
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]] | None = None


class _CompletionChoice(Struct):
    token_ids: list[int]
    logprobs: _TokenLogprobs


class _Completion(Struct):
    choices: list[_CompletionChoice]


def request_body(
    served: Served, context: Sequence[int], ids: Sequence[int], pinned: Sequence[int], *, max_steps: int, choices: int
) -> bytes:
    """The request to denoise the canvas `ids` after `context`. Raises BadInput for one that a server would refuse or
    shorten."""
    width = len(ids)
    # Wrong ones are answered with 400 at best, so they are a defect that must not leave this machine.
    if not 0 < width <= served.canvas_length:
        raise BadInput(f"A canvas of {width} tokens does not fit the server's {served.canvas_length}: ask for less.")
    if not all(0 <= token < served.vocab_size for token in (*ids, *context)):
        raise BadInput(f"There are tokens beyond the server's vocabulary of {served.vocab_size}.")
    if not all(0 <= at < width for at in pinned):
        raise BadInput(f"Positions are pinned beyond a canvas of {width} tokens.")
    if max_steps < 1 or not 0 <= choices <= 20:
        raise BadInput(f"{max_steps} steps with {choices} choices can't be asked for.")
    if len(context) + width > served.most_tokens:
        raise BadInput(
            f"{len(context)} tokens of context and {width} of canvas are more than the server's {served.most_tokens}: "
            "ask for less, or have it run with a larger --max-model-len."
        )
    return msgspec.json.encode(
        {
            "model": served.model,
            "prompt": list(context),
            "max_tokens": width,
            "ignore_eos": True,
            "return_token_ids": True,
            "logprobs": max(1, choices),
            "return_tokens_as_token_ids": True,
            "vllm_xargs": {
                "diffusion_canvas_length": width,
                "diffusion_seed_canvas": list(ids),
                "diffusion_pinned": list(pinned),
                "diffusion_max_steps": max_steps,
                "diffusion_read_only": 1,
            },
        }
    )


def read_reply(body: bytes, served: Served, width: int, *, choices: int) -> CanvasReply:
    """The canvas in an answer. Raises RemoteError for any other answer."""
    try:
        return _reply(body, served, width, choices)
    # Besides what msgspec finds wrong: text that is no UTF-8, numbers and nesting without end.
    except (ValueError, OverflowError, RecursionError) as error:
        raise RemoteError(
            f"The server at {served.url} gives an answer that can't be read ({shown(str(error))}): does vLLM run "
            "there, 0.31 or newer?"
        ) from None


def _reply(body: bytes, served: Served, width: int, choices: int) -> CanvasReply:
    told = msgspec.json.decode(body, type=_Completion)
    found = told.choices[0] if len(told.choices) == 1 else None
    if found is None or not len(found.token_ids) == len(found.logprobs.token_logprobs) == width:
        count = len(found.token_ids) if found else 0
        raise RemoteError(f"The server answered with {count} tokens where {width} were asked for; they are not used.")
    if not all(0 <= token < served.vocab_size for token in found.token_ids):
        raise RemoteError("The server answered with tokens that the model does not have; they are not used.")
    top = (found.logprobs.top_logprobs or []) if choices else []
    if len(top) != (width if choices else 0):
        raise RemoteError("The server answered without the choices that were asked for: does vLLM run there?")
    return CanvasReply(
        ids=tuple(found.token_ids),
        log_probabilities=tuple(map(_log, found.logprobs.token_logprobs)),
        choices=tuple(_choices(each, served) for each in top),
    )


def _choices(told: dict[str, float], served: Served) -> dict[int, float]:
    named = {name.removeprefix(_TOKEN): value for name, value in told.items() if name.startswith(_TOKEN)}
    numbered = {int(name): value for name, value in named.items() if name.isascii() and name.isdecimal()}
    return {token: _log(value) for token, value in numbered.items() if token < served.vocab_size}


def _log(told: float) -> float:
    """The logarithm of a probability, bounded so that sums and powers are finite."""
    return max(_LEAST, min(told, 0.0))
