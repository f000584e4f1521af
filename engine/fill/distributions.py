"""The model's distributions over the open positions, read once, block by block of the vocabulary: one softmax serves
all decisions and the conditioning of the next step.

Running maxima and sums: Milakov and Gimelshein, arXiv:1805.02867. Tokens are drawn by reservoir sampling: a block's
draw replaces the one before by the block's share of the sum so far.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from engine.fill.constraints import Bans
from engine.models.logits import Head, Logits

_LEAST = -1e4
"""Log-probability of an impossible token: small enough to count for nothing in a sum, yet finite."""
_SORTED = 1 << 20
"""Probabilities that are sorted at once; sorting takes several times their memory."""
_LOWEST = -1e30
"""Stands for the largest logit of a position of which all tokens so far are banned."""

Draw = Callable[[Tensor, Tensor | None, torch.Generator], Tensor]
"""(Weights [D, W] of a block, the sum [D, 1] of the blocks before it or None) -> the index [D] in the block of the
drawn token; -1 keeps the earlier draw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """Embeddings averaged by the predictions at F positions. The last block is added when the average is computed, as
    most positions are settled by then."""

    head: Head
    sums: Tensor
    """Weighted sums of embeddings [F, E]."""
    total: Tensor
    """Sums of all weights [F, 1]."""
    last: Tensor
    """Weights [F, W] of the last W tokens."""

    def __getitem__(self, chosen: Tensor) -> Signal:
        """The signal of some positions, bool [F]."""
        return replace(self, sums=self.sums[chosen], total=self.total[chosen], last=self.last[chosen])

    @classmethod
    def nothing(cls, head: Head, count: int) -> Signal:
        """The signal of `count` positions of which nothing is known."""
        sums = head.mean.repeat(count, 1)
        return cls(head=head, sums=sums, total=sums.new_ones(count, 1), last=sums.new_empty(count, 0))

    def spread(self, there: Tensor) -> Signal:
        """The signal of more positions: this one where `there`, bool [N], is true, and nothing known elsewhere."""
        wider = replace(Signal.nothing(self.head, len(there)), last=self.last.new_zeros(len(there), self.last.shape[1]))
        wider.sums[there], wider.total[there], wider.last[there] = self.sums, self.total, self.last
        return wider

    def embeddings(self) -> Tensor:
        """[F, E]"""
        return (self.sums + self.head.summed(self.last, self.head.size - self.last.shape[1])) / self.total


@dataclass(frozen=True, slots=True, kw_only=True)
class Distributions:
    """The distributions of F positions."""

    likeliest: Tensor
    """Tokens [F]."""
    drawn: Tensor
    """Tokens [F]; the likeliest ones where none is drawn."""
    log_total: Tensor
    """Logarithm of the sum over all allowed tokens [F]: a logit minus this is a log-probability."""
    log_likeliest: Tensor
    """Log-probability [F]."""
    log_drawn: Tensor
    """Log-probability [F]."""
    entropy: Tensor
    """Nats [F]."""
    log_queried: Tensor
    """Log-probabilities [F, S] of the queried tokens."""
    top: tuple[Tensor, Tensor]
    """Log-probabilities and tokens [F, K] of the likeliest, in order."""
    signal: Signal


