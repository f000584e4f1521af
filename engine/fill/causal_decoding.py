"""Draft, check, accept: a gap's tokens from left to right, several in a pass.

Drafts of what may come are checked by one causal pass, as a tree; the longest run that is what the model would say is
accepted, and the token that it says after that is free. What comes out is what the model says greedily, token after
token, whatever the drafts: they only save passes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.common.request import Cell, Draft
from engine.fill.draft_sources import DraftSources
from engine.fill.draft_tree import ROOT, accepted, tree_of
from engine.fill.ends import Ends
from engine.fill.gap import Gap
from engine.models.base import CausalHead, DraftTree


@dataclass(slots=True, kw_only=True)
class Said:
    """What a model has said in a gap so far."""

    ids: list[int] = field(default_factory=list[int])
    """Those that spell `Prompt.head` first."""
    logs: list[float] = field(default_factory=list[float])
    """Log-probability of each."""
    others: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])
    """The likeliest other token in the place of each: its log-probability, and which it is."""
    end: float | None = None
    """Log-probability that nothing follows, where that is what the model said last."""


def decode(
    gap: Gap,
    model: CausalHead,
    said: Said,
    drafts: DraftSources,
    ends: Ends,
    begun: Sequence[int] = (),
    goes_on: Callable[[], bool] = lambda: True,
) -> Generator[Draft]:
    """Add to `said` what the model says, up to the gap's end or until time is up; yields what there is after each pass.
    `begun`: tokens that it begins with, whatever the model would say. `goes_on`: whether more is wanted."""
    choice = _Greedy(gap, model, said, ends)
    text, known = model.begin(gap.context), begun
    gap.deadline.step_begins()
    while not choice.done and goes_on():
        tree = tree_of(drafts.after(said.ids or begun), known)
        choice.logits = model.check(text, tree)
        for at in range(0 if said.ids else len(begun)):
            choice.take(at + ROOT, begun[at])
        path, token = accepted(tree, len(known), choice.next)
        text, known = model.accept(text, path), [] if token is None else [token]
        gap.written += 1
        if gap.deadline.step_is_done():
            return
        yield _draft(gap, said, ends, tree, path)


class _Greedy:
    """The likeliest token in each place, and whether the gap has ended."""

    def __init__(self, gap: Gap, model: CausalHead, said: Said, ends: Ends) -> None:
        self.done = False
        self.logits = torch.empty(0)
        """[1 + N, V] of what follows the text, and each token of a tree."""
        self._gap, self._said, self._ends = gap, said, ends
        self._ending = torch.tensor(sorted(model.ends), dtype=torch.int64, device=gap.model.info.device)
        self._is_end = model.ends.__contains__
        self._head = gap.prompt.head.encode()

    def next(self, at: int) -> int | None:
        """The token that is said after one of the tree; None where none is any more."""
        if self.done:
            return None
        logs = self._logs(at)
        token = self._likeliest(logs)
        if self._is_end(token):
            self._said.end = float(logs[self._ending].logsumexp(0))
            self.done = True
            return None
        return self._taken(logs, token)

    def take(self, at: int, token: int) -> None:
        """Say a token, whatever is likely."""
        self._taken(self._logs(at), token)

    def _taken(self, logs: Tensor, token: int) -> int:
        said, likeliest = self._said, zip(*(each.tolist() for each in logs.topk(2)), strict=True)
        said.others.append(next((log, other) for log, other in likeliest if other != token))
        said.ids.append(token)
        said.logs.append(float(logs[token]))
        self.done = len(said.ids) >= self._gap.budget or self._ends.reached(self._gap.text(said.ids))
        return token

    def _logs(self, at: int) -> Tensor:
        return self.logits[at - ROOT].log_softmax(0)

    def _likeliest(self, logs: Tensor) -> int:
        vocabulary = self._gap.model.vocabulary
        left = self._head and self._head[sum(len(vocabulary.bytes[token]) for token in self._said.ids) :]
        if not left:
            return int(logs.argmax())
        spelling = torch.tensor(vocabulary.agreeing(left), device=logs.device)
        return int(spelling[logs[spelling].argmax()])


def _draft(gap: Gap, said: Said, ends: Ends, tree: DraftTree, path: Sequence[int]) -> Draft:
    """What a person may see after a pass: what is said stands, what was drafted in vain is noise."""
    text = gap.text(said.ids)
    vain = [token for node, token in enumerate(tree.ids) if node not in path and tree.parents[node] in (ROOT, *path)]
    cells = [Cell(text=gap.model.detokenize([token]), state="accepted") for token in said.ids]
    cells += [Cell(text=gap.model.detokenize([token]), state="noise") for token in vain[:1]]
    settled = 0 if gap.request.precedents or gap.request.n > 1 else ends.settled(text)
    return Draft(step=gap.written, text=text[: ends.cut(text)], settled=settled, cells=tuple(cells))
