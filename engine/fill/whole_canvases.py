"""Gaps of models that denoise whole canvases themselves: our rules are applied when a canvas returns.

Such a model knows pinned tokens and no other rule. So forbidden tokens are found afterwards and denoised again with
everything else pinned; if that fails, the gap is cut there.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from engine.fill.canvas import Canvas, reopened
from engine.fill.denoise import Denoising, rows_of
from engine.fill.executor import Step
from engine.fill.gap import FLOOR, Gap, Slot
from engine.fill.sampling import Race
from engine.models.base import SCORED_SUFFIX, CanvasOrder, CanvasReply
from engine.models.logits import Logits

CHOICES = 20
"""Likeliest tokens of a position when a canvas is only looked at: the most that vLLM sends."""
NEIGHBOURS = 1
"""Tokens beside a forbidden one that are denoised again with it."""
_UNLIKELY = 1e-6
"""Confidence in a suffix token that the model would replace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Rules for a gap, whoever denoises it."""

    widths: Sequence[int]
    """The width of the gap in each row."""
    head: tuple[int, ...]
    """Tokens that a gap begins with; others may spell the same text but cannot be pinned."""
    banned: frozenset[int]
    whole: bool
    """Whether a part of a gap is no answer."""
    looks: bool
    """Whether only the predictions are wanted."""


@dataclass(slots=True, kw_only=True)
class WholeCanvasGap(Gap):
    """A gap whose model is a `CanvasDenoiser`."""

    scores_canvases: ClassVar[bool] = True
    looks_are_answers: ClassVar[bool] = False

    def suggest(self, canvas: Canvas, row: int, guess: Sequence[int]) -> None:
        # What conditions a step is not sent, what stands on the canvas is.
        canvas.ids[row, : len(guess)] = torch.tensor(guess)

    def condition(self, canvas: Canvas, row: int, tokens: Sequence[int | None]) -> None:
        pass

    def denoise(
        self,
        canvas: Canvas,
        *,
        widths: Sequence[int],
        slack: bool = False,
        full: Sequence[int] = (),
        looks: bool = False,
        race: Race | None = None,
        **changes: Any,
    ) -> Denoising:
        """Only `max_steps` of the policies counts. A row whose reply is late stays as it was, with confidence 0 where
        it is noise. Raises EngineError if the model fails."""
        self.deadline.step_begins()
        rules = self._rules(widths, looks=looks)
        return self._denoised(canvas, rules, changes.get("max_steps", self.sampling.max_steps))

    def likeliest(
        self, canvas: Canvas, *, widths: Sequence[int], slack: bool, count: int
    ) -> Generator[Step, Logits, list[Slot]]:
        yield from self.denoise(canvas, widths=widths, slack=slack, looks=True, max_steps=1)
        text = [[(token, log) for token, log in each.items() if self.is_text(token)] for each in canvas.choices]
        return [sorted(each, key=lambda choice: -choice[1])[:count] for each in text]

    def score(self, gaps: Sequence[Sequence[int]]) -> Generator[Step, Logits, list[list[float]]]:
        """Score all tokens at once, on a canvas. Empty scores if one gap does not fit on a canvas or was not scored in
        time: partial results are not comparable."""
        after = self.suffix[:SCORED_SUFFIX]
        if max(map(len, gaps)) + len(after) > self.model.info.canvas_length:
            return [[] for _ in gaps]
        rows = [[*ids, *after] for ids in gaps]
        canvas = self.canvas([[None] * len(ids) for ids in rows], pinned=False)
        for row, ids in enumerate(rows):
            self.suggest(canvas, row, ids)
        yield from self.denoise(canvas, widths=[len(ids) for ids in rows], looks=True, max_steps=1)
        if not all(canvas.choices):
            return [[] for _ in gaps]
        choices = iter(canvas.choices)
        return [[next(choices).get(token, FLOOR) for token in ids] for ids in rows]

    def _rules(self, widths: Sequence[int], *, looks: bool) -> Rules:
        info = self.model.info
        head = self.prompt.head if not self.committed else ""
        return Rules(
            widths=widths,
            head=() if looks else tuple(self.model.tokenize(head)),
            banned=frozenset(() if looks else (*info.forbidden_ids, info.pad_id, *self.line_breaks)),
            whole=self.request.task != "fill",
            looks=looks,
        )

    def _denoised(self, canvas: Canvas, rules: Rules, max_steps: int) -> Denoising:
        _begin_with(canvas, rules)
        yield from self._pass(canvas, rules, max_steps)
        late = self._step_is_done()
        wrong = _banned(canvas, rules)
        if wrong.any():
            if not late:
                again = reopened(canvas, _widened(wrong) & ~canvas.pinned, self.model.info.noise, self.generator)
                yield from self._pass(again, rules, max_steps)
                self._step_is_done()
                canvas.best, canvas.confidence = again.best, again.confidence
            _cut(canvas, rules, self.model.info.pad_id)
        canvas.ids = canvas.best.clone()
        return canvas

    def _pass(self, canvas: Canvas, rules: Rules, max_steps: int) -> Denoising:
        """Have the open positions denoised once."""
        rows, active = rows_of(canvas), canvas.open.any(dim=1).nonzero()[:, 0].tolist()
        if not active:
            return canvas
        assert self.model.denoiser is not None
        replies = self.model.denoiser.denoise(
            [_order(canvas, row) for row in active],
            max_steps=max_steps,
            choices=CHOICES if rules.looks else 0,
            within_ms=self.deadline.steps_left_ms(),
        )
        try:
            yield Step(rows=rows, draft=lambda: self.draft(canvas, rules.widths, looks=rules.looks), pending=replies)
            for row, reply in zip(active, replies.result(), strict=True):
                if reply is not None:
                    _take(canvas, row, rules.widths[row], reply)
            if rules.looks:
                canvas.choices = [*_choices(canvas, active, replies.result())]
        finally:
            replies.cancel()
        canvas.step += 1
        canvas.open = torch.zeros_like(canvas.open)
        return canvas


def _order(canvas: Canvas, row: int) -> CanvasOrder:
    length = canvas.lengths[row]
    return CanvasOrder(
        context=canvas.contexts[row],
        ids=tuple(canvas.ids[row, :length].tolist()),
        pinned=tuple((~canvas.open[row, :length]).nonzero()[:, 0].tolist()),
    )


def _choices(
    canvas: Canvas, active: Sequence[int], replies: Sequence[CanvasReply | None]
) -> Iterator[Mapping[int, float]]:
    """The likeliest tokens of each open position; none of a row without a reply."""
    for row, reply in zip(active, replies, strict=True):
        for at, choices in enumerate(reply.choices if reply else [{}] * canvas.lengths[row]):
            if canvas.open[row, at]:
                yield choices


def _take(canvas: Canvas, row: int, width: int, reply: CanvasReply) -> None:
    """Copy a reply to the canvas, except for pinned tokens: of these it says how well they fit."""
    length = canvas.lengths[row]
    open_ = canvas.open[row, :length]
    said = torch.tensor(reply.ids, dtype=canvas.ids.dtype)
    likely = torch.tensor(reply.log_probabilities).clamp(max=0.0).exp().clamp(min=_UNLIKELY)
    fits = torch.where(said == canvas.best[row, :length], likely, torch.tensor(_UNLIKELY))
    canvas.best[row, :length] = torch.where(open_, said, canvas.best[row, :length])
    canvas.confidence[row, :length] = torch.where(open_, likely, canvas.confidence[row, :length])
    # The suffix's first tokens tell whether the gap is as wide as that.
    after = slice(width, min(width + SCORED_SUFFIX, length))
    canvas.confidence[row, after] = fits[after]
    canvas.accepted[row, :length] = open_


def _begin_with(canvas: Canvas, rules: Rules) -> None:
    """Pin the gap's first tokens where they are open."""
    for row, width in enumerate(rules.widths):
        size = min(len(rules.head), width)
        if size and not canvas.pinned[row, 0]:
            canvas.ids[row, :size] = canvas.best[row, :size] = torch.tensor(rules.head[:size])
            canvas.pinned[row, :size] = canvas.known[row, :size] = True
            canvas.open[row, :size] = False
            canvas.confidence[row, :size] = 1.0


