"""The model thread: round after round, one forward pass for all who wait for one."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from engine.common.messages import Done, Drafted, Failed, Fill, FillReply, Warm
from engine.common.request import Draft, Filled, FillRequest
from engine.server import memory
from engine.server.failures import failure_of
from engine.server.metrics import Metrics
from engine.server.model_host import ModelHost
from engine.server.scheduler import Job, Scheduler
from engine.syntax.questions import Reply, SyntaxCheck

if TYPE_CHECKING:
    from engine.models.base import Model
    from engine.models.logits import Logits


class Worker(threading.Thread):
    """`check` has a question about a job's document answered; the reply goes to the scheduler. It is called on this
    thread."""

    def __init__(
        self, scheduler: Scheduler, host: ModelHost, metrics: Metrics, check: Callable[[Job, SyntaxCheck], None]
    ) -> None:
        # A daemon, so that a forward pass that never returns can't keep the process.
        super().__init__(name="model", daemon=True)
        self._scheduler = scheduler
        self._host = host
        self._metrics = metrics
        self._check = check

    def run(self) -> None:
        """Round after round until the scheduler closes: choose jobs, do what they wait for, let them go on with it."""
        while (jobs := self._schedule()) is not None:
            if jobs:
                with self._host.round():
                    for job, output in self._run(jobs):
                        self._postprocess(job, output)
                        del job, output
            self._host.give_up_if_short()

    def _schedule(self) -> Sequence[Job] | None:
        """Who gets a turn, with the model there for them; None: there are no rounds any more."""
        idle = not any(self._scheduler.counts())
        work = self._scheduler.next_round(self._host.rest_s(idle=idle))
        for job in work.abandoned:
            self._close(job)
        if work.closed or self._host.broken:
            return None
        if work.idle:
            self._host.keep_house()
        elif not work.jobs:
            self._host.is_used()
        failure = self._host.failure() if work.jobs else None
        if failure is None:
            return work.jobs
        self._refuse(work.jobs, failure)
        return ()

    def _run(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Logits | Reply | None]]:
        """What each job is sent: a reply or nothing to those that wait for no forward pass, then logits."""
        from engine.fill.executor import merged, parted

        for job in jobs:
            if self._can_go_on(job):
                yield job, job.reply
        batches = _by_model([job for job in jobs if job.step is not None and not job.ended])
        while batches:
            model, batch = batches.popleft()
            steps, outputs = [job.step for job in batch if job.step is not None], None
            began = time.perf_counter()
            try:
                outputs = parted(model.step(merged(steps)), steps)
            except BaseException as error:  # noqa: BLE001 whatever it is, it must not end the thread
                if len(batch) == 1:
                    self._fail(batch[0], error)
                    continue
            if outputs is None:
                # One of them may have broken it for all: each gets a pass of its own. Not while the error is handled,
                # whose traceback holds all that the failed pass had made.
                batches.extendleft((model, [job]) for job in reversed(batch))
                continue
            self._metrics.forward((time.perf_counter() - began) * 1000, len(batch))
            self._host.is_used()
            yield from zip(batch, outputs, strict=True)

    def _postprocess(self, job: Job, output: Logits | Reply | None) -> None:
        """Let a job go on with what it waited for, up to what it waits for next."""
        job.step = job.reply = None
        if job.ended or (filling := job.filling) is None:
            return
        draft = None
        began = time.perf_counter()
        try:
            wanted = filling.send(output)
            if wanted is None:
                return  # it goes on in the next round, where nothing newer holds it up
            if isinstance(wanted, SyntaxCheck):
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
                if output is not None and _wants_drafts(job):
                    draft = wanted.draft()
        except StopIteration as end:
            self._answer(job, end.value)
        except BaseException as error:  # noqa: BLE001 whatever it is, a panic of Rust too, it is this job's alone
            self._fail(job, error)
        if draft is not None:
            job.deliver(Drafted(id=job.id, draft=draft))

    def _refuse(self, jobs: Sequence[Job], failure: Failed) -> None:
        """There is no model for them; those under way still hold one that was given up."""
        under_way = [job for job in jobs if job.filling is not None]
        for job in under_way:
            self._close(job)
        if under_way:
            memory.give_back()
        for job in jobs:
            self._scheduler.finish(job, replace(failure, id=job.id))

    def _can_go_on(self, job: Job) -> bool:
        """Whether a job is begun and waits for no forward pass."""
        if isinstance(job.order, Warm):
            self._host.is_used()
            self._scheduler.finish(job, Done(id=job.id))
            return False
        if job.step is not None or job.ended:
            return False
        try:
            return job.filling is not None or self._begin(job, job.order.request)
        except BaseException as error:  # noqa: BLE001 whatever it is, it is this job's alone
            self._fail(job, error)
            return False

    def _begin(self, job: Job, request: FillRequest) -> bool:
        """Give a job what does its work; not where it is too late for that."""
        from engine.fill.answering import answering

        if request.deadline_ms is not None:
            # The wait in the queue is the request's own time; a load is not, or nothing would be answered after one.
            left_ms = request.deadline_ms - self._host.since_load_s(job.arrived) * 1000
            if left_ms <= 0:
                message = "The deadline passed before the model was free."
                self._scheduler.finish(job, Failed(id=job.id, code="late", message=message))
                return False
            request = replace(request, deadline_ms=left_ms)
        job.model = self._host.model_for(request.folder)
        job.filling = answering(job.model, request)
        return True

    def _await(self, job: Job, pending: Future[Any]) -> None:
        """Leave a job to what its model does by itself; its next turn is when that is done."""
        began = time.perf_counter()

        def done(_: Future[Any]) -> None:
            self._metrics.forward((time.perf_counter() - began) * 1000, 1)
            self._scheduler.replied(job, None)

        self._scheduler.await_reply(job)
        pending.add_done_callback(done)

    def _answer(self, job: Job, filled: Filled) -> None:
        is_fill = isinstance(job.order, Fill) and job.order.request.task == "fill"
        self._host.has_answered(filled.ms.encode + filled.ms.denoise if is_fill else None)
        load_ms = self._host.load_ms(job.arrived)
        filled = replace(filled, ms=replace(filled.ms, load=load_ms, total=filled.ms.total + load_ms))
        if not job.ended:
            self._metrics.answer(
                encode_ms=filled.ms.encode,
                total_ms=(time.monotonic() - job.arrived) * 1000,
                tokens=filled.candidates[0].tokens if filled.candidates else 0,
            )
        self._scheduler.finish(job, FillReply(id=job.id, filled=filled))

    def _fail(self, job: Job, error: BaseException) -> None:
        """Answer with what went wrong. Where memory ran out, a job begins again once: what is kept for others goes
        first."""
        code, message = failure_of(error, "this request")
        self._close(job)
        retried = code == "out_of_memory" and not job.retried
        job.retried |= retried
        self._host.has_failed(error, code, retried=retried)
        if not retried:
            self._scheduler.finish(job, Failed(id=job.id, code=code, message=message))

    def _close(self, job: Job) -> None:
        # Whoever has the job keeps no weights.
        filling, job.filling, job.step, job.model = job.filling, None, None, None
        if filling is not None:
            filling.close()


def _by_model(jobs: Sequence[Job]) -> deque[tuple[Model, list[Job]]]:
    """A pass has the weights of one model."""
    models = dict.fromkeys(job.model for job in jobs if job.model is not None)
    return deque((model, [job for job in jobs if job.model is model]) for model in models)


def _wants_drafts(job: Job) -> bool:
    return isinstance(job.order, Fill) and job.order.drafts
