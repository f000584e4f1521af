"""Bodies of HTTP requests in both protocols: their fields, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from engine.common.errors import EngineError
from engine.common.json_values import UNREADABLE, read_json
from engine.common.messages import Failed
from engine.common.newlines import dominant_line_end
from engine.common.request import ConversationMessage, FillRequest, Snippet
from engine.server.http.endings import Endings
from engine.syntax.languages import language_of

A = TypeVar("A", bound="RequestBody")
Answers = Annotated[int, Meta(ge=1, le=32)]
_MOST_TOKENS = 4096
_MOST_MS = 1e9
_TELLING_CHARS = 256
"""Most characters of the text after a gap that an answer's end is compared with."""
_MOST_STOPS = 64
_MOST_CHARS = 1 << 20
"""Most characters on either side of a gap: no context holds more, and longer text holds up every client."""
_LINE = 1 << 12
"""Most characters of a first line that may name the language."""
_MOST_NAMED = 200
_LANGUAGE = re.compile(r"\W*language:\s*([\w.+#-]+)\W*", re.IGNORECASE)
"""A comment that some clients put before a file, as their prompts have no other place for it."""
_TOKENS = "Send text as the prompt: tokens of another model's vocabulary mean nothing here."
_PLACE = re.compile(r"(.*) - at `\$(.*)`", re.DOTALL)
_STATUS = {"bad_request": 400, "busy": 503, "stopping": 503, "model": 503, "out_of_memory": 503}


class HttpError(EngineError):
    """The request gets an error object instead of an answer."""

    def __init__(self, status: int, message: str, param: str | None = None, *, closes: bool = False) -> None:
        super().__init__(message)
        self.closes = closes
        """Whether nothing more is read of the connection."""
        self.status = status
        self.param = param
        """The field that is wrong."""

    @classmethod
    def of(cls, failed: Failed) -> HttpError:
        """The error for a failed fill."""
        return cls(_STATUS.get(failed.code, 500), failed.message)


class RequestBody(Struct, frozen=True, kw_only=True):
    """Fields of both protocols. Other fields (samplers, temperatures, caches) mean nothing to a diffusion model and are
    ignored, whatever they hold."""

    stream: bool | None = None
    stop: str | list[str] | None = None
    n_predict: int | None = None
    max_tokens: int | None = None
    t_max_prompt_ms: float | None = None
    t_max_predict_ms: float | None = None
    n_indent: int | None = None
    seed: int | None = None
    n: Answers | None = None
    n_cmpl: Answers | None = None
    """llama.cpp's name of the same."""
    language: str | None = None
    """LSP language identifier; our own, for who can say it."""

    @property
    def loads_only(self) -> bool:
        """Whether the client wants no answer, only the model loaded."""
        return self._asked_tokens == 0

    def endings(self, request: FillRequest) -> Endings:
        """Where an answer to `request` ends."""
        line_end = dominant_line_end(request.prefix + request.suffix)
        return Endings(
            stop=self._stop_words,
            indent=max(self.n_indent or 0, 0),
            line_end=line_end,
            follows=request.suffix.lstrip()[:_TELLING_CHARS],
        )

    def request(self, prefix: str, suffix: str, *, snippets: Sequence[Snippet] = (), path: str = "") -> FillRequest:
        """A request for the gap between the two texts. The language is given, or follows from the file's name or the
        first line."""
        first_line = prefix[:_LINE].partition("\n")[0]
        named = _LANGUAGE.fullmatch(first_line[:_MOST_NAMED])
        tokens, usual = self._asked_tokens, FillRequest(prefix="", suffix="")
        return FillRequest(
            prefix=_end(prefix),
            suffix=suffix[:_MOST_CHARS],
            language=self.language or language_of(named[1] if named else "", path, first_line) or "",
            snippets=tuple(snippets),
            n=self.n_cmpl or self.n or 1,
            # Less than none is as many as there are.
            max_tokens=usual.max_tokens if tokens is None or tokens < 0 else min(tokens, _MOST_TOKENS),
            deadline_ms=self._deadline_ms,
            seed=self.seed if self.seed is not None and 0 <= self.seed < 2**63 else usual.seed,
        )

    @property
    def _stop_words(self) -> tuple[str, ...]:
        words = [self.stop] if isinstance(self.stop, str) else self.stop or []
        if len(words) > _MOST_STOPS:
            raise HttpError(400, f"At most {_MOST_STOPS} stop words are heeded.", "stop")
        return tuple(filter(None, words))

    @property
    def _asked_tokens(self) -> int | None:
        return self.max_tokens if self.n_predict is None else self.n_predict

    @property
    def _deadline_ms(self) -> float | None:
        """The deadline. A client's times for prompt and answer are added: the fill divides the sum itself."""
        if self.t_max_predict_ms is None or self.t_max_predict_ms <= 0:
            return None
        return min(self.t_max_predict_ms + max(self.t_max_prompt_ms or 0, 0), _MOST_MS)


