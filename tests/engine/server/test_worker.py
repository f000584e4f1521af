"""What several requests share a forward pass for, and what one of them may cost the others."""

import dataclasses
import itertools
import queue
import threading
import time
import weakref
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Literal

import pytest
import torch
from torch import Tensor

from engine.common.messages import EngineMessage, EngineState, Failed, Fill, FillReply, Warm
from engine.common.request import FillRequest
from engine.fill.executor import Step
from engine.lab.bench.families import random_model
from engine.lab.bench.workload import token_ids
from engine.models.base import PIECE, Model, Rows
from engine.models.gemma.model import DiffusionGemma
from engine.models.kv_cache import EncodedContext
from engine.models.logits import Logits, dense
from engine.models.oracle.model import Case, Oracle
from engine.server.metrics import Metrics
from engine.server.model_host import ModelHost
from engine.server.scheduler import Job, Round, Scheduler
from engine.server.watchdog import Watchdog
from engine.server.worker import Worker


class Small:
    """A device with room for one row: a pass over more makes activations, then fails."""

    def __init__(self) -> None:
        self.activations: list[weakref.ref[Tensor]] = []
        self.alive: list[int] = []

    def step(self, rows: Rows) -> Logits:
        self.alive.append(sum(made() is not None for made in self.activations))
        activations = torch.zeros(100)
        self.activations.append(weakref.ref(activations))
        if rows.canvas.shape[0] > 1:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return dense(torch.zeros(int(rows.open.sum()), 4))


def nothing(percent: object) -> Model:
    raise AssertionError("no model is loaded here")


def worker_of(
    scheduler: Scheduler,
    load: Callable[[Callable[[float], None]], Model],
    unload_after_s: float = 60.0,
    on_state: Callable[[EngineState], None] = lambda state: None,
) -> Worker:
    """Nothing is checked here."""
    host = ModelHost(load, watchdog=Watchdog(60), unload_after_s=unload_after_s, on_state=on_state)
    return Worker(scheduler, host, Metrics(), lambda job, check: None)


def job(number: int, model: object) -> Job:
    rows = Rows(
        contexts=[None],
        canvas=torch.zeros(1, 3, dtype=torch.int64),
        lengths=[3],
        open=torch.ones(1, 3, dtype=torch.bool),
        self_conditioning=None,
        conditioned=[False],
    )
    told: list[EngineMessage] = []
    fill = Fill(id=number, request=FillRequest(prefix="", suffix=""))
    made = Job(client=1, order=fill, deliver=told.append, arrived=0, touched=0)
    made.model = model  # type: ignore[assignment]
    made.step = Step(rows=rows, draft=lambda: None)  # type: ignore[arg-type, return-value]
    return made


def test_what_a_failed_pass_made_is_gone_when_each_job_gets_its_own():
    model = Small()
    jobs = [job(1, model), job(2, model)]
    worker = worker_of(Scheduler(), nothing)
    answered = list(worker._run(jobs))
    assert [each for each, _ in answered] == jobs
    assert model.alive == [0, 0, 0]


class Panic(BaseException):
    """As libraries written in Rust raise it."""


def test_a_panic_while_loading_is_an_answer_and_the_thread_goes_on():
    def load(percent: object) -> Model:
        raise Panic("chunk size must be non-zero")

    scheduler, told, states = Scheduler(), [], []
    worker = worker_of(scheduler, load, on_state=states.append)
    worker.start()
    answered = threading.Event()

    def deliver(message: EngineMessage) -> None:
        told.append(message)
        answered.set()

    for number in (1, 2):
        scheduler.submit(Job(client=1, order=Warm(id=number), deliver=deliver, arrived=0, touched=0))
        assert answered.wait(30)
        answered.clear()
    assert worker.is_alive()
    assert [(each.id, each.code) for each in told] == [(1, "internal"), (2, "internal")]
    assert states[-1].name == "error"
    scheduler.close()
    worker.join(30)