def _banned(canvas: Canvas, rules: Rules) -> torch.Tensor:
    """Positions [B, L] in gaps with a forbidden token that was not there from the start."""
    wrong = torch.zeros_like(canvas.pinned)
    if rules.banned:
        wrong = torch.isin(canvas.best, torch.tensor(sorted(rules.banned))) & ~canvas.pinned
    for row, width in enumerate(rules.widths):
        wrong[row, width:] = False
    # A row that never got a reply holds noise.
    return wrong & (canvas.confidence > 0)


def _widened(places: torch.Tensor) -> torch.Tensor:
    """Places [B, L] and NEIGHBOURS on either side."""
    span = 2 * NEIGHBOURS + 1
    near = torch.nn.functional.max_pool1d(places.float()[:, None], span, stride=1, padding=NEIGHBOURS)
    return near[:, 0] > 0


def _cut(canvas: Canvas, rules: Rules, pad_id: int) -> None:
    """End each gap before a forbidden token; if nothing is left, or a whole answer is needed, the row is no answer."""
    wrong = _banned(canvas, rules)
    for row in wrong.any(dim=1).nonzero()[:, 0].tolist():
        width = rules.widths[row]
        first = int(wrong[row].nonzero()[0])
        if rules.whole or first <= len(rules.head):
            canvas.confidence[row, :width] = 0.0
        else:
            canvas.best[row, first:width] = pad_id