class InfillExtra(Struct, frozen=True, kw_only=True):
    """Text of another file."""

    text: str
    filename: str | None = None


class InfillBody(RequestBody, frozen=True, kw_only=True):
    """The body of `POST /infill`, as llama.cpp's server takes it."""

    input_prefix: str
    input_suffix: str
    input_extra: list[InfillExtra] | None = None
    prompt: str | list[Any] | None = None
    """What stands directly before the gap, after `input_prefix`."""
    response_fields: list[str] | None = None
    """Only these fields of the answer; a path's parts are joined by slashes."""

    def fill_request(self) -> FillRequest:
        """The gap."""
        extra = self.input_extra or []
        snippets = [Snippet(path=each.filename or "context", text=each.text) for each in extra if each.text.strip()]
        if isinstance(self.prompt, list):
            raise HttpError(400, _TOKENS, "prompt")
        return self.request(self.input_prefix + (self.prompt or ""), self.input_suffix, snippets=snippets)


class StreamOptions(Struct, frozen=True, kw_only=True):
    include_usage: bool | None = None


class OpenAIBody(RequestBody, frozen=True, kw_only=True):
    """What bodies of OpenAI's API have in common."""

    stream_options: StreamOptions | None = None

    @property
    def with_usage(self) -> bool:
        """Whether a stream ends with the number of tokens."""
        return self.stream_options is not None and self.stream_options.include_usage is True


class ContentPart(Struct, frozen=True, kw_only=True):
    type: str
    text: str = ""


class MessageBody(Struct, frozen=True, kw_only=True):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[ContentPart]

    def message(self) -> ConversationMessage:
        """Raises HttpError for what is no text."""
        parts = [ContentPart(type="text", text=self.content)] if isinstance(self.content, str) else self.content
        if any(part.type != "text" for part in parts):
            raise HttpError(400, "Only text can be answered: leave out what else the messages hold.", "messages")
        role = "system" if self.role == "developer" else self.role
        return ConversationMessage(role=role, content="".join(part.text for part in parts))


class ResponseFormat(Struct, frozen=True, kw_only=True):
    type: str = "text"


class ChatBody(OpenAIBody, frozen=True, kw_only=True):
    """The body of `POST /v1/chat/completions`."""

    messages: Annotated[list[MessageBody], Meta(min_length=1, max_length=256)]
    max_completion_tokens: int | None = None
    response_format: ResponseFormat | None = None

    def chat_request(self) -> FillRequest:
        """The conversation. Raises HttpError."""
        if self.response_format is not None and self.response_format.type != "text":
            raise HttpError(400, "Answers are plain text: leave out the response format.", "response_format")
        if (self.n_cmpl or self.n or 1) > 1:
            raise HttpError(400, "There is one answer to a conversation: ask for one.", "n")
        given = self.max_completion_tokens if self._asked_tokens is None else self._asked_tokens
        return replace(
            self.request("", ""),
            task="chat",
            stop=self._stop_words,
            messages=tuple(each.message() for each in self.messages),
            language="",
            max_tokens=_MOST_TOKENS if given is None or given < 1 else min(given, _MOST_TOKENS),
        )


class CompletionBody(OpenAIBody, frozen=True, kw_only=True):
    """The body of `POST /v1/completions`."""

    prompt: str | list[Any]
    suffix: str | None = None
    logprobs: bool | int | None = None

    @property
    def text(self) -> str:
        """The prompt. Raises HttpError if there is none, for several, and for token ids."""
        prompts: list[Any] = [self.prompt] if isinstance(self.prompt, str) else self.prompt
        if any(not isinstance(each, str) for each in prompts):
            raise HttpError(400, _TOKENS, "prompt")
        if len(prompts) != 1:
            raise HttpError(400, "Send one prompt per request.", "prompt")
        return prompts[0]


def _end(prefix: str) -> str:
    """The end of the text before a gap, from a line on if it is too long."""
    if len(prefix) <= _MOST_CHARS:
        return prefix
    start = len(prefix) - _MOST_CHARS
    return prefix[prefix.find("\n", start, start + _LINE) + 1 or start :]


def read_body(body: bytes, kind: type[A]) -> A:
    """Raises HttpError if a body is invalid, or a field is missing or of the wrong type."""
    values = read_json(body)
    if values is UNREADABLE:
        raise HttpError(400, "The request body is not valid JSON.")
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        found = _PLACE.fullmatch(str(error))
        what, place = (found[1], found[2].lstrip(".")) if found else (str(error), "")
        missing = re.search(r"missing required field `(\w+)`", what)
        field = missing[1] if missing else place
        complaint = f'"{field}" is required' if missing else f'"{field}": {what}' if field else what
        raise HttpError(400, f"{complaint}.", field or None) from None