def test_a_panic_in_one_job_is_that_job_s_alone(caplog: pytest.LogCaptureFixture):
    class Panics(Small):
        def step(self, rows: Rows) -> Logits:
            if rows.canvas.shape[0] > 1 or rows.canvas[0, 0] == 1:
                raise Panic("index out of bounds")
            return dense(torch.zeros(int(rows.open.sum()), 4))

    model = Panics()
    jobs = [job(1, model), job(2, model)]
    jobs[0].step.rows.canvas[0, 0] = 1  # type: ignore[union-attr]
    worker = worker_of(Scheduler(), nothing)
    for each in jobs:
        worker._scheduler.submit(each)
    assert [each for each, _ in worker._run(jobs)] == jobs[1:]
    assert "failed at this request" in caplog.text


class Tight(Oracle):
    """A device that is full of contexts until it is told to keep less, `turns` times."""

    def __init__(self, turns: int) -> None:
        super().__init__("oracle", [Case(text="x = ▮1▮\n")])
        self.turns = turns
        self.steps = 0

    def step(self, rows: Rows) -> Logits:
        self.steps += 1
        if self.turns > 0:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return super().step(rows)

    def shrink_caches(self) -> None:
        self.turns -= 1


@contextmanager
def working(
    *models: Model, unload_after_s: float = 60.0
) -> Generator[tuple[Worker, Callable[[], EngineMessage], list[EngineState]]]:
    """A worker that loads one model after the other; a call fills a gap and gives the answer."""
    scheduler, states, answers = Scheduler(), list[EngineState](), queue.Queue[EngineMessage]()
    loads, numbers = iter(models), itertools.count(1)
    worker = worker_of(scheduler, lambda percent: next(loads), unload_after_s, states.append)

    def fill() -> EngineMessage:
        now = time.monotonic()
        order = Fill(id=next(numbers), request=FillRequest(prefix="x = ", suffix="\n"))
        scheduler.submit(Job(client=1, order=order, deliver=answers.put, arrived=now, touched=now))
        return answers.get(timeout=60)

    worker.start()
    try:
        yield worker, fill, states
    finally:
        scheduler.close()
        worker.join(30)


def test_memory_that_is_short_costs_the_contexts_and_not_the_request():
    model = Tight(turns=1)
    with working(model) as (_, fill, states):
        answer = fill()
    assert isinstance(answer, FillReply)
    assert answer.filled.candidates[0].text == "1"
    assert [state.name for state in states] == ["loading", "ready"]


def test_memory_that_stays_short_unloads_the_model_and_says_so():
    model = Tight(turns=1000)
    with working(model) as (worker, fill, states):
        told = [fill() for _ in range(4)]
        assert worker._host.loaded_since is None
    assert all(isinstance(each, Failed) and each.code == "out_of_memory" for each in told)
    # Each of the three was tried twice; what comes then is answered from the state.
    assert model.steps == 6
    assert states[-1].name == "error"
    assert "the model was unloaded" in states[-1].message


def test_a_model_that_is_given_up_is_gone_though_another_gap_was_being_filled():
    slow = Case(text="y = ▮" + " ".join(map(str, range(60))) + "▮\n", reveal=1, delay_ms=20)
    held = [Oracle("oracle", [slow, Case(text="x = ▮1▮\n", fault="out_of_memory")])]
    model = weakref.ref(held[0])
    scheduler, answers = Scheduler(), queue.Queue[EngineMessage]()
    worker = worker_of(scheduler, lambda percent: held.pop())
    worker.start()
    for number, prefix in enumerate(["y = ", "x = ", "x = ", "x = "]):
        now = time.monotonic()
        order = Fill(id=number, request=FillRequest(prefix=prefix, suffix="\n"))
        scheduler.submit(Job(client=number, order=order, deliver=answers.put, arrived=now, touched=now))
    told = [answers.get(timeout=60) for _ in range(4)]
    assert [each.id for each in told if isinstance(each, Failed)][-1] == 0
    assert model() is None
    scheduler.close()
    worker.join(30)


