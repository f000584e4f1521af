"""Answers as llama.cpp's server gives them: `POST /infill` and its error object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.common.messages import EngineStatus
from engine.common.request import Filled, FillRequest
from engine.common.version import __version__
from engine.server.http.endings import NOTHING, Completed

_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "not_supported_error",
    413: "invalid_request_error",
    503: "unavailable_error",
}


def error_object(status: int, message: str) -> dict[str, Any]:
    return {"error": {"code": status, "message": message, "type": _ERRORS.get(status, "server_error")}}


def about(status: EngineStatus) -> dict[str, Any] | None:
    """A model in llama.cpp's list of models; None before its weights are loaded."""
    if status.parameters is None:
        return None
    return {"n_params": status.parameters, "n_ctx_train": status.context_limit}


def properties(model: str, status: EngineStatus) -> dict[str, Any]:
    """The server's properties. A folder of weights is named, without its place."""
    usual = FillRequest(prefix="", suffix="")
    return {
        "default_generation_settings": {
            "id": 0,
            "id_task": -1,
            "n_ctx": status.context_limit or 0,
            "speculative": False,
            "is_processing": status.running > 0,
            "params": {"n_predict": usual.max_tokens, "seed": usual.seed, "stop": [], "stream": False, "n_indent": 0},
        },
        "total_slots": 1,
        "model_alias": model,
        "model_path": model,
        "endpoint_slots": False,
        "endpoint_props": False,
        "endpoint_metrics": True,
        "chat_template": "",
        "chat_template_caps": {},
        "bos_token": "",
        "eos_token": "",
        "modalities": {"vision": False, "audio": False},
        "build_info": f"dg-lsp {__version__}",
        "is_sleeping": status.loaded_s is None,
    }


class Infill:
    """The answer to `POST /infill`, whole or in pieces; where several were wanted, a list."""

    UNASKED, END = NOTHING, b""
    error_object = staticmethod(error_object)

    def __init__(self, model: str, request: FillRequest, fields: Sequence[str] | None) -> None:
        """`fields`: those that the client wants of a whole answer; None: all."""
        self._model = model
        self._request = request
        self._fields = fields

    def whole(self, answers: Sequence[Completed], filled: Filled | None) -> dict[str, Any] | list[dict[str, Any]]:
        """The whole answer. `filled`: None if nothing was computed."""
        held = [
            chosen(self._choice(index, answer.text, answer, filled), self._fields)
            for index, answer in enumerate(answers)
        ]
        return held if self._request.n > 1 else held[0]

    def begin(self) -> list[dict[str, Any]]:
        """The first events of a stream."""
        return []

    def piece(self, text: str) -> dict[str, Any]:
        """The event for a further part of the text."""
        return {"index": 0, "content": text, "tokens": [], "stop": False}

    def end(self, index: int, text: str, answer: Completed, filled: Filled | None) -> list[dict[str, Any]]:
        """The last events of an answer, with the rest of its text."""
        return [self._choice(index, text, answer, filled)]

    def usage(self, answers: Sequence[Completed], filled: Filled | None) -> list[dict[str, Any]]:
        """The events after all answers."""
        return []

    def _choice(self, index: int, content: str, answer: Completed, filled: Filled | None) -> dict[str, Any]:
        prompt = filled.context_tokens if filled else 0
        prompt_ms, predicted_ms = (filled.ms.encode, filled.ms.denoise) if filled else (0.0, 0.0)
        return {
            "index": index,
            "content": content,
            "tokens": [],
            "id_slot": 0,
            "stop": True,
            "model": self._model,
            "tokens_predicted": answer.tokens,
            "tokens_evaluated": prompt,
            "generation_settings": {"n_predict": self._request.max_tokens, "seed": self._request.seed},
            "prompt": "",
            "has_new_line": "\n" in answer.text,
            "truncated": False,
            "stop_type": answer.reason,
            "stopping_word": answer.word,
            "tokens_cached": prompt,
            "timings": {**_timings("prompt", prompt, prompt_ms), **_timings("predicted", answer.tokens, predicted_ms)},
        }


def chosen(answer: dict[str, Any], fields: Sequence[str] | None) -> dict[str, Any]:
    """The fields that a client wants, under its names; unknown ones are left out."""
    if not fields:
        return answer
    found: dict[str, Any] = {}
    for path in fields:
        held: Any = answer
        for name in path.split("/"):
            held = held.get(name) if isinstance(held, Mapping) else None
        if held is not None:
            found[path] = held
    return found


def _timings(kind: str, count: int, ms: float) -> dict[str, float]:
    return {
        f"{kind}_n": count,
        f"{kind}_ms": ms,
        f"{kind}_per_token_ms": ms / count if count else 0.0,
        f"{kind}_per_second": 1000 * count / ms if ms else 0.0,
    }
