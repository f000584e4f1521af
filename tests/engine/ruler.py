"""An oracle whose canvases are masks: it knows the answer, and sees from a gap's width whether it needs more room."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from engine.common.request import Filled, FillRequest
from engine.fill.pipeline import fill
from engine.models.base import Noise, Rows
from engine.models.logits import Logits, dense
from engine.models.oracle.model import END, PAD, PREFIX, Case, Oracle

MASK, EXPAND, DELETE = PREFIX, END, PAD


class Ruler(Oracle):
    """Reveals the answer where it fits; else asks for a slot, or gives up those that are too many."""

    def __init__(self, text: str, *, length: str, **facts: Any) -> None:
        super().__init__("ruler", [Case(text=text)])
        sampling = dataclasses.replace(
            self.info.sampling, t_min=1.0, t_max=1.0, max_steps=64, entropy_bound=facts.pop("entropy_bound", 0.0)
        )
        self.info = dataclasses.replace(
            self.info,
            length=length,  # type: ignore[arg-type]
            noise=Noise(mask_id=MASK, vocab_size=self.info.noise.vocab_size),
            expand_id=EXPAND,
            forbidden_ids=tuple({*self.info.forbidden_ids, MASK, EXPAND}),
            sampling=sampling,
            **facts,
        )
        self.insatiable = False
        """Asks for room at every slot, whatever the width."""
        self.widths: list[int] = []
        """Of the first gap of each pass."""

    def fill(self, **request: Any) -> Filled:
        """The case's own gap."""
        before, _, behind = self._cases[0].parts
        return fill(self, FillRequest(prefix=before, suffix=behind, **request))

    def step(self, rows: Rows) -> Logits:
        """Peaks that fall from left to right, so that one token after the other is surest."""
        logits = torch.zeros(*rows.canvas.shape, self.info.noise.vocab_size)
        for row, context in enumerate(rows.contexts):
            answer: list[int] = context.answers[0]  # type: ignore[attr-defined]
            width = rows.lengths[row] - len(context.suffix)  # type: ignore[attr-defined]
            if row == 0:
                self.widths.append(width)
            for at in range(width):
                logits[row, at, self._said(answer, width, at)] = 14 - at / 100
                if width < len(answer) and at:
                    logits[row, at] = 0
        return dense(logits[rows.open])

    def _said(self, answer: list[int], width: int, at: int) -> int:
        if self.insatiable or (width < len(answer) and at == 0):
            return EXPAND
        return answer[at] if at < len(answer) else DELETE
