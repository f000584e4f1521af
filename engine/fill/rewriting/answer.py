"""An answer to a conversation, token by token: drafts are checked, what the model says is accepted."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

import torch

from engine.common.request import Candidate, Syntax
from engine.fill.draft_tree import ROOT, accepted, of_drafts, tree_of
from engine.fill.rewriting.old_text import OldText
from engine.models.base import PIECE, CausalHead, Model

LONGEST = 4
"""Times the context that fills are given: what a conversation and the answer to it may take together."""


@dataclass(slots=True, kw_only=True)
class WrittenAnswer:
    """What the model has said so far."""

    ids: list[int] = field(default_factory=list[int])
    logs: list[float] = field(default_factory=list[float])
    """Log-probability of each."""
    others: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])
    """Of the likeliest other token in the place of each."""
    ended: bool = False
    """Whether the model said that nothing follows."""

    def candidate(self, text: str, syntax: Syntax = "unchecked", token_ends: Sequence[int] = ()) -> Candidate:
        """A candidate with `text`, which was made of this answer."""
        count = max(1, len(self.logs))
        return Candidate(
            text=text,
            tokens=len(self.ids),
            confidence=min(1.0, math.exp(sum(self.logs) / count)),
            score=sum(self.logs),
            syntax=syntax,
            token_confidence=tuple(math.exp(min(0.0, log)) for log in self.logs),
            token_ends=tuple(token_ends),
        )


def follows_instructions(model: Model) -> bool:
    """Whether a model is causal and was taught to answer messages."""
    return model.chat is not None and model.causal is not None


def read_context(model: Model, ids: Sequence[int]) -> Generator[None]:
    """Encode a context piece by piece, so that what is newer, or a cancel, need not wait for all of it."""
    for end in range(PIECE, len(ids), PIECE):
        if model.prefill is not None and model.prefill.unread(ids[:end]):
            model.encode(ids[:end])
            yield None


def write_answer(
    model: Model,
    context: Sequence[int],
    answer: WrittenAnswer,
    old: OldText,
    is_done: Callable[[WrittenAnswer], bool],
    begun: Sequence[int] = (),
) -> Generator[None]:
    """Add to `answer` what the model says after `context`, until it ends or `is_done`, which is asked after each token;
    yields after each pass. `old`: drafts, which follow what is said. `begun`: tokens that it begins with, whatever is
    likely."""
    assert model.causal is not None
    head = model.causal
    choice = _Likeliest(head, answer, is_done)
    text, known, followed = head.begin(model.encode(context)), list(begun), len(begun)
    old.write(begun)
    while not choice.done:
        tree = tree_of(of_drafts(old.drafts()), known, old.rows, head.cost, old.sure)
        choice.look(head.check(text, tree))
        for at in range(0 if answer.ids else len(begun)):
            choice.take(at + ROOT, begun[at])
        path, token = accepted(tree, len(known), choice.next)
        text, known = head.accept(text, path), [] if token is None else [token]
        old.write(answer.ids[followed:])
        followed = len(answer.ids)
        yield


class _Likeliest:
    """The likeliest token in each place, and whether the answer has ended."""

    def __init__(self, head: CausalHead, answer: WrittenAnswer, is_done: Callable[[WrittenAnswer], bool]) -> None:
        self.done = False
        self._head, self._answer, self._is_done = head, answer, is_done
        self._values = self._tokens = list[list[float]]()
        self._logits = torch.empty(0)

    def look(self, logits: torch.Tensor) -> None:
        """[1 + N, V], of what follows the text, and each token of a tree."""
        self._logits = logits
        likeliest = logits.topk(2)
        self._values, self._tokens = likeliest.values.tolist(), likeliest.indices.tolist()

    def next(self, at: int) -> int | None:
        """The token that is said after one of the tree; None where none is any more."""
        if self.done:
            return None
        row = at - ROOT
        (value, other_value), (token, other) = self._values[row], self._tokens[row]
        if token in self._head.ends:
            self.done = self._answer.ended = True
            return None
        total = self._total(row)
        self._say(int(token), value - total, (other_value - total, int(other)))
        return int(token)

    def take(self, at: int, token: int) -> None:
        """Say a token, whatever is likely."""
        row = at - ROOT
        total, rank = self._total(row), 1 if self._tokens[row][0] == token else 0
        other = self._values[row][rank] - total, int(self._tokens[row][rank])
        self._say(token, float(self._logits[row, token]) - total, other)

    def _total(self, row: int) -> float:
        """Of the rows that are said alone: most of a tree's are not."""
        return float(self._logits[row].logsumexp(0))

    def _say(self, token: int, log: float, other: tuple[float, int]) -> None:
        self._answer.ids.append(token)
        self._answer.logs.append(log)
        self._answer.others.append(other)
        self.done = self._is_done(self._answer)
