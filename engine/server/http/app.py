"""The HTTP routes: convert, await, convert."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from engine.common.messages import Drafted, EngineMessage, Failed, FillReply
from engine.common.request import Filled, FillRequest
from engine.models.addressed import named
from engine.server.connection import Host
from engine.server.http import fim, llamacpp, openai
from engine.server.http.bodies import ChatBody, CompletionBody, HttpError, InfillBody, RequestBody, read_body
from engine.server.http.endings import LATE, NOTHING, Completed, Endings, Settling, completed
from engine.server.http.fills import HttpFills
from engine.server.http.gate import OPEN_TO_ALL
from engine.server.http.prometheus import CONTENT_TYPE, metrics

_log = logging.getLogger(__name__)
_OPENAI = "/v1/"
_AGAIN = {"retry-after": "1"}
Events = AsyncGenerator[dict[str, Any]]
AnswerForm = llamacpp.Infill | openai.Completion | openai.ChatCompletion
"""The form of the answers to a client."""
_POSTED = ("/infill", "/v1/completions", "/v1/chat/completions")
_MODELS = ("/v1/models", "/models")
PATHS = (*_POSTED, *_MODELS, *OPEN_TO_ALL, "/props", "/metrics")


class HttpApp:
    """The endpoints. `answered` counts requests by path and status, and belongs to the gate."""

    def __init__(self, host: Host, fills: HttpFills, model: str) -> None:
        self._host = host
        self._fills = fills
        self._model = named(model).public_name
        self._since = time.time()
        self.answered: dict[tuple[str, int], int] = {}

    def asgi(self) -> Starlette:
        """The routes without the gate."""
        infill, completions, chat = _POSTED
        return Starlette(
            routes=[
                Route(infill, self._infill, methods=["POST"]),
                Route(completions, self._completions, methods=["POST"]),
                Route(chat, self._chat, methods=["POST"]),
                *(Route(path, self._models) for path in _MODELS),
                *(Route(path, self._health) for path in OPEN_TO_ALL),
                Route("/props", self._props),
                Route("/metrics", self._metrics),
            ],
            exception_handlers={HttpError: _refused, HTTPException: _not_here, Exception: _broken},
        )

    async def _infill(self, request: Request) -> Response:
        arrived = time.monotonic()
        body = read_body(await request.body(), InfillBody)
        wanted = body.fill_request()
        return await self._filled(arrived, body, wanted, llamacpp.Infill(self._model, wanted, body.response_fields))

    async def _completions(self, request: Request) -> Response:
        arrived = time.monotonic()
        body = read_body(await request.body(), CompletionBody)
        logprobs = body.logprobs not in (None, False)
        completion = openai.Completion(self._model, logprobs=logprobs, with_usage=body.with_usage)
        return await self._filled(arrived, body, _gap(body), completion)

    async def _filled(self, arrived: float, body: RequestBody, wanted: FillRequest, form: AnswerForm) -> Response:
        endings = body.endings(wanted)
        if body.loads_only:
            reply = await self._fills.warm(arrived)
            if isinstance(reply, Failed):
                raise HttpError.of(reply)
            return _json(form.whole([form.UNASKED], None))
        replies = self._fills.fill(wanted, drafts=body.stream is True and _stands(wanted), arrived=arrived)
        return await _answered(body, replies, wanted, endings, form)

    async def _chat(self, request: Request) -> Response:
        arrived = time.monotonic()
        body = read_body(await request.body(), ChatBody)
        wanted = body.chat_request()
        endings = body.endings(wanted)
        # Typing goes first, as before every edit.
        replies = self._fills.fill(wanted, drafts=body.stream is True, arrived=arrived, priority="background")
        completion = openai.ChatCompletion(self._model, with_usage=body.with_usage)
        return await _answered(body, replies, wanted, endings, completion)

    async def _models(self, _: Request) -> Response:
        return _json(openai.models(self._model, self._since, llamacpp.about(self._host.status())))

    async def _props(self, _: Request) -> Response:
        return _json(llamacpp.properties(self._model, self._host.status()))

    async def _health(self, _: Request) -> Response:
        state = self._host.status().state
        if state.name == "loading":
            raise HttpError(503, "Loading model")
        if state.name == "error":
            raise HttpError(503, "The model can't be loaded; `dg-lsp engine status` says why.")
        return _json({"status": "ok"})

    async def _metrics(self, _: Request) -> Response:
        return Response(metrics(self._host.status(), self.answered), media_type=CONTENT_TYPE)


class EventStream(Response):
    """Server-sent events, until `events` end; `replies` are closed with them in any case."""

    media_type = "text/event-stream"

    def __init__(self, events: Events, replies: AsyncGenerator[EngineMessage], form: AnswerForm) -> None:
        super().__init__(headers={"cache-control": "no-cache"})
        del self.headers["content-length"]
        self._events = events
        self._replies = replies
        self._form = form

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with contextlib.aclosing(self._replies), contextlib.aclosing(self._events):
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            try:
                async for event in self._events:
                    await _send(send, _event(event))
            except HttpError as error:
                await _send(send, _event(self._form.error_object(error.status, str(error))))
            await send({"type": "http.response.body", "body": self._form.END, "more_body": False})


def refusal(path: str, error: HttpError) -> Response:
    """An error object in the protocol of a path."""
    message = str(error)
    held = (
        openai.error_object(error.status, message, error.param)
        if path.startswith(_OPENAI)
        else llamacpp.error_object(error.status, message)
    )
    headers = (_AGAIN if error.status == 503 else {}) | ({"connection": "close"} if error.closes else {})
    return _json(held, error.status, headers)


def _gap(body: CompletionBody) -> FillRequest:
    """The prefix and suffix of a completion: between prompt and suffix, or at the markers within the prompt."""
    # A suffix that is sent, be it empty, is the other side: markers in the prompt are text like all of it.
    told = body.suffix is not None
    found = fim.Parsed(prefix=body.text, suffix=body.suffix or "") if told else fim.parsed(body.text)
    return body.request(found.prefix, found.suffix, snippets=found.snippets, path=found.path)


async def _answered(
    body: RequestBody, replies: AsyncGenerator[EngineMessage], wanted: FillRequest, endings: Endings, form: AnswerForm
) -> Response:
    """The whole answer, or a stream of it."""
    if not body.stream:
        async with contextlib.aclosing(replies):
            filled, answers = _finished(await anext(replies), endings, wanted)
        return _json(form.whole(answers, filled))
    # An error that comes first can still be told by the status.
    first = await anext(replies)
    if isinstance(first, Failed) and first.code != "late":
        await replies.aclose()
        raise HttpError.of(first)
    return EventStream(_events(first, replies, wanted, endings, form), replies, form)


async def _events(
    first: EngineMessage,
    rest: AsyncGenerator[EngineMessage],
    wanted: FillRequest,
    endings: Endings,
    form: AnswerForm,
) -> Events:
    for begun in form.begin():
        yield begun
    settling, message = Settling(endings), first
    while isinstance(message, Drafted):
        if text := settling.more(message.draft):
            yield form.piece(text)
        message = await anext(rest)
    filled, answers = _finished(message, endings, wanted)
    for index, each in enumerate(answers):
        text = each.text if index else settling.rest(each.text)
        for left in form.end(index, text, each, filled):
            yield left
    for last in form.usage(answers, filled):
        yield last


def _finished(
    message: EngineMessage, endings: Endings, wanted: FillRequest
) -> tuple[Filled | None, Sequence[Completed]]:
    """The result of a fill that has at least one answer. Raises HttpError."""
    if isinstance(message, FillReply):
        held = message.filled.candidates
        return message.filled, [completed(each, endings, wanted.max_tokens) for each in held] or [NOTHING]
    assert isinstance(message, Failed)
    if message.code == "late":
        # The client gave it some time, and what there is by then is nothing.
        return None, [LATE]
    raise HttpError.of(message)


def _stands(wanted: FillRequest) -> bool:
    """Whether the settled part of a draft will likely stay: a grammar may cut or repair an answer, and the first of
    several may be any."""
    return wanted.n == 1 and not wanted.language


def _json(held: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(held), status, headers, media_type="application/json")


def _event(held: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(held) + b"\n\n"


async def _send(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HttpError)
    return refusal(request.url.path, error)


async def _not_here(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    told = {
        404: f"Unknown path. Available: {', '.join(PATHS)}.",
        405: f"Wrong method for this path: use POST for {', '.join(_POSTED)}, GET for the others.",
    }
    return refusal(request.url.path, HttpError(error.status_code, told.get(error.status_code, error.detail)))


async def _broken(request: Request, error: Exception) -> Response:
    _log.error("failed at a request", exc_info=error)
    return refusal(request.url.path, HttpError(500, "The engine failed at this request; its log says more."))
