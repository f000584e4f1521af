"""What the model writes from left to right, offered where it is likelier than all that its canvases say.

A canvas says all of its tokens at once, at a width that is guessed. The causal encoder of the same weights reads the
same context and suffix and writes token after token, to the end that it has learnt. What it would write is known as far
as its reading of a canvas's answer is sure, and it is given up as soon as it can't be likelier any more. Code repeats
itself: what followed the last tokens elsewhere in the file, or on a canvas, is read along, and where it is what comes,
a pass is saved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

import torch
from torch import Tensor

from engine.common.sequences import went_on
from engine.fill.constraints import Bans
from engine.fill.distributions import likeliest
from engine.fill.executor import Work
from engine.fill.gap import Gap
from engine.fill.hypotheses import NO_ROW, Hypothesis
from engine.fill.ranking import fitting, standing, worthwhile
from engine.fill.validation import checked, valid_fills
from engine.models.base import LeftToRight
from engine.models.logits import dense

HANDICAP = 1.5
"""Nats by which it has to be likelier: what is written as the likeliest, token after token, is found likely by the same
weights whether it is right or not. On development gaps 0.5 to 2 do equally well."""
LONGEST = 32
"""Tokens."""
_GUESSED = 7
"""Tokens that are read with the next one, in hope: what follows its like elsewhere takes half of the passes away. With
it they are the eight rows that oneDNN multiplies at the least."""
_LIKE = 4
"""Tokens that are looked for elsewhere, at most."""
_SURE = math.log(0.5)
"""Above which a token that is read is the likeliest in its place."""
_FIRST = torch.zeros(1, 2, dtype=torch.int64)
"""The place of the one position that is asked about."""


def second_opinion(gap: Gap, known: Sequence[Hypothesis]) -> Work[list[Hypothesis]]:
    """One hypothesis more, or none. `known`: those that there are, with their readings."""
    model = gap.model
    if not gap.told or gap.committed or not isinstance(model, LeftToRight):
        return []
    surest = max(known, key=_sure_tokens, default=None)
    if surest is not None and _sure_tokens(surest) > len(surest.ids):
        return []  # it would be the very same
    written = _Written(gap, surest, known)
    least = max((standing(gap, each, each.read) for each in known), default=-math.inf) + HANDICAP
    tokens = model.next_tokens(gap.prompt.context, written.choose, gap.suffix, tuple(written.ids), written.guess)
    while len(written.ids) <= min(LONGEST, gap.budget) and written.bound() >= least and not gap.should_stop():
        token = next(tokens)
        if token == model.info.end_id:
            made = written.hypothesis()
            is_other = made.text not in {each.text for each in known}
            return (yield from _offered(gap, made)) if is_other and standing(gap, made, made.read) >= least else []
        written.ids.append(token)
        yield
    return []


def _offered(gap: Gap, made: Hypothesis) -> Work[list[Hypothesis]]:
    if not gap.model.vocabulary.is_text(made.ids) or not worthwhile(gap, [made]):
        return []
    found = yield from valid_fills(gap.request, [made.text], gap.deadline)
    return [replace(checked(made, found[made.text]), handicap=HANDICAP)] if made.text in found else []


def _sure_tokens(known: Hypothesis) -> int:
    """From its first one on; its end is one."""
    return sum(1 for _ in takewhile(_SURE.__lt__, known.read))


class _Written:
    """A gap's tokens so far, and what the model says of each."""

    def __init__(self, gap: Gap, begun: Hypothesis | None, known: Sequence[Hypothesis]) -> None:
        sure = _sure_tokens(begun) if begun else 0
        end = gap.model.info.end_id
        self._gap = gap
        self._constraints = gap.constraints(slack=False, requests=[] if end is None else [end])
        self.ids = [*begun.ids[:sure]] if begun else []
        self.logs = [*begun.read[:sure]] if begun else []
        """One more than `ids` once the end is there."""
        before = gap.prompt.context[1 - _LIKE :]
        canvases = [token for each in known for token in (*before, *each.ids, *([] if end is None else [end]))]
        self._around = [*gap.suffix, *canvases, *gap.prompt.context]

    def guess(self) -> list[int]:
        """What may come, asked before each forward pass, which is counted."""
        self._gap.written += 1
        return [*went_on(self._around + self.ids, _LIKE, _GUESSED)]

    def choose(self, logits: Tensor) -> Tensor:
        """The likeliest that may come next, of logits [1, V]; what they say of it is kept."""
        bans, may = Bans(), logits.clone()
        for constrain in self._constraints:
            constrain(bans, dense(logits), _FIRST)
        bans.apply(may)
        token = likeliest(may)
        self.logs.append(float(logits.log_softmax(dim=-1)[0, token]))
        return token

    def bound(self) -> float:
        """What it can be ranked by at the most, whatever comes."""
        odds = [likely for width, likely in self._gap.told.items() if width >= len(self.ids)]
        return sum(self.logs) + (fitting(max(odds)) if odds else -math.inf)

    def hypothesis(self) -> Hypothesis:
        text = self._gap.model.detokenize(self.ids)
        confidence = tuple(map(math.exp, self.logs[: len(self.ids)]))
        return Hypothesis(row=NO_ROW, text=text, ids=tuple(self.ids), confidence=confidence, read=tuple(self.logs))
