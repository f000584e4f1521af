"""Drafts out of the text that is rewritten: most of a rewrite is what stood there already.

Where the model says something else, the old text is found again, wherever the last tokens stand in it; a few tokens
may have been replaced. What was replaced once is drafted as replaced. The same goes for the lines around it, which an
answer may begin or end with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set

from engine.fill.draft_tree import ROWS, Following, TokenDraft, either, of_drafts
from engine.fill.ngrams import NGrams

_SYNC, _JUST_MET = 0.97, 0.85
_LONG_SYNC = 0.995
"""How likely the next token is the old one, in step with it."""
_AGAIN = 0.9
_REPLACED = 0.17
"""How likely the old text goes on after as many of its tokens as were written anew; counted in 32 rewrites."""
_OF_SEEN = 0.8
"""What n-grams say of the next token counts this much: a rewrite says more that is new than a gap does."""
MET = 3
"""Tokens in a row by which the texts have met again, and most tokens that are taken for one that was replaced."""
_BACK = 6
"""The same, where that is before what is dealt with: they met in the wrong place, or the answer repeats itself."""
_MOST_ROWS = 64
"""Tokens that are drafted at the most, where as many were the old ones before: so many cost little more than a third of
what they cost in passes of 16."""
_LONG = 12
"""Tokens in a row than which more say no more; after so many nothing before them is looked at any more."""


class OldText:
    """Follows what is written through the old text's tokens."""

    def __init__(self, ids: Sequence[int], around: Sequence[int] = ()) -> None:
        """`ids`: the old text's, and those that end the answer; `around`: of what the model was told around it."""
        self._ids = list(ids)
        self._around = OldText(around) if around else None
        self._places: defaultdict[int, list[int]] = defaultdict(list)
        for at, token in enumerate(self._ids):
            self._places[token].append(at)
        self.at = 0
        """How much of the old text is dealt with."""
        self._low = 0
        """The same, if what met lately met in the wrong place."""
        self._steps = _LONG
        """Tokens in step since then."""
        self._apart: list[int] = []
        """Written since the texts parted."""
        self._runs: dict[int, int] = {}
        """The places that the last tokens lead to, and how many of them do."""
        self._replaced: dict[tuple[int, ...], tuple[int, ...]] = {}

    @property
    def together(self) -> bool:
        """Whether the last tokens written are those of the old text."""
        return not self._apart

    @property
    def left(self) -> list[int]:
        """Of the old text, what is not dealt with."""
        return self._ids[self.at :]

    @property
    def rows(self) -> int:
        """Rows that the next pass is worth."""
        if self._apart:
            return ROWS if self._around is None else self._around.rows
        return max(ROWS, min(self._steps, _MOST_ROWS))

    @property
    def sure(self) -> float:
        """The largest probability that a draft's next token can have."""
        return _LONG_SYNC if self.rows > ROWS else _SYNC

    def write(self, tokens: Sequence[int]) -> None:
        """Note tokens that were written."""
        for token in tokens:
            self._write(token)
        if self._around is not None:
            self._around.write(tokens)

    def _write(self, token: int) -> None:
        self._runs = {at + 1: self._runs.get(at, 0) + 1 for at in self._places[token]}
        if not self._apart and self._ids[self.at : self.at + 1] == [token]:
            self.at, self._steps = self.at + 1, self._steps + 1
            if self._steps >= _LONG:
                self._low = self.at
            return
        self._apart.append(token)
        # One token is no evidence: with the words before it, the 8 of "(default: 80" is that of any "(default: 8".
        met = [at for at, run in self._runs.items() if run >= (MET if at > self._low else _BACK)]
        if met and len(self._apart) > 1:
            self._meet(max(met, key=lambda at: (min(self._runs[at], _LONG), at > self._low, -at)))

    def _meet(self, at: int) -> None:
        run = self._runs[at]
        was, becomes = tuple(self._ids[self.at : max(at - run, 0)]), tuple(self._apart[:-run])
        if 0 < len(was) <= MET and 0 < len(becomes) <= 2 * MET:
            self._replaced[was] = becomes
        self.at, self._apart, self._steps = at, [], 0

    def following(self, seen: NGrams, ends: Set[int] = frozenset()) -> Following:
        """What may come next: from the old text, and where the texts are apart also what followed the same tokens in
        what is `seen`, the context and what is written, but `ends`."""
        drafts = of_drafts(self.drafts())
        if self.together:
            return drafts

        def following(path: Sequence[int]) -> Mapping[int, float]:
            repeated = seen.after(path).items()
            return either(drafts(path), ((token, _OF_SEEN * likely) for token, likely in repeated if token not in ends))

        return following

    def drafts(self) -> list[TokenDraft]:
        """Drafts of the next tokens, from the old text."""
        ahead = self._ids[self.at : self.at + self.rows]
        if not self._apart:
            left = self._ids[self._low : self._low + ROWS] if self._steps < MET else []
            likely = self.sure if self._steps >= MET else _JUST_MET
            around = self._drafts_around() if not self.at else []
            return [
                TokenDraft(ids=ahead, likely=likely),
                *self._again(ahead),
                TokenDraft(ids=left, likely=_REPLACED),
                *around,
            ]
        replaced = self._ids[self.at + len(self._apart) :][:ROWS] if len(self._apart) <= MET else []
        return [TokenDraft(ids=replaced, likely=_REPLACED), *self._drafts_around()]

    def _drafts_around(self) -> list[TokenDraft]:
        """Where nothing is written yet, or the last of it is of the surroundings."""
        around = self._around
        if around is None or len(around._apart) >= _BACK:
            return []
        if around.at:
            return around.drafts()
        return [] if around._apart else [TokenDraft(ids=around._ids[:ROWS], likely=_REPLACED)]

    def _again(self, ahead: Sequence[int]) -> Iterator[TokenDraft]:
        """With what was replaced before replaced here."""
        for was, becomes in self._replaced.items():
            for at in range(len(ahead) - len(was) + 1):
                if tuple(ahead[at : at + len(was)]) == was:
                    yield TokenDraft(ids=[*ahead[:at], *becomes, *ahead[at + len(was) :]], likely=_AGAIN)
                    break
