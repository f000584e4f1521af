"""Which tokens may not enter a gap. Each constraint adds bans to a step; they hold while its logits are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.models.logits import Logits
from engine.models.vocabulary import Vocabulary


@dataclass(slots=True, kw_only=True)
class Bans:
    """Tokens that F positions may not hold; sorted."""

    out: list[tuple[Tensor | None, Tensor]] = field(default_factory=list[tuple[Tensor | None, Tensor]])
    """Positions, bool [F], None for all of them, and tokens that may not stand there."""
    only: list[tuple[Tensor, Tensor]] = field(default_factory=list[tuple[Tensor, Tensor]])
    """Positions, bool [F], and the only tokens that may stand there."""

    def __getitem__(self, rows: Tensor) -> Bans:
        """The bans of some positions, by their index."""
        return Bans(
            out=[(at if at is None else at[rows], tokens) for at, tokens in self.out],
            only=[(at[rows], tokens) for at, tokens in self.only],
        )

    def apply(self, block: Tensor, first: int = 0) -> None:
        """Set banned logits in [F, W], those of the tokens from `first` on, to minus infinity in place."""
        for at, tokens in self.out:
            columns = _within(tokens, first, block)
            if at is None:
                block.index_fill_(1, columns, -torch.inf)
            elif len(columns):
                block[:, columns] = block[:, columns].masked_fill(at[:, None], -torch.inf)
        for at, tokens in self.only:
            other = torch.ones(block.shape[1], dtype=torch.bool, device=block.device)
            other[_within(tokens, first, block)] = False
            block.masked_fill_(at[:, None] & other, -torch.inf)

    def allowed(self, tokens: Tensor, at: int) -> Tensor:
        """The tokens among `tokens` that a position may hold."""
        may = torch.ones(len(tokens), dtype=torch.bool, device=tokens.device)
        for where, some in self.out:
            if where is None or where[at]:
                may &= ~torch.isin(tokens, some.to(tokens.device))
        for where, some in self.only:
            if where[at]:
                may &= torch.isin(tokens, some.to(tokens.device))
        return tokens[may]


Constrain = Callable[[Bans, Logits, Tensor], None]
"""(bans to add to, raw logits, their places [F, 2] (row, position))"""


def forbid(ids: Sequence[int]) -> Constrain:
    banned = torch.tensor(sorted(set(ids)), dtype=torch.int64)

    def constrain(bans: Bans, logits: Logits, places: Tensor) -> None:
        bans.out.append((None, banned))

    return constrain


def forbid_in(rows: Sequence[int], token: int) -> Constrain:
    """`token` may not enter the gaps of these rows."""
    banned, tokens = torch.tensor(rows, dtype=torch.int64), torch.tensor([token])

    def constrain(bans: Bans, logits: Logits, places: Tensor) -> None:
        if rows:
            bans.out.append((torch.isin(places[:, 0], banned.to(places.device)), tokens))

    return constrain


AcceptedToken = Callable[[int, int], int | None]
"""(row, position) -> the token that was accepted there; None for a pinned, an open or no position."""


def begin_with(
    head: str, vocabulary: Vocabulary, *, one_line: bool = False, accepted: AcceptedToken = lambda row, position: None
) -> Constrain:
    """The first positions of a gap spell `head`, unless one is pinned; what comes after it is free.

    A token shorter than what is left of `head` leaves the rest to the next position. With `one_line` no line breaks
    but those of `head` enter the gap. What is `accepted` already spells its part of `head`.
    """
    breaks = torch.tensor(vocabulary.line_breaks if one_line else (), dtype=torch.int64)

    def spelled_at(row: int, position: int) -> bytes:
        token = accepted(row, position)
        return b"" if token is None else vocabulary.bytes[token]

    def constrain(bans: Bans, logits: Logits, places: Tensor) -> None:
        free = torch.ones(len(places), dtype=torch.bool, device=places.device)
        at_place = {(row, position): at for at, (row, position) in enumerate(places.tolist())}
        for row in dict.fromkeys(row for row, _ in at_place):
            left, position = head.encode(), 0
            while left:
                if (at := at_place.get((row, position))) is None:
                    spelled = spelled_at(row, position)
                else:
                    spelling = _spelling(vocabulary, left, spelled_at(row, position + 1), one_line)
                    allowed = bans.allowed(spelling, at)
                    if not len(allowed):
                        break  # nothing that may stand here spells it: the answer will be dropped
                    here = torch.zeros_like(free)
                    here[at], free[at] = True, False
                    bans.only.append((here, allowed))
                    likeliest = logits[at : at + 1].of(allowed.to(places.device))[0].argmax()
                    spelled = vocabulary.bytes[int(allowed[int(likeliest)])]
                if not spelled:
                    break
                left, position = left[len(spelled) :], position + 1
        if len(breaks):
            bans.out.append((free, breaks))

    return constrain


def in_turn(*constraints: Constrain) -> Constrain:

    def constrain(bans: Bans, logits: Logits, places: Tensor) -> None:
        for each in constraints:
            each(bans, logits, places)

    return constrain


def _joins(left: bytes, after: bytes) -> bool:
    """Whether the text `after` continues what is `left` of a head; nothing there does, too."""
    return not after or (bool(left) and (left.startswith(after) or after.startswith(left)))


def _spelling(vocabulary: Vocabulary, head: bytes, after: bytes, one_line: bool) -> Tensor:
    """Sorted tokens that begin `head` or begin with it, preferably those that the text `after` continues. With
    `one_line` they have no line break after the head."""
    agreeing = vocabulary.agreeing(head)
    if one_line:
        agreeing = [token for token in agreeing if not {*b"\r\n"} & {*vocabulary.bytes[token][len(head) :]}]
    joined = [token for token in agreeing if _joins(head[len(vocabulary.bytes[token]) :], after)]
    return torch.tensor(sorted(joined or agreeing), dtype=torch.int64)


def _within(tokens: Tensor, first: int, block: Tensor) -> Tensor:
    """The columns of `block` that stand for some of the tokens."""
    bounds = torch.tensor([first, first + block.shape[1]])
    start, end = torch.searchsorted(tokens, bounds).tolist()
    return tokens[start:end].to(block.device) - first
