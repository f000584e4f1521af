"""Answers in the form of OpenAI's API: completions, chat, streams, the list of models, the error object."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from engine.common.request import Filled
from engine.server.http.endings import LATE, Completed

_ERRORS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
_REASONS = {"eos": "stop", "word": "stop", "limit": "length"}
_LEAST = 1e-12


def error_object(status: int, message: str, param: str | None = None) -> dict[str, Any]:
    kind = _ERRORS.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": None}}


def models(name: str, since: float, about: dict[str, Any] | None) -> dict[str, Any]:
    """The list of models. `since`: seconds of the epoch; `about`: fields that llama.cpp's clients read."""
    held = {"id": name, "object": "model", "created": int(since), "owned_by": "dg-lsp", "meta": about}
    return {"object": "list", "data": [held]}


class _Streamed:
    """Fields that all answers share."""

    UNASKED, END = LATE, b"data: [DONE]\n\n"
    error_object = staticmethod(error_object)

    def __init__(self, kind: str, model: str, *, with_usage: bool) -> None:
        """`with_usage`: whether a stream ends with the number of tokens."""
        self._head = {"id": f"{kind}-{secrets.token_hex(12)}", "created": int(time.time()), "model": model}
        self._with_usage = with_usage


class Completion(_Streamed):
    """One completion, whole or in pieces."""

    def __init__(self, model: str, *, logprobs: bool, with_usage: bool) -> None:
        super().__init__("cmpl", model, with_usage=with_usage)
        self._logprobs = logprobs
        self._head["object"] = "text_completion"

    def whole(self, answers: Sequence[Completed], filled: Filled | None) -> dict[str, Any]:
        """The whole answer."""
        choices = [self._choice(index, answer.text, answer) for index, answer in enumerate(answers)]
        return {**self._head, "choices": choices, "usage": _usage(answers, filled)}

    def begin(self) -> list[dict[str, Any]]:
        """The first events of a stream."""
        return []

    def piece(self, text: str) -> dict[str, Any]:
        """The event for a further part of the first choice."""
        return {**self._head, "choices": [self._choice(0, text, None)]}

    def end(self, index: int, text: str, answer: Completed, _filled: Filled | None) -> list[dict[str, Any]]:
        """The last events of a choice, with the rest of its text."""
        return [{**self._head, "choices": [self._choice(index, text, answer)]}]

    def usage(self, answers: Sequence[Completed], filled: Filled | None) -> list[dict[str, Any]]:
        """The token counts after all choices, if the client requested them."""
        return [{**self._head, "choices": [], "usage": _usage(answers, filled)}] if self._with_usage else []

    def _choice(self, index: int, text: str, answer: Completed | None) -> dict[str, Any]:
        return {
            "index": index,
            "text": text,
            # Of a streamed choice, those of all its tokens come with its end.
            "logprobs": _logprobs(answer) if self._logprobs and answer else None,
            "finish_reason": _REASONS[answer.reason] if answer else None,
        }


class ChatCompletion(_Streamed):
    """One answer to a conversation."""

    def __init__(self, model: str, *, with_usage: bool) -> None:
        super().__init__("chatcmpl", model, with_usage=with_usage)

    def whole(self, answers: Sequence[Completed], filled: Filled | None) -> dict[str, Any]:
        """The whole answer."""
        answer = answers[0]
        message = {"role": "assistant", "content": answer.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _REASONS[answer.reason]}
        usage = _usage([answer], filled)
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": usage}

    def begin(self) -> list[dict[str, Any]]:
        """The first events of a stream."""
        return [self._chunk({"role": "assistant", "content": ""})]

    def piece(self, text: str) -> dict[str, Any]:
        """The event for a further part of the answer."""
        return self._chunk({"content": text})

    def end(self, _index: int, text: str, answer: Completed, _filled: Filled | None) -> list[dict[str, Any]]:
        """The last events of the answer: the rest of its text, and why it ends."""
        return [*([self.piece(text)] if text else []), self._chunk({}, _REASONS[answer.reason])]

    def usage(self, answers: Sequence[Completed], filled: Filled | None) -> list[dict[str, Any]]:
        """The token counts after the answer, if the client requested them."""
        last = {**self._chunk({}), "choices": [], "usage": _usage(answers, filled)}
        return [last] if self._with_usage else []

    def _chunk(self, delta: dict[str, str], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return {**self._head, "object": "chat.completion.chunk", "choices": [choice]}


def _usage(answers: Sequence[Completed], filled: Filled | None) -> dict[str, int]:
    prompt_tokens, tokens = filled.context_tokens if filled else 0, sum(answer.tokens for answer in answers)
    return {"prompt_tokens": prompt_tokens, "completion_tokens": tokens, "total_tokens": prompt_tokens + tokens}


def _logprobs(answer: Completed) -> dict[str, Any]:
    # What else could have stood there is not kept.
    logs = [math.log(max(value, _LEAST)) for value in answer.confidence]
    return {
        "tokens": list(answer.pieces),
        "token_logprobs": logs,
        "top_logprobs": [{token: log} for token, log in zip(answer.pieces, logs, strict=True)],
        "text_offset": list(accumulate(map(len, answer.pieces[:-1]), initial=0)) if answer.pieces else [],
    }
