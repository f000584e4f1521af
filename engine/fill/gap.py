"""One gap while it is filled: what a length strategy works with."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from engine.common.request import Cell, Draft, FillRequest
from engine.common.sequences import common_head
from engine.fill.canvas import Canvas, new_canvas, seed
from engine.fill.constraints import AcceptedToken, Bans, Constrain, begin_with, forbid, forbid_in, in_turn
from engine.fill.deadline import Deadline
from engine.fill.denoise import Denoising, denoise
from engine.fill.distributions import Distributions, look
from engine.fill.executor import Step
from engine.fill.sampling import Race, either, published_policies
from engine.fill.slack import end_after_text, end_once
from engine.models.base import Context, Model, Prompt, Rows, Sampling
from engine.models.logits import Logits

MASKED = "░"
"""The character that shows a mask token to people."""
CLEARLY = 0.1
"""Mean confidence by which another row must lead to be shown instead: drafts that jump between rows are unreadable."""
FLOOR = -12.0
"""Lowest log-probability that counts: below it a token simply does not fit."""
Slot = list[tuple[int, float]]
"""The likeliest tokens of one position with their log-probabilities, likeliest first."""


def steady(shown: int, sure: Sequence[float]) -> int:
    """The surest row, or `shown` while that one is nearly as sure."""
    best = max(range(len(sure)), key=sure.__getitem__)
    return shown if shown < len(sure) and sure[shown] > sure[best] - CLEARLY else best


@dataclass(slots=True, kw_only=True)
class Gap:
    """A request, laid out and encoded, for a model that denoises step by step; `WholeCanvasGap` is for others."""

    scores_canvases: ClassVar[bool] = False
    """Whether rows are scored by the canvas's confidence alone."""
    looks_are_answers: ClassVar[bool] = True
    """Whether a canvas that was only looked at may be the answer when time runs out."""
    model: Model
    request: FillRequest
    prompt: Prompt
    context: Context
    generator: torch.Generator
    deadline: Deadline
    sampling: Sampling
    committed: list[int] = field(default_factory=list)
    """Tokens of canvases that are done, for a gap longer than one."""
    predicted_widths: Mapping[int, float] = field(default_factory=dict[int, float])
    """The probability of each width that the model distinguishes; empty where it predicted none."""
    steps: int = 0
    """Denoise steps, a forward pass each."""
    written: int = 0
    """Other forward passes, from left to right."""
    shown: int = 0
    """Row that the last draft showed."""

    def should_stop(self) -> bool:
        """Whether the answer must be given now."""
        return self.deadline.passed()

    def _step_is_done(self) -> bool:
        self.steps += 1
        return self.deadline.step_is_done()

    @property
    def suffix(self) -> tuple[int, ...]:
        """Tokens pinned after the gap; at least half of a canvas is the gap's."""
        return self.prompt.suffix[: self.model.info.canvas_length // 2]

    @property
    def guess(self) -> list[int]:
        """Tokens that are likely to stand on the canvas; none once the gap went on in a further one."""
        said = self.prompt.head + self.request.guess
        return self.model.tokenize(said) if self.request.guess and not self.committed else []

    @property
    def room(self) -> int:
        """Widest gap that fits on a canvas beside the pinned suffix."""
        return self.model.info.canvas_length - len(self.suffix)

    @property
    def budget(self) -> int:
        """Tokens that may still be written."""
        return max(1, self.request.max_tokens - len(self.committed))

    def commit(self, ids: Sequence[int]) -> None:
        """Move tokens from the canvas into the context; the gap goes on after them."""
        self.committed.extend(ids)
        self.context = self.model.encode((*self.prompt.context, *self.committed))

    def canvas(self, rows: Sequence[Sequence[int | None]], *, pinned: bool = True) -> Canvas:
        """Rows that begin with these tokens (None: noise), followed by the suffix if it is `pinned`."""
        suffix = self.suffix if pinned else ()
        rows = [[*row, *suffix] for row in rows]
        return new_canvas([self.context] * len(rows), rows, self.model.info.noise, self.generator)

    def noise_canvas(self, widths: Sequence[int], *, pinned: bool = True) -> Canvas:
        """Rows of noise of this width, followed by the suffix if it is `pinned`."""
        return self.canvas([[None] * width for width in widths], pinned=pinned)

    @property
    def line_breaks(self) -> Sequence[int]:
        """Tokens that may not enter a gap because it ends with its line."""
        return self.model.vocabulary.line_breaks if self.request.single_line else ()

    def is_text(self, token: int) -> bool:
        """Whether a token may stand in a gap."""
        return bool(self.model.vocabulary.bytes[token]) and token not in self.model.info.forbidden_ids

    def suggest(self, canvas: Canvas, row: int, guess: Sequence[int]) -> None:
        """Condition a row's first step on a guess at its first tokens; nothing is pinned by it."""
        self.condition(canvas, row, guess)

    def condition(self, canvas: Canvas, row: int, tokens: Sequence[int | None]) -> None:
        """Condition a row's first step on tokens, as if the model had just said them; None: on nothing there."""
        seed(canvas, row, tokens, self.model.head)

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
        """Run the loop over `canvas`, whose rows begin with gaps of `widths`, with the published policies except for
        `changes`. `slack`: unused slots may be padded, except in the rows `full`. `looks`: only the predictions are
        wanted, and the final canvas is no answer. `race`: which rows go on and may be shown."""
        self.deadline.step_begins()
        info = self.model.info
        constrain = self.constrain(canvas, slack=slack, full=full)
        policies = published_policies(self.sampling, info.noise, constrain, greedy_rows=len(set(widths)))
        mask = end_after_text(canvas, info.pad_id) if slack else None
        policies = replace(policies, **{"mask": mask, **changes})
        if race:
            policies = replace(policies, settled=either(policies.settled, race.lost))
        return denoise(
            canvas,
            policies,
            info.noise,
            self.generator,
            should_stop=self._step_is_done,
            draft=lambda state: self.draft(state, widths, race and race.rows, looks=looks),
        )

    def likeliest(
        self, canvas: Canvas, *, widths: Sequence[int], slack: bool, count: int
    ) -> Generator[Step, Logits, list[Slot]]:
        """One step that accepts nothing: the likeliest tokens of each open position with log-probabilities, in
        order."""
        _, said = yield from self.look(canvas, self.constrain(canvas, slack=slack), widths=widths, top=count)
        logs, ids = (each.tolist() for each in said.top)
        return [list(zip(*each, strict=True)) for each in zip(ids, logs, strict=True)]

    def score(self, gaps: Sequence[Sequence[int]]) -> Generator[Step, Logits, list[list[float]]]:
        """`Model.score` of tokens in the gap."""
        yield from ()
        return self.model.score(self.context, gaps, self.suffix)

    def look(
        self, canvas: Canvas, constrain: Constrain, *, widths: Sequence[int], top: int = 0
    ) -> Generator[Step, Logits, tuple[Logits, Distributions]]:
        """A first step that accepts nothing: the logits of the open positions, and the distributions of the tokens that
        may stand there. `top`: the number of likeliest tokens in these."""
        self.deadline.step_begins()
        logits = yield Step(
            rows=Rows(
                contexts=canvas.contexts,
                canvas=canvas.ids,
                lengths=canvas.lengths,
                open=canvas.open,
                self_conditioning=None,
                conditioned=[False] * len(canvas.lengths),
            ),
            draft=lambda: self.draft(canvas, widths),
        )
        self._step_is_done()
        bans = Bans()
        constrain(bans, logits, canvas.open.nonzero())
        return logits, look(logits, bans, top=top)

    def draft(
        self, canvas: Canvas, widths: Sequence[int], running: Sequence[int] | None = None, *, looks: bool = False
    ) -> Draft:
        """The most confident row for display, of all or of the `running` ones; the row of the last draft stays unless
        another is clearly surer. With `looks` nothing is settled, as the gap's end is still to be found."""
        rows = range(len(widths)) if running is None else running
        sure = [-1.0] * len(widths)
        for row in rows:
            sure[row] = float(canvas.confidence[row, : widths[row]].mean()) if widths[row] else 1.0
        row = self.shown = steady(self.shown, sure)
        stands = (_settled(canvas) & (canvas.ids == canvas.best)).long().cumprod(1)
        # A character of which only the first bytes are there is none yet.
        heads = {
            at: self.text(canvas.row(at)[: int(stands[at, : widths[at]].sum())]).rstrip("\N{REPLACEMENT CHARACTER}")
            for at in rows
        }
        return Draft(
            step=self.steps,
            text=self.text(canvas.row(row)[: widths[row]]),
            settled=0 if looks else min(common_head(heads[row], head) for head in heads.values()),
            cells=self._cells(canvas, row),
        )

    def text(self, ids: Sequence[int]) -> str:
        """The text that a gap's tokens spell after the cursor."""
        text = self.model.detokenize([*self.committed, *self.real(ids)])
        return text.removeprefix(self.prompt.head)

    def real(self, ids: Sequence[int]) -> list[int]:
        """A gap's tokens without unused slots."""
        return [token for token in ids if token != self.model.info.pad_id]

    def _cells(self, canvas: Canvas, row: int) -> tuple[Cell, ...]:
        length = canvas.lengths[row]
        settled = _settled(canvas)[row, :length].tolist()
        pinned = canvas.pinned[row, :length].tolist()
        cells: list[Cell] = []
        for token, known, fixed in zip(canvas.ids[row, :length].tolist(), settled, pinned, strict=True):
            text = MASKED if token == self.model.info.noise.mask_id else self.model.detokenize([token])
            cells.append(Cell(text=text, state="pinned" if fixed else "accepted" if known else "noise"))
        return self.after_head(cells)

    def after_head(self, cells: Sequence[Cell]) -> tuple[Cell, ...]:
        """Cells from the cursor on, without the prompt's head."""
        head = self.prompt.head
        for at, cell in enumerate(cells):
            same = common_head(head, cell.text)
            if cell.state == "noise" or not head or same < min(len(head), len(cell.text)):
                break
            head, rest = head[same:], cell.text[same:]
            if not head:
                return (*([Cell(text=rest, state=cell.state)] if rest else []), *cells[at + 1 :])
        return tuple(cells)

    def constrain(self, canvas: Canvas, *, slack: bool, full: Sequence[int] = ()) -> Constrain:
        """Bans for the gaps of a canvas. `slack`: unused slots may be padded, except in the rows `full`."""
        pad = self.model.info.pad_id
        constraints = self.constraints(slack=slack, accepted=canvas.accepted_token)
        return in_turn(*constraints, *([end_once(canvas, pad), forbid_in(full, pad)] if slack else []))

    def constraints(
        self, *, slack: bool, requests: Sequence[int] = (), accepted: AcceptedToken = lambda row, position: None
    ) -> list[Constrain]:
        """Constraints that let only text into the gap, with `slack` also padding, and `requests` for slots. `accepted`:
        the tokens that stand there already."""
        info = self.model.info
        banned = [*({*info.forbidden_ids, info.pad_id} - {*requests, *([info.pad_id] if slack else [])})]
        if self.prompt.head and not self.committed:
            # At the margin the head itself is a line break.
            spelled = begin_with(
                self.prompt.head, self.model.vocabulary, one_line=self.request.single_line, accepted=accepted
            )
            return [forbid(banned), spelled]
        return [forbid([*banned, *self.line_breaks])]


def _settled(canvas: Canvas) -> Tensor:
    """Positions that the last step left certain, [B, L]."""
    return canvas.known | canvas.accepted | ~canvas.open
