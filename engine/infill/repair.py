"""Every answer parses: what does not is denoised again where the problem is, then cut, then not offered.

Only a canvas can do this: the tokens under a problem go back to noise while everything else stays pinned.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from engine.decoding.canvas import reopened
from engine.decoding.executor import Step
from engine.decoding.sampling import doubtful, draw, linear_temperature
from engine.infill.answers import Answer, answer, answers, offsets, shortened
from engine.infill.gap import Gap
from engine.infill.lengths.strategies import Fitted
from engine.syntax.brackets import Brackets
from engine.syntax.budget import Budget
from engine.syntax.doubled import undoubled
from engine.syntax.extent import cut_to_extent
from engine.syntax.heads import longest_valid_head
from engine.syntax.judge import Judge
from engine.syntax.judging import Verdict
from engine.syntax.languages import language_of
from engine.syntax.problems import Problem
from engine.text.newlines import with_line_feeds

ROUNDS = 2
"""Times that a canvas is repaired: around the problem, then all of its lines."""
STEPS = 6
TEMPERATURE = 0.5
"""Cool, but drawn: the likeliest tokens are those that did not parse."""
DOUBTFUL = 0.2
"""A token that was drawn with less probability is drawn again once its neighbours are known."""
NEIGHBOURS = 2
"""Tokens beside a problem that are denoised again with it."""
CHECK_MS = 250.0
"""For one check of a fill; what is not checked by then is offered unchecked."""
EDIT_CHECK_MS = 5000.0
"""For one check of an edit, which is not offered where it is not checked by then."""


@dataclass(slots=True, kw_only=True)
class _Check:
    """Judges the answers of one request."""

    judge: Judge
    brackets: Brackets
    whole: bool
    """Whether an answer stands for text that is there: then no part of it will do."""
    judged: dict[str, Verdict | None] = field(default_factory=dict[str, "Verdict | None"])
    """What was judged already: rows agree, and a model may insist on what it said."""

    def trim(self, text: str) -> str:
        """What of an answer belongs in the gap: not beyond what the gap lies in, and nothing that stands behind it."""
        return text if self.whole else undoubled(self.brackets, cut_to_extent(self.brackets, text))

    def loses(self, text: str, trimmed: str) -> bool:
        """Whether trimming took more than brackets, quotes or what stands behind the gap anyway."""
        tail = text[len(trimmed) :].strip()
        return any(letter.isalnum() for letter in tail) and not self.brackets.after.lstrip().startswith(tail)

    def verdict(self, text: str) -> Verdict | None:
        """None: unchecked."""
        if text not in self.judged:
            self.judged[text] = self.judge.verdict(text, _budget(EDIT_CHECK_MS if self.whole else CHECK_MS))
        return self.judged[text]


Repairing = Generator[Step, Tensor, list[Answer]]


def repaired(gap: Gap, fitted: Fitted, rounds: int = ROUNDS) -> Repairing:
    """The answers of `fitted` that may be offered, with what was done to them."""
    check = _check(gap)
    if check is None:
        return answers(gap, fitted)
    held = fitted.canvas.pinned
    # What says nothing is not offered whatever a judge says.
    pending = {each.row: each for each in answers(gap, fitted) if each.text or gap.request.old}
    done: list[Answer] = []
    spent: list[Answer] = []
    for round_ in range(rounds + 1):
        broken = _sort_out(gap, check, pending, done, "repaired" if round_ else "ok")
        if not broken or round_ == rounds or gap.should_stop():
            break
        # Tokens that were to stay as they are stay so here, too.
        places = _places(gap, fitted, pending, broken, whole_lines=round_ > 0) & ~held
        fitted = yield from _redo(gap, fitted, places)
        for row in broken:
            again = answer(gap, fitted, row)
            if again is not None:
                pending[row] = again
            else:
                # The canvas says nothing now: what it said before can be cut, but not mended again.
                spent.append(pending.pop(row))
    left = [*pending.values(), *spent]
    return done + [cut for said in left if (cut := _cut(gap, check, said)) is not None]


def _budget(ms: float) -> Budget:
    """Of this thread's own time: a machine that is busy with other things must not let broken fills pass."""
    return Budget(ms, time.thread_time)


