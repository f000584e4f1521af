"""The one thread that owns the model: loads it, gives turns to fills, unloads it when nobody asks for long."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from engine.common.adapter_use import AdapterUse
from engine.common.errors import is_broken_device
from engine.common.messages import Done, Drafted, EngineState, Failed, Fill, FillReply, Warm
from engine.common.request import Draft, Filled, FillRequest
from engine.server import memory
from engine.server.failures import failure_of
from engine.server.metrics import Metrics
from engine.server.scheduler import Job, Scheduler
from engine.server.watchdog import Watchdog
from engine.syntax.questions import Check, Reply

if TYPE_CHECKING:
    from engine.models.adapters.index import Adapters
    from engine.models.base import Model, ModelInfo, Prefill
    from engine.models.logits import Logits

_log = logging.getLogger(__name__)
_RETRY_LOAD_S = 10.0
"""A load that failed is not tried again for so long; each keystroke would."""
_SHORTAGES = 3
"""Requests in a row that run out of memory, each tried twice, until the weights are given back."""
_REST_S = 3600.0
"""Without work, at the most: no system waits for a time without end."""
_WARM_UP_AFTER_S, _WARM_UP_MS = 0.1, 1000.0
_SHOW_S = 0.1
"""Between two words on how far a load has come."""


class Worker(threading.Thread):
    """`load` is given what to call with the percentage it has come to, `check` what is to be asked about a job's
    document, whose reply goes to the scheduler; `on_state` and `check` are called on this thread."""

    def __init__(
        self,
        scheduler: Scheduler,
        metrics: Metrics,
        load: Callable[[Callable[[float], None]], Model],
        *,
        watchdog: Watchdog,
        unload_after_s: float,
        check: Callable[[Job, Check], None],
        on_state: Callable[[EngineState], None],
    ) -> None:
        # A daemon, so that a forward pass that never returns can't keep the process.
        super().__init__(name="model", daemon=True)
        self._scheduler = scheduler
        self._metrics = metrics
        self._load = load
        self._watchdog = watchdog
        self._unload_after_s = unload_after_s
        self._check = check
        self._on_state = on_state
        self._adapters: Adapters | None = None
        """The model, and what was learnt of the folders that requests come from; None while there are no weights."""
        self._load_failure: Failed | None = None
        self._load_began = self._load_ended = self._idle_since = time.monotonic()
        self._memory_short = False
        self._shortages = 0
        self._warmed_up = False
        self.broken = False
        """The device fails for good; only another process can use it."""
        self.torch_imported = False

    @property
    def _model(self) -> Model | None:
        adapters = self._adapters
        return adapters.model if adapters is not None else None

    @property
    def loaded_since(self) -> float | None:
        """When the weights came, monotonic seconds; None while there are none."""
        return self._load_ended if self._model is not None else None

    @property
    def context_tokens(self) -> tuple[int, int]:
        """Tokens of context asked for since the weights came, and those of them found in the cache."""
        model = self._model
        return model.context_tokens if model is not None else (0, 0)

    @property
    def info(self) -> ModelInfo | None:
        """What the model says of itself; None while there are no weights."""
        model = self._model
        return model.info if model is not None else None

    @property
    def adapters_used(self) -> tuple[AdapterUse, ...]:
        """Of those that requests came for since the weights came."""
        adapters = self._adapters
        return adapters.used if adapters is not None else ()

    def run(self) -> None:
        """Round after round until the scheduler closes."""
        while True:
            work = self._scheduler.next_round(self._rest_s())
            for job in work.abandoned:
                self._abandon(job)
            if work.closed or self.broken:
                return
            model = self._model_for(work.jobs) if work.jobs else None
            if model is not None:
                with self._round(model):
                    for job in work.jobs:
                        if self._can_go_on(model, job):
                            self._advance(job, job.reply)
                    waiting = [job for job in work.jobs if job.step is not None and not job.ended]
                    # A pass has the weights of one model.
                    for own in {job.model: None for job in waiting}:
                        for job, logits in self._forward(own or model, [job for job in waiting if job.model is own]):
                            self._advance(job, logits)
                            del logits
            elif not work.idle:
                self._idle_since = time.monotonic()
            elif self._model is not None and self._unloads_in_s() <= 0:
                self._unload()
            elif self._model is not None and not self._warmed_up:
                with self._round(self._model):
                    self._warm_up(self._model)
            elif self._model is not None and self._prefill is not None:
                with self._round(self._model):
                    self._read_piece(self._prefill)
            # Only what nothing names any more is given back.
            model = own = None
            if self._shortages >= _SHORTAGES:
                self._give_up()

    def _rest_s(self) -> float:
        if self._model is None:
            return _REST_S
        if self._prefill is not None and not any(self._scheduler.counts()):
            return 0.0
        # Who had the model loaded is likely to ask at once; that warms up as well.
        return min(self._unloads_in_s(), _REST_S if self._warmed_up else _WARM_UP_AFTER_S)

    @property
    def _prefill(self) -> Prefill | None:
        """Of a model that has a context left to read."""
        models = self._adapters.models if self._adapters is not None else ()
        return next((each.prefill for each in models if each.prefill and each.prefill.later), None)

    def _unloads_in_s(self) -> float:
        return max(self._idle_since + self._unload_after_s - time.monotonic(), 0)

    def _model_for(self, jobs: Sequence[Job]) -> Model | None:
        """The model, loaded where somebody wants it; where it can't be, they are told why."""
        if self._model is None and self._try_load() is None:
            assert self._load_failure is not None
            under_way = [job for job in jobs if job.filling is not None]
            for job in under_way:
                # It still has a model that was given up.
                self._abandon(job)
            if under_way:
                memory.give_back()
            for job in jobs:
                self._scheduler.finish(job, replace(self._load_failure, id=job.id))
        return self._model

    @contextmanager
    def _round(self, model: Model) -> Generator[None]:
        # Not imported before there is a model, for the handshake's sake.
        import torch

        from engine.models.products import threads_for

        threads = threads_for(model.info.parameters, model.info.device)
        with self._watchdog.round(model.info.device), torch.inference_mode(), threads:
            yield
        if self._memory_short and self._shortages < _SHORTAGES:
            # Not before the round is over: until then its own tensors are in use.
            model.shrink_caches()
            if self._adapters is not None:
                self._adapters.drop()
            memory.give_back()
            memory.settle()
        self._memory_short = False

    def _can_go_on(self, model: Model, job: Job) -> bool:
        """Whether a job is begun and waits for no forward pass."""
        if isinstance(job.order, Warm):
            self._idle_since = time.monotonic()
            self._scheduler.finish(job, Done(id=job.id))
            return False
        if job.step is not None or job.ended:
            return False
        try:
            return job.filling is not None or self._begin(model, job, job.order.request)
        except BaseException as error:  # noqa: BLE001 whatever it is, it is this job's alone
            self._fail(job, error)
            return False

    def _warm_up(self, model: Model) -> None:
        """Fill a gap that nobody asked for: a first pass through code and kernels takes several times as long as the
        next."""
        from engine.fill.answering import answering
        from engine.fill.executor import drive

        self._warmed_up = True
        # Without a language: the process that checks syntax warms up by itself.
        request = FillRequest(
            prefix="def warm_up(values):\n    return sorted(", suffix=")\n", max_tokens=8, deadline_ms=_WARM_UP_MS
        )
        try:
            drive(model, answering(model, request))
        except BaseException as error:  # noqa: BLE001 whatever it is, requests will say so
            _log.warning("the first fill failed: %s", error)
        memory.settle()

    def _read_piece(self, prefill: Prefill) -> None:
        try:
            prefill.read_piece()
        except BaseException as error:  # noqa: BLE001 whatever it is, requests will say so
            _log.warning("what a deadline left of a context can't be encoded: %s", error)
            prefill.later = ()

    def _begin(self, model: Model, job: Job, request: FillRequest) -> bool:
        """Give a job what does its work; not where it is too late for that."""
        from engine.fill.answering import answering

        if request.deadline_ms is not None:
            # The wait in the queue is the request's own time; a load is not, or nothing would be answered after one.
            left_ms = request.deadline_ms - (time.monotonic() - max(job.arrived, self._load_ended)) * 1000
            if left_ms <= 0:
                message = "The deadline passed before the model was free."
                self._scheduler.finish(job, Failed(id=job.id, code="late", message=message))
                return False
            request = replace(request, deadline_ms=left_ms)
        job.model = self._adapters.model_for(request.folder) if self._adapters is not None else model
        job.filling = answering(job.model, request)
        return True

    def _advance(self, job: Job, sent: Logits | Reply | None) -> None:
        """Let a job go on with what it waited for, up to what it waits for next."""
        filling = job.filling
        if filling is None or job.ended:
            return
        job.step = job.reply = None
        draft = None
        began = time.perf_counter()
        try:
            wanted = filling.send(sent)
            if wanted is None:
                return  # it goes on in the next round, where nothing newer holds it up
            if isinstance(wanted, Check):
                self._scheduler.await_reply(job)
                self._check(job, wanted)
                return
            if isinstance(wanted, Draft):
                # So does this, after a forward pass of its own.
                self._metrics.forward((time.perf_counter() - began) * 1000, 1)
                draft = wanted if _wants_drafts(job) else None
            elif wanted.pending is not None:
                self._await(job, wanted.pending)
            else:
                job.step, job.rows = wanted, wanted.rows.canvas.shape[0]
                if sent is not None and _wants_drafts(job):
                    draft = wanted.draft()
        except StopIteration as end:
            self._answer(job, end.value)
        except BaseException as error:  # noqa: BLE001 whatever it is, a panic of Rust too, it is this job's alone
            self._fail(job, error)
        if draft is not None:
            job.deliver(Drafted(id=job.id, draft=draft))

    def _await(self, job: Job, elsewhere: Future[Any]) -> None:
        """Leave a job to another machine; its next turn is when that is done."""
        began = time.perf_counter()

        def done(_: Future[Any]) -> None:
            self._metrics.forward((time.perf_counter() - began) * 1000, 1)
            self._scheduler.replied(job, None)

        self._scheduler.await_reply(job)
        elsewhere.add_done_callback(done)

    def _forward(self, model: Model, jobs: Sequence[Job]) -> list[tuple[Job, Logits]]:
        from engine.fill.executor import merged, parted

        steps = [job.step for job in jobs if job.step is not None]
        if not steps:
            return []
        began = time.perf_counter()
        parts = None
        try:
            parts = parted(model.step(merged(steps)), steps)
        except BaseException as error:  # noqa: BLE001 whatever it is, it must not end the thread
            if len(jobs) == 1:
                self._fail(jobs[0], error)
                return []
        if parts is None:
            # One of them may have broken it for all: each gets a pass of its own. Not while the error is handled, whose
            # traceback holds all that the failed pass had made.
            return [pair for job in jobs for pair in self._forward(model, [job])]
        self._metrics.forward((time.perf_counter() - began) * 1000, len(jobs))
        # Work that fails is none: a model that does nothing else is unloaded.
        self._idle_since = time.monotonic()
        return list(zip(jobs, parts, strict=True))

    def _answer(self, job: Job, filled: Filled) -> None:
        # Whoever still has the job keeps no weights by it.
        job.filling = job.model = None
        self._shortages = 0
        self._warmed_up = True
        self._idle_since = time.monotonic()
        load_ms = max(self._load_ended - max(job.arrived, self._load_began), 0) * 1000
        filled = replace(filled, ms=replace(filled.ms, load=load_ms, total=filled.ms.total + load_ms))
        if not job.ended:
            self._metrics.answer(
                encode_ms=filled.ms.encode,
                total_ms=(time.monotonic() - job.arrived) * 1000,
                tokens=filled.candidates[0].tokens if filled.candidates else 0,
            )
        self._scheduler.finish(job, FillReply(id=job.id, filled=filled))

    def _fail(self, job: Job, error: BaseException) -> None:
        code, message = failure_of(error, "this request")
        self._abandon(job)
        if code == "out_of_memory":
            self._memory_short = True
            if not job.retried:
                # It stays in the queue and begins again, when what was kept for others is gone.
                job.retried = True
                return
            self._shortages += 1
        self.broken |= is_broken_device(error)
        self._scheduler.finish(job, Failed(id=job.id, code=code, message=message))

    def _abandon(self, job: Job) -> None:
        filling, job.filling, job.step, job.model = job.filling, None, None, None
        if filling is not None:
            filling.close()

    def _try_load(self) -> Model | None:
        if self._load_failure and time.monotonic() < self._load_ended + _RETRY_LOAD_S:
            return None
        self._on_state(EngineState(name="loading"))
        self._load_began = time.monotonic()
        with self._watchdog.load() as moved:
            self._adapters, self._load_failure = self._loaded(moved)
        self._load_ended = self._idle_since = time.monotonic()
        if self._load_failure:
            self._on_state(EngineState(name="error", message=self._load_failure.message))
        else:
            _log.info("loaded in %.1f s", self._load_ended - self._load_began)
            memory.settle()
            self._on_state(EngineState(name="ready"))
        return self._model

    def _loaded(self, moved: Callable[[], None]) -> tuple[Adapters | None, Failed | None]:
        shown = 0.0

        def show_percent(percent: float) -> None:
            nonlocal shown
            moved()
            # A small model has hundreds of tensors, and is there before one of these numbers is read.
            if percent == 100 or time.monotonic() - shown >= _SHOW_S:
                shown = time.monotonic()
                self._on_state(EngineState(name="loading", percent=percent))

        try:
            model = self._load(show_percent)
            # Not imported before there is a model, for the handshake's sake.
            from engine.models.adapters.index import Adapters

            return Adapters(model), None
        except BaseException as error:  # noqa: BLE001 whatever it is, the engine goes on and says so
            code, message = failure_of(error, "loading the model")
            self.broken |= is_broken_device(error)
            return None, Failed(id=None, code="model" if code == "bad_request" else code, message=message)
        finally:
            self.torch_imported = True

    def _unload(self) -> None:
        self._drop_model()
        _log.info("unloaded after %.0f s without work", self._unload_after_s)
        self._on_state(EngineState(name="unloaded"))

    def _give_up(self) -> None:
        """Somebody else may need the device, or somebody has left it too little: it is tried again in a while."""
        message = (
            "The device ran out of memory again and again, so the model was unloaded: close other programs that use "
            "the device, or use a smaller model."
        )
        self._drop_model()
        self._load_failure, self._load_ended = Failed(id=None, code="out_of_memory", message=message), time.monotonic()
        _log.warning("unloaded after %d requests that ran out of memory", self._shortages)
        self._shortages = 0
        self._on_state(EngineState(name="error", message=message))

    def _drop_model(self) -> None:
        self._adapters = None
        self._warmed_up = False
        memory.give_back()


def _wants_drafts(job: Job) -> bool:
    return isinstance(job.order, Fill) and job.order.drafts
