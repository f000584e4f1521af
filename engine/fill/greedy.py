"""Greedy text of a causal model: the likeliest token at each place, with the second likeliest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.fill.draft_tree import ROOT
from engine.fill.next_line import NO_LINE, NextLine
from engine.models.base import CausalHead


@dataclass(slots=True, kw_only=True)
class Said:
    """The text of a model so far."""

    ids: list[int] = field(default_factory=list[int])
    """Tokens; in a gap the first ones spell `Prompt.head`."""
    logs: list[float] = field(default_factory=list[float])
    """Log-probability of each."""
    others: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])
    """(Log-probability, token) of the likeliest other token at each place."""
    end: float | None = None
    """Log-probability that the text ends here; None: unknown."""

    def otherwise(self, place: int) -> Said:
        """The tokens before a place, then the other token of that place."""
        log, token = self.others[place]
        instead = (self.logs[place], self.ids[place])
        return Said(
            ids=[*self.ids[:place], token],
            logs=[*self.logs[:place], log],
            others=[*self.others[:place], instead],
        )


def likeliest_other(found: Sequence[Said], may: Callable[[int, int, int], bool]) -> Said | None:
    """The beginning of the likeliest text that was not written yet; None: there is none. `may`: whether text number N
    may have at a place the other token (its id)."""
    said_already = {tuple(said.ids[: at + 1]) for said in found for at in range(len(said.ids))}
    best, way = -math.inf, None
    for number, said in enumerate(found):
        before = 0.0
        for at, (log, token) in enumerate(said.others):
            if before + log > best and (*said.ids[:at], token) not in said_already and may(number, at, token):
                best, way = before + log, (said, at)
            before += said.logs[at]
    return way and way[0].otherwise(way[1])


class Greedy:
    """Adds the likeliest token at each place to a text, until a token that ends it or `is_done`."""

    def __init__(
        self,
        head: CausalHead,
        said: Said,
        is_done: Callable[[Said], bool],
        choose: Callable[[Tensor], Tensor] = torch.argmax,
        next_line: NextLine = NO_LINE,
    ) -> None:
        """`choose`: the token for log-probabilities [V]; `next_line`: the line at which the text ends."""
        self.logits = torch.empty(0)
        """Logits [1 + N, V] after the text, and after each token of a tree."""
        self._ends, self._said, self._is_done, self._choose = head.ends, said, is_done, choose
        self._next_line = next_line
        self.done = is_done(said)

    def next(self, at: int) -> int | None:
        """The model's token after a node of the tree; None at the end."""
        if self.done:
            return None
        said, logs = self._said, self.logits[at - ROOT].log_softmax(0)
        token = int(self._choose(logs))
        if token in self._ends:
            said.end = float(logs[sorted(self._ends)].logsumexp(0))
            self.done = True
            return None
        if self._meets_next_line(logs, token):
            self.done = True
            return None
        likeliest = zip(*(each.tolist() for each in logs.topk(2)), strict=True)
        said.others.append(next((log, other) for log, other in likeliest if other != token))
        said.ids.append(token)
        said.logs.append(float(logs[token]))
        self.done = self._is_done(said)
        return token

    def _meets_next_line(self, logs: Tensor, token: int) -> bool:
        """Whether the next line comes here rather than `token`; if so, its rest is added to the text."""
        said, line = self._said, self._next_line.ids
        begun = self._next_line.begun(said.ids)
        if begun is None or begun == len(line) or token == line[begun]:
            return False
        log = float(logs[line[begun]])
        if sum(said.logs[len(said.ids) - begun :]) + log < self._next_line.least:
            return False
        rest = len(line) - begun - 1
        said.ids += line[begun:]
        said.logs += [log, *[0.0] * rest]
        said.others += [(float(logs[token]), token), *[(-math.inf, -1)] * rest]
        return True