def look(
    logits: Logits,
    bans: Bans | None = None,
    *,
    temperature: float = 1.0,
    drawing: Tensor | bool = False,
    draw: Draw | None = None,
    top_p: float = 1.0,
    generator: torch.Generator | None = None,
    queried: Tensor | None = None,
    top: int = 0,
) -> Distributions:
    """Read the logits in one pass over the vocabulary. `drawing`: positions at which a token is drawn, bool [F], or
    all or none of them; this needs `generator`. `top_p` below 1: draw among the likeliest tokens that have this
    probability together. `queried`: tokens [F, S] whose log-probabilities are wanted. `top`: the number of likeliest
    tokens wanted."""
    at_once = drawing if top_p >= 1 else False
    running = _Running(drawing=at_once, draw=draw or one_of, generator=generator, queried=queried, top=top)
    for first, block in logits.blocks():
        running.add(logits.head, first, _processed(block, bans, temperature, first))
    said = running.found(logits.head)
    if at_once is drawing:
        return said
    assert generator is not None
    chosen = drawing.nonzero()[:, 0] if isinstance(drawing, Tensor) else torch.arange(len(logits.hidden))
    drawn, logs = said.drawn.clone(), said.log_drawn.clone()
    # Sorted, for which all of a position is needed; few positions at a time.
    for rows in chosen.split(max(_SORTED // logits.head.size, 1)):
        here = _processed(logits[rows].whole(), None if bans is None else bans[rows], temperature)
        ordered, order = here.softmax(dim=-1).sort(dim=-1, descending=True)
        beyond = ordered.cumsum(dim=-1) - ordered >= top_p
        index = one_of(ordered.masked_fill_(beyond, 0.0), None, generator)
        drawn[rows] = order.gather(1, index[:, None])[:, 0]
        logs[rows] = here.gather(1, drawn[rows, None])[:, 0] - said.log_total[rows]
    return replace(said, drawn=drawn, log_drawn=logs)


def _processed(logits: Tensor, bans: Bans | None, temperature: float, first: int = 0) -> Tensor:
    """Logits [F, W] of the tokens from `first` on without banned ones, divided by the temperature in place."""
    if bans is not None:
        bans.apply(logits, first)
    return logits if temperature == 1 else logits.div_(temperature)


@dataclass(slots=True, kw_only=True)
class _Running:
    """Sums over the blocks so far. Weights are 1 for the largest logit of a position."""

    drawing: Tensor | bool
    draw: Draw
    generator: torch.Generator | None
    queried: Tensor | None
    top: int
    greatest: Tensor | None = None
    """The largest logit [F, 1]; None before the first block."""
    total: Tensor = field(init=False)
    """Sum of weights [F, 1]."""
    moment: Tensor = field(init=False)
    """Sum of weights times their logarithms [F, 1]."""
    likeliest: Tensor = field(init=False)
    """[F, 1]"""
    drawn: Tensor = field(init=False)
    """Tokens [D]."""
    drawn_logit: Tensor = field(init=False)
    """[D]"""
    queried_logit: Tensor = field(init=False)
    """[F, S]"""
    best: tuple[Tensor, Tensor] = field(init=False)
    """Logits and tokens [F, K]."""
    sums: Tensor = field(init=False)
    """Weighted sums of embeddings [F, E], without the last block's."""
    last: Tensor = field(init=False)
    """Weights [F, W] of the last block."""

    def add(self, head: Head, first: int, block: Tensor) -> None:
        """Add logits [F, W] of the tokens from `first` on; they are overwritten."""
        index = likeliest(block)[:, None]
        peak = block.gather(1, index)
        self._note(first, block)
        before, scale = None, None
        if self.greatest is None:
            self.greatest, self.likeliest = peak.clamp(min=_LOWEST), index
            self.sums = head.table.new_zeros(len(block), head.table.shape[1], dtype=torch.float32)
        else:
            greatest = torch.maximum(self.greatest, peak)
            self.likeliest = torch.where(peak > self.greatest, index + first, self.likeliest)
            change = self.greatest - greatest
            scale = change.exp()
            self.moment = (self.moment + self.total * change) * scale
            self.total = before = self.total * scale
            self.sums = (self.sums + head.summed(self.last, first - self.last.shape[1])) * scale
            self.greatest = greatest
            del self.last
        block -= self.greatest
        weights = block.exp()
        total = weights.sum(dim=-1, keepdim=True)
        moment = torch.linalg.vecdot(weights, block.clamp_(min=_LEAST))[:, None]
        self._draw(first, weights, before, block)
        self.total, self.moment = (total, moment) if before is None else (before + total, self.moment + moment)
        # Where no embeddings are averaged, nothing is kept.
        self.last = weights if head.table.shape[1] else weights[:, :0]

    def _note(self, first: int, block: Tensor) -> None:
        fresh, width = self.greatest is None, block.shape[1]
        if self.queried is not None:
            logits = block.gather(1, (self.queried - first).clamp(0, width - 1))
            inside = (self.queried >= first) & (self.queried < first + width)
            self.queried_logit = logits if fresh else torch.where(inside, logits, self.queried_logit)
        if self.top:
            values, tokens = block.topk(min(self.top, width))
            tokens = tokens + first
            if not fresh:
                values, tokens = torch.cat((self.best[0], values), dim=1), torch.cat((self.best[1], tokens), dim=1)
                values, order = values.topk(min(self.top, values.shape[1]))
                tokens = tokens.gather(1, order)
            self.best = values, tokens

    def _draw(self, first: int, weights: Tensor, before: Tensor | None, logs: Tensor) -> None:
        if self.drawing is False:
            return
        assert self.generator is not None
        assert self.greatest is not None
        greatest = self.greatest
        if isinstance(self.drawing, Tensor):
            weights, logs, greatest = weights[self.drawing], logs[self.drawing], greatest[self.drawing]
            before = None if before is None else before[self.drawing]
        index = self.draw(weights, before, self.generator)
        logit = (logs.gather(1, index.clamp(min=0)[:, None]) + greatest)[:, 0]
        token, new = index + first, index >= 0
        self.drawn = token if before is None else torch.where(new, token, self.drawn)
        self.drawn_logit = logit if before is None else torch.where(new, logit, self.drawn_logit)

    def found(self, head: Head) -> Distributions:
        assert self.greatest is not None
        relative = self.total.log()
        log_total = self.greatest + relative
        tokens, logs = self.likeliest[:, 0], -relative[:, 0]
        drawn, log_drawn = tokens, logs
        if self.drawing is True:
            drawn, log_drawn = self.drawn, self.drawn_logit - log_total[:, 0]
        elif isinstance(self.drawing, Tensor):
            drawn = tokens.masked_scatter(self.drawing, self.drawn)
            log_drawn = logs.masked_scatter(self.drawing, self.drawn_logit - log_total[self.drawing, 0])
        none = self.total[:, :0]
        return Distributions(
            likeliest=tokens,
            drawn=drawn,
            log_total=log_total[:, 0],
            log_likeliest=logs,
            log_drawn=log_drawn,
            entropy=(relative - self.moment / self.total)[:, 0],
            log_queried=none if self.queried is None else self.queried_logit - log_total,
            top=(self.best[0] - log_total, self.best[1]) if self.top else (none, none.long()),
            signal=Signal(head=head, sums=self.sums, total=self.total, last=self.last),
        )


def one_of(weights: Tensor, before: Tensor | None, generator: torch.Generator) -> Tensor:
    """Where one random number hits the sum of the weights before it.

    `torch.multinomial` draws a number for each token of the vocabulary instead: five to eight times as long on a CPU.
    """
    reached = weights.cumsum(dim=-1)
    own = reached[:, -1:]
    total = own if before is None else own + before
    hit = torch.rand(total.shape, generator=generator, device=total.device) * total
    inside = hit < own
    # Rounded up to the whole it would hit a token that has no probability.
    hit = torch.minimum(hit, own.nextafter(torch.zeros_like(own)))
    index = torch.searchsorted(reached, hit, right=True).clamp_(max=weights.shape[1] - 1)
    return (index if before is None else torch.where(inside, index, -1))[:, 0]


def likeliest(logits: Tensor) -> Tensor:
    """The token with the largest of its logits [F, V]; [F]."""
    if logits.device.type != "cpu":
        return logits.argmax(dim=-1)
    # torch takes ten times as long there.
    return torch.from_numpy(logits.detach().numpy().argmax(axis=-1))
