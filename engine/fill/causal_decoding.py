"""Draft, check, accept: a gap's tokens from left to right, several in a pass.

One causal pass checks a tree of drafts. The longest run that the model would write itself is accepted, and the token
that it writes after that is free. The result is the greedy one, token after token, whatever the drafts are: they only
save passes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.fill.draft_sources import GUESSES, DraftSources
from engine.fill.draft_tree import ROOT, ROWS, accepted, likeliest_end, of_drafts, tree_of
from engine.fill.gap import Gap
from engine.fill.greedy import Greedy, Said
from engine.fill.next_line import NO_LINE, NextLine
from engine.models.base import CausalHead, DraftTree

_LIKELY_ENDS = 0.5
"""Least probability that acceptance ends where a canvas begins: so 32 gaps of this repository take coder-0.5b as long
as without canvases. With a canvas in each pass they take 6% longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Where decoding of a gap stops, and how many rows a pass has."""

    most: int
    """Most tokens of the gap."""
    reached: Callable[[Said], bool] = lambda said: False
    """Whether the text so far is enough."""
    banned: Sequence[int] = ()
    """Tokens that are never written."""
    not_first: Sequence[int] = ()
    """Tokens that the gap's text does not begin with."""
    rows: int = ROWS
    """Most tokens of one pass."""
    next_line: NextLine = NO_LINE
    """The line at which the gap ends."""
    canvases: bool = False
    """Whether each pass has a canvas that drafts for the next one, if the model has canvases."""


def decode(gap: Gap, head: CausalHead, said: Said, drafts: DraftSources, reach: Reach) -> Generator[None]:
    """Continue `said` greedily until the gap's end or the deadline; yields after each pass."""
    greedy = Greedy(
        head,
        said,
        lambda said: len(said.ids) >= reach.most or reach.reached(said),
        _chooser(gap, said, reach),
        reach.next_line,
    )
    text, known = head.begin(gap.context, gap.suffix, said.ids), list[int]()
    gap.deadline.step_begins()
    # The first pass may read a context, which takes longer than any other.
    usual = text.unread <= ROWS
    # What was read before needs no pass to begin with.
    passes = not text.is_read
    while not greedy.done:
        # One row is that of the text's last token.
        following = drafts.after(said.ids) if passes else of_drafts(())
        tree, likely = tree_of(following, known, reach.rows - (not known), head.cost)
        canvas = _canvas_after(tree, likely) if reach.canvases and head.slots else None
        greedy.logits = head.check(text, tree, canvas)
        written = len(said.ids) - len(known)
        path, token = accepted(tree, len(known), greedy.next)
        if guessed := head.guessed(text):
            _take_guess(drafts, guessed, tree, path, written)
        text, known = head.accept(text, path), [] if token is None else [token]
        if passes:
            gap.written += 1
            if gap.deadline.step_is_done(usual=usual):
                return
            yield
        passes = usual = True


def _canvas_after(tree: DraftTree, likely: Sequence[float]) -> int | None:
    """The node that a canvas follows; None where it would cost more than it saves."""
    end, share = likeliest_end(tree, likely)
    return end if share >= _LIKELY_ENDS else None


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


def _chooser(gap: Gap, said: Said, reach: Reach) -> Callable[[Tensor], Tensor]:
    """The likeliest token that may come; before the gap's own text, one that spells the head of the prompt."""
    vocabulary, head = gap.model.vocabulary, gap.prompt.head.encode()
    banned, first = (
        torch.tensor(sorted({*tokens}), dtype=torch.int64, device=gap.model.info.device)
        for tokens in (reach.banned, (*reach.banned, *reach.not_first))
    )

    def choose(logs: Tensor) -> Tensor:
        spelled = sum(len(vocabulary.bytes[token]) for token in said.ids)
        if left := head[spelled:]:
            spelling = torch.tensor(vocabulary.agreeing(left), device=logs.device)
            return spelling[logs[spelling].argmax()]
        return logs.index_fill(0, first if spelled == len(head) else banned, -torch.inf).argmax()

    return choose
