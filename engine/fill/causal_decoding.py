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

from engine.fill.draft_sources import GUESSES, DraftSources
from engine.fill.draft_tree import ROOT, ROWS, accepted, likeliest_end, likely_tree, of_drafts
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

    def until(self, place: int) -> Said:
        """The tokens before a place alone."""
        return Said(ids=self.ids[:place], logs=self.logs[:place], others=self.others[:place])


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Where decoding of a gap stops, and how many rows a pass has."""

    most: int
    """Tokens."""
    reached: Callable[[Said], bool] = lambda said: False
    """Whether what is said needs no more."""
    banned: Sequence[int] = ()
    """Tokens that are not said."""
    rows: int = ROWS
    """Tokens that a pass is asked about at the most."""
    canvases: bool = False
    """Whether a canvas stands in each pass, where the model has any, to draft for the next one."""


def decode(gap: Gap, head: CausalHead, said: Said, drafts: DraftSources, reach: Reach) -> Generator[None]:
    """Add to what is `said` what the model says after it, up to the gap's end or until time is up; yields after each
    pass."""
    greedy = _Greedy(gap, head, said, reach)
    text, known = head.begin(gap.context, gap.suffix, said.ids), list[int]()
    gap.deadline.step_begins()
    # What was read before needs no pass to begin with.
    passes = not text.is_read
    while not greedy.done:
        # One row is that of the text's last token.
        following = drafts.after(said.ids) if passes else of_drafts(())
        tree, likely = likely_tree(following, known, reach.rows - (not known), head.cost)
        if reach.canvases and head.slots:
            greedy.logits = head.check(text, tree, likeliest_end(tree, likely))
        else:
            greedy.logits = head.check(text, tree)
        written = len(said.ids) - len(known)
        path, token = accepted(tree, len(known), greedy.next)
        if guessed := head.guessed(text):
            _take_guess(drafts, guessed, tree, path, written)
        text, known = head.accept(text, path), [] if token is None else [token]
        if passes:
            gap.written += 1
            if gap.deadline.step_is_done():
                return
            yield
        passes = True


def _take_guess(
    drafts: DraftSources, guessed: tuple[int, Tensor], tree: DraftTree, path: Sequence[int], written: int
) -> None:
    """Draft by a canvas, if what it follows was accepted. `written`: tokens of the gap before the tree."""
    node, logits = guessed
    if node == ROOT or node in path:
        place = written + (path.index(node) + 1 if node != ROOT else 0) + 1
        values, tokens = logits.softmax(dim=-1).topk(GUESSES)
        for at, (shares, ids) in enumerate(zip(values.tolist(), tokens.tolist(), strict=True)):
            drafts.guess(place + at, dict(zip(ids, shares, strict=True)))


class _Greedy:
    """The likeliest token in each place, and whether the gap has ended."""

    def __init__(self, gap: Gap, head: CausalHead, said: Said, reach: Reach) -> None:
        self.logits = torch.empty(0)
        """[1 + N, V] of what follows the text, and each token of a tree."""
        self._said, self._reach, self._vocabulary = said, reach, gap.model.vocabulary
        self._is_end = head.ends.__contains__
        self._ends, self._banned = (
            torch.tensor(sorted(ids), dtype=torch.int64, device=gap.model.info.device)
            for ids in (head.ends, reach.banned)
        )
        self._head = gap.prompt.head.encode()
        self.done = self._is_done()

    def next(self, at: int) -> int | None:
        """The token that the model says after a node of the tree; None at the gap's end."""
        if self.done:
            return None
        said, logs = self._said, self.logits[at - ROOT].log_softmax(0)
        token = self._likeliest(logs)
        if self._is_end(token):
            said.end = float(logs[self._ends].logsumexp(0))
            self.done = True
            return None
        likeliest = zip(*(each.tolist() for each in logs.topk(2)), strict=True)
        said.others.append(next((log, other) for log, other in likeliest if other != token))
        said.ids.append(token)
        said.logs.append(float(logs[token]))
        self.done = self._is_done()
        return token

    def _is_done(self) -> bool:
        return len(self._said.ids) >= self._reach.most or self._reach.reached(self._said)

    def _likeliest(self, logs: Tensor) -> int:
        spelled = sum(len(self._vocabulary.bytes[token]) for token in self._said.ids) if self._head else 0
        if left := self._head[spelled:]:
            spelling = torch.tensor(self._vocabulary.agreeing(left), device=logs.device)
            return int(spelling[logs[spelling].argmax()])
        return int(logs.index_fill(0, self._banned, -torch.inf).argmax())
