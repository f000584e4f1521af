"""Models that know a gap's answer and err on purpose: right and wrong fills in plenty, without weights."""

from __future__ import annotations

import random
from collections.abc import Iterator

from engine.eval.damage import damage
from engine.eval.tasks import Task
from engine.models.oracle.model import Case, Oracle, Slip

RIGHT, SLIPS, INSISTS = "right", "slips", "insists"
"""Knows the truth; gets a token wrong until that is denoised again; knows nothing but a damaged truth."""
_WRONG = ")]}({[\"':,;.="
_AROUND = 400
"""Characters on either side of the gap; an oracle looks at fewer."""


def erring(task: Task, seed: int) -> Iterator[tuple[str, Oracle]]:
    """Models for one task, by how they err. None errs where the truth holds a marker of ours."""
    before, after = task.prefix[-_AROUND:], task.suffix[:_AROUND]
    if "▮" in before + task.truth + after:
        return

    def model(answer: str, slip: Slip | None = None) -> Oracle:
        return Oracle("oracle", [Case(text=f"{before}▮{answer}▮{after}", slip=slip)])

    rng = random.Random(f"{seed}/{task.name}")
    right = model(task.truth)
    yield RIGHT, right
    place = rng.randrange(len(right.tokenize(task.truth)))
    yield SLIPS, model(task.truth, Slip(at=place, text=rng.choice(_WRONG)))
    yield INSISTS, model(damage(task.truth, rng))