@pytest.mark.parametrize("fault", ["defect", "out_of_memory"])
def test_requests_that_fail_do_not_keep_a_model_loaded(fault: Literal["defect", "out_of_memory"]):
    model = Oracle("oracle", [Case(text="x = ▮1▮\n", fault=fault)])
    with working(*[model] * 100, unload_after_s=0.2) as (_, fill, states):
        for _ in range(200):
            fill()
            time.sleep(0.02)
            if states[-1].name in ("unloaded", "error"):
                return
    raise AssertionError("it stayed loaded")


@pytest.mark.parametrize("unload_after_s", [1e10, float("inf")])
def test_a_model_may_stay_for_longer_than_a_system_can_wait(unload_after_s: float):
    with working(Oracle("oracle", [Case(text="x = ▮1▮\n")]), unload_after_s=unload_after_s) as (worker, fill, _):
        assert isinstance(fill(), FillReply)
        worker.join(0.2)
        assert worker.is_alive()
        assert isinstance(fill(), FillReply)


def long(id: int, tokens: int, deadline_ms: float | None = None) -> Fill:
    prefix = " ".join(str(20 + at % 900) for at in range(tokens))
    return Fill(id=id, request=FillRequest(prefix=prefix, suffix="7", width=1, deadline_ms=deadline_ms), document="a")


def test_a_newer_request_does_not_wait_for_a_long_context_and_what_was_cut_is_read_when_nothing_else_is_to_do():
    model = random_model("small", "cpu")
    assert isinstance(model, DiffusionGemma)
    model.info = dataclasses.replace(model.info, sampling=dataclasses.replace(model.info.sampling, max_steps=1))
    encode, began = model.encode, threading.Event()
    pieces: list[int] = []

    def slowly(ids: Sequence[int]) -> EncodedContext:
        pieces.append(len(ids))
        began.set()
        time.sleep(0.05)
        return encode(ids)

    model.encode = slowly
    answers: queue.Queue[EngineMessage] = queue.Queue()
    with working(model) as (worker, _, _):

        def ask(order: Fill) -> None:
            now = time.monotonic()
            worker._scheduler.submit(Job(client=1, order=order, deliver=answers.put, arrived=now, touched=now))

        ask(long(1, 8 * PIECE - 100))
        assert began.wait(30)
        ask(long(2, 10))
        told = [answers.get(timeout=30) for _ in range(2)]
        assert [(each.id, type(each)) for each in told] == [(1, Failed), (2, FillReply)]
        whole = model.prompt(long(3, 8 * PIECE - 100).request).context
        assert model.unread(whole) >= PIECE
        ask(long(3, 8 * PIECE - 100, deadline_ms=100.0))
        assert isinstance(answers.get(timeout=30), FillReply)
        ends = time.monotonic() + 30
        while model.later and time.monotonic() < ends:
            time.sleep(0.01)
        assert model.unread(whole) == 0


def test_what_is_left_to_read_waits_for_a_job_whose_answer_is_checked():
    model = random_model("small", "cpu")
    assert isinstance(model, DiffusionGemma)
    model.info = dataclasses.replace(model.info, sampling=dataclasses.replace(model.info.sampling, max_steps=1))
    with working(model) as (worker, _, _):
        order = Fill(id=1, request=FillRequest(prefix="20 21", suffix="7", width=1, language="python"))
        now = time.monotonic()
        waits = Job(client=1, order=order, deliver=lambda message: None, arrived=now, touched=now)
        rounds: list[float] = []
        choose = worker._scheduler.next_round

        def counted(timeout_s: float) -> Round:
            rounds.append(timeout_s)
            return choose(timeout_s)

        model.later = token_ids(model, PIECE)
        worker._scheduler.next_round = counted
        worker._scheduler.submit(waits)
        ends = time.monotonic() + 30
        while not waits.checking and time.monotonic() < ends:
            time.sleep(0.01)
        time.sleep(0.3)
        assert waits.checking
        assert model.later
        assert len(rounds) < 20
