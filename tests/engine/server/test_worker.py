"""What several requests share a forward pass for, and what one of them may cost the others."""

import weakref

import torch
from torch import Tensor

from engine.core.request import FillRequest
from engine.decoding.executor import Step
from engine.ipc.messages import EngineMessage, Fill
from engine.models.base import Rows
from engine.server.metrics import Meters
from engine.server.scheduler import Job, Scheduler
from engine.server.watchdog import Watchdog
from engine.server.worker import Worker


class Small:
    """A device with room for one row: a pass over more makes activations, then fails."""

    def __init__(self) -> None:
        self.activations: list[weakref.ref[Tensor]] = []
        self.alive: list[int] = []

    def step(self, rows: Rows) -> Tensor:
        self.alive.append(sum(made() is not None for made in self.activations))
        activations = torch.zeros(100)
        self.activations.append(weakref.ref(activations))
        if rows.canvas.shape[0] > 1:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return torch.zeros(int(rows.open.sum()), 4)


def job(number: int) -> Job:
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
    made.step = Step(rows=rows, draft=lambda: None)  # type: ignore[arg-type, return-value]
    return made


def test_what_a_failed_pass_made_is_gone_when_each_job_gets_its_own():
    model, jobs = Small(), [job(1), job(2)]
    worker = Worker(
        Scheduler(),
        Meters(),
        lambda percent: None,  # type: ignore[arg-type, return-value]
        watchdog=Watchdog(9),
        unload_after_s=9,
        on_state=lambda state: None,
    )
    answered = worker._forward(model, jobs)  # type: ignore[arg-type]
    assert [each for each, _ in answered] == jobs
    assert model.alive == [0, 0, 0]