def _check(gap: Gap) -> _Check | None:
    language = language_of(gap.request.language)
    if language is None:
        return None
    before, after = with_line_feeds(gap.request.prefix), with_line_feeds(gap.request.suffix)
    old = with_line_feeds(gap.request.old)
    document = gap.trees.tree(before + old + after, language, _budget(CHECK_MS))
    judge = Judge(before, after, language, old, document)
    return _Check(judge=judge, brackets=judge.brackets, whole=gap.request.task != "fill")


def _trimmed(gap: Gap, check: _Check, said: Answer) -> Answer:
    text = check.trim(said.text)
    return said if text == said.text else shortened(gap, said, text)


def _sort_out(
    gap: Gap, check: _Check, pending: dict[int, Answer], done: list[Answer], verdict: str
) -> dict[int, tuple[Problem, ...]]:
    """Move what may be offered from `pending` to `done`; returns the problems of the rest, by row."""
    broken: dict[int, tuple[Problem, ...]] = {}
    for row, said in list(pending.items()):
        short = _trimmed(gap, check, said)
        lost = check.verdict(said.text) if check.loses(said.text, short.text) else None
        found = lost if lost and lost.problems else check.verdict(short.text)
        if found and found.problems:
            broken[row] = found.problems
        elif found or not check.whole:
            done.append(replace(short, syntax=verdict if found else "unchecked", whole=bool(found and found.whole)))
            del pending[row]
    return broken


def _places(
    gap: Gap,
    fitted: Fitted,
    pending: dict[int, Answer],
    broken: dict[int, tuple[Problem, ...]],
    *,
    whole_lines: bool,
) -> Tensor:
    """Canvas positions [B, L] to denoise again: tokens under or beside a problem, and the unused slots of their row."""
    places = torch.zeros_like(fitted.canvas.pinned)
    for row, problems in broken.items():
        width = fitted.widths[row]
        slots = fitted.canvas.row(row)[:width]
        spans = offsets(gap, pending[row])
        used = [at for at, token in enumerate(slots) if token != gap.model.facts.pad_id]
        for problem in problems:
            places[row, [used[at] for at in _touched(pending[row].text, spans, problem, whole_lines)]] = True
        # A repair may need more room, or less.
        places[row, [at for at in range(width) if at not in used or at >= used[len(spans) - 1]]] = True
    return places


def _touched(text: str, spans: Sequence[tuple[int, int]], problem: Problem, whole_lines: bool) -> list[int]:
    start, end = problem.start, problem.end
    if whole_lines:
        start = text.rfind("\n", 0, start) + 1
        end = at if (at := text.find("\n", end)) >= 0 else len(text)
    if start == end:
        # Something is missing between two tokens: both are under it.
        start, end = start - 1, end + 1
    under = [at for at, (first, last) in enumerate(spans) if first < end and last > start]
    if not under:
        return list(range(len(spans)))
    return list(range(max(0, under[0] - NEIGHBOURS), min(len(spans), under[-1] + NEIGHBOURS + 1)))


def _redo(gap: Gap, fitted: Fitted, places: Tensor) -> Generator[Step, Tensor, Fitted]:
    canvas = reopened(fitted.canvas, places, gap.model.facts.noise, gap.generator)
    canvas = yield from gap.denoise(
        canvas,
        widths=fitted.widths,
        slack=fitted.slack,
        max_steps=STEPS,
        temperature=linear_temperature(TEMPERATURE, TEMPERATURE, STEPS),
        choose=draw,
        remask=doubtful(DOUBTFUL),
    )
    return replace(fitted, canvas=canvas)


def _cut(gap: Gap, check: _Check, said: Answer) -> Answer | None:
    if check.whole:
        return None
    text: str | None = check.trim(said.text)
    found = check.verdict(text)
    if found and found.problems:
        text = longest_valid_head(check.judge, text, _budget(CHECK_MS))
    if not text or not text.strip():
        return None
    found = check.verdict(text)
    return replace(shortened(gap, said, text), syntax="cut", whole=bool(found and found.whole))
