"""Family `remote`: a model that a server runs, through vLLM's seeded canvases (0.31 and newer).

The server gets tokens; layout, widths, validation, repair and ranking happen here. A canvas is a request of its own, so
that the server batches those of all its users; all begin with the same context, which its prefix cache holds.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import NoReturn, Self

from torch import Tensor

from engine.common.averages import WEIGHT, running_average
from engine.common.errors import BadInput
from engine.common.server_address import ServerAddress
from engine.models.base import CanvasOrder, CanvasReply, Capabilities, Context, ModelInfo, Rows, TextContext
from engine.models.logits import Head, Logits
from engine.models.remote.client import SWITCH, RemoteError, ServerAway, ServerClient
from engine.models.remote.completions import PATH, Served, read_reply, request_body
from engine.models.remote.probe import ServerBusy, check_status, check_tokenizer, probe
from engine.models.tokenizer import PromptLayout

LONGEST_S = 60.0
"""Most seconds for canvases without a deadline."""
_SILENCES = 3
"""Missing answers in a row after which a server counts as away."""
_HOLD_OFF_S = 1.0
"""Seconds without a request after a server was overloaded."""
PROBE_S = 10.0
"""Seconds for all questions to a server before it gets any text."""
_LOOK_S = 1.0
"""Seconds between two looks at how many requests wait at the server, while it is used."""
_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 0.15
"""Seconds before a request: for each that waits at the server, and at most. Who types on meanwhile cancels the request
before it is sent."""
_MOST_WAITING = 1_000_000
"""A larger number of waiting requests is not believed."""
_WAITING = re.compile(rb"^vllm:num_requests_waiting(?:{[^\n]*})? ([0-9.e+]+)$", re.MULTILINE)


class Remote(Capabilities):
    """A `Model` whose canvases a server denoises."""

    def __init__(self, client: ServerClient, address: ServerAddress, info: ModelInfo, layout: PromptLayout) -> None:
        """`info` and `layout`: of the checkpoint that the server runs. Raises ModelError for one that it can't."""
        if info.noise.mask_id is not None:
            raise RemoteError(
                f"{address.model} has a mask token, and vLLM starts from random tokens alone: run it on this machine, "
                "or name a model whose noise is uniform."
            )
        self.info = replace(info, name=address.name, family="remote", device=address.url, length="discover")
        self.head = Head(self._logits, info.noise.vocab_size)
        self.vocabulary = layout.vocabulary
        self.tokenize = layout.tokenize
        self.prompt = layout.lay_out
        self._client = client
        self._address = address
        self._served: Served | None = None
        self._probing: asyncio.Task[Served] | None = None
        self._step_ms: float | None = None
        self._silences = 0
        self._hold_off_until = 0.0
        self._looking: asyncio.Task[None] | None = None
        self._looked_at = -math.inf
        self.waiting = 0
        """Requests that waited at the server at the last look."""

    @property
    def denoiser(self) -> Self:
        return self

    def encode(self, ids: Sequence[int]) -> TextContext:
        return TextContext(ids=tuple(ids))

    def step(self, rows: Rows) -> Logits:
        self._refuse("single steps")

    def score(self, context: Context, gaps: Sequence[Sequence[int]], suffix: Sequence[int]) -> list[list[float]]:
        """Raises BadInput: the request that would score gaps ends vLLM's engine."""
        self._refuse("scores from left to right")

    def _logits(self, hidden: Tensor, tokens: slice | Tensor) -> Tensor:
        self._refuse("logits")

    def _refuse(self, what: str) -> NoReturn:
        raise BadInput(f"{self.info.name} is on a server, which has no {what}: use a model on this machine for this.")

    def probe(self) -> Future[Served]:
        """Ask the server whether it runs this model as we know it. Fails with RemoteError."""
        return self._client.run(self._known())

    def denoise(
        self, orders: Sequence[CanvasOrder], *, max_steps: int, choices: int, within_ms: float
    ) -> Future[list[CanvasReply | None]]:
        """See `CanvasDenoiser`. Takes fewer steps where the deadline leaves no time for more."""
        return self._client.run(self._denoised(orders, max_steps, choices, within_ms))

    async def _denoised(
        self, orders: Sequence[CanvasOrder], max_steps: int, choices: int, within_ms: float
    ) -> list[CanvasReply | None]:
        ends = time.monotonic() + min(within_ms / 1000, LONGEST_S)
        if within_ms <= 0:
            return [None] * len(orders)
        if time.monotonic() < self._hold_off_until:
            raise ServerBusy(f"The server at {self._address.url} has too much to do: suggestions go on in a moment.")
        tasks: list[asyncio.Task[CanvasReply]] = []
        try:
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + ends - time.monotonic()):
                served = self._served or await self._known()
                self._look()
                await asyncio.sleep(min(_PAUSE_S * self.waiting, _LONGEST_PAUSE_S, within_ms / 4000))
            began = time.monotonic()
            steps = self._steps_within(ends - began, max_steps)
            tasks = [asyncio.create_task(self._one(served, order, steps, choices)) for order in orders]
            _, late = await asyncio.wait(tasks, timeout=ends - began)
            took_ms = (time.monotonic() - began) * 1000
            if late:
                self._gave_up(took_ms, steps)
            # Who is refused waits for no step.
            elif not all(task.exception() for task in tasks):
                self._took(took_ms / steps)
        except TimeoutError:
            pass  # No step was asked for.
        finally:
            for task in tasks:
                task.cancel()
            # Their connections are closed before anybody hears of it.
            await asyncio.gather(*tasks, return_exceptions=True)
        return self._answered(tasks, len(orders), math.isinf(within_ms))

    def _answered(
        self, tasks: Sequence[asyncio.Task[CanvasReply]], count: int, patient: bool
    ) -> list[CanvasReply | None]:
        ended = [None if task.cancelled() else task for task in tasks] or [None] * count
        failures = [error for task in ended if task and (error := task.exception())]
        replies = [task.result() if task and not task.exception() else None for task in ended]
        if any(replies):
            self._silences = 0
            return replies
        if failures:
            # Who comes back may be another.
            self._served = None if isinstance(failures[0], ServerAway) else self._served
            self._hold_off_until = time.monotonic() + _HOLD_OFF_S * isinstance(failures[0], ServerBusy)
            raise failures[0]
        self._silences += 1
        if patient or self._silences >= _SILENCES:
            raise ServerAway(f"The server at {self._address.url} gives no answer in time; {SWITCH}.")
        return replies

    async def _one(self, served: Served, order: CanvasOrder, steps: int, choices: int) -> CanvasReply:
        context = order.context
        assert isinstance(context, TextContext), "a context of another model"
        body = request_body(served, context.ids, order.ids, order.pinned, max_steps=steps, choices=choices)
        status, answer = await self._client.post(PATH, body)
        check_status(status, answer, self._address.url)
        return read_reply(answer, served, len(order.ids), choices=choices)

    async def _known(self) -> Served:
        """What the server is. One caller asks for all who wait, and goes on asking if one of them is cancelled."""
        if self._served is not None:
            return self._served
        if self._probing is None or self._probing.done():
            self._probing = asyncio.create_task(self._probed())
        return await asyncio.shield(self._probing)

    async def _probed(self) -> Served:
        try:
            # Others than the one who asked wait for this, each with a deadline of their own.
            async with asyncio.timeout(PROBE_S):
                self._served = await self._asked_what_it_is()
        except TimeoutError:
            raise ServerAway(
                f"The server at {self._address.url} takes connections and says nothing: {SWITCH}."
            ) from None
        return self._served

    async def _asked_what_it_is(self) -> Served:
        url, model = self._address.url, self._address.model
        served, _ = await probe(self._client, url, model)
        if served.vocab_size != self.info.noise.vocab_size:
            raise RemoteError(
                f"{model} at {url} has {served.vocab_size} tokens, the tokenizer here is for "
                f"{self.info.noise.vocab_size}: name the same model's as tokenizer."
            )
        if served.canvas_length < self.info.canvas_length:
            raise RemoteError(
                f"{model} at {url} has canvases of {served.canvas_length} tokens, {self.info.canvas_length} are "
                "needed: have it run with a larger canvas_length in --diffusion-config."
            )
        least = self.info.context_limit + self.info.canvas_length
        if served.most_tokens < least:
            raise RemoteError(
                f"{model} at {url} takes {served.most_tokens} tokens, {least} are needed: have it run with "
                f"--max-model-len {least}."
            )
        await check_tokenizer(self._client, url, model, self.tokenize)
        return served

    def _look(self) -> None:
        """Refresh `waiting` in the background if it is older than `_LOOK_S`."""
        if time.monotonic() - self._looked_at >= _LOOK_S:
            self._looked_at = time.monotonic()
            self._looking = asyncio.create_task(self._looked())

    async def _looked(self) -> None:
        waiting = 0
        # A proxy may well keep metrics for itself, or put others in their place.
        with contextlib.suppress(RemoteError, TimeoutError, ValueError):
            async with asyncio.timeout(_LOOK_S):
                status, told = await self._client.get("/metrics")
                if status == 200:
                    waiting = int(min(sum(map(float, _WAITING.findall(told))), _MOST_WAITING))
        self.waiting = waiting

    def _steps_within(self, left_s: float, most: int) -> int:
        if self._step_ms is None or self._step_ms <= 0:
            return most
        return max(1, min(most, int(left_s * 1000 / self._step_ms)))

    def _took(self, step_ms: float) -> None:
        # What is held after a silence was guessed in it.
        self._step_ms = step_ms if self._silences else running_average(self._step_ms, step_ms)

    def _gave_up(self, waited_ms: float, steps: int) -> None:
        """Raise the estimate of a step's time, so that the next request has fewer steps. Waiting proves no more than
        one step, so the estimate stays below `waited_ms`."""
        self._step_ms = max(self._step_ms or 0.0, waited_ms / max(1.0, steps / (1 + WEIGHT)))
