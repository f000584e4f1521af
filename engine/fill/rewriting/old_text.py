"""Drafts from the text that is rewritten: most of a rewrite is old text.

Where the model departs from it, the old text is found again wherever the last tokens stand in it; a few tokens may have
been replaced. A replacement that was seen once is drafted at later places. The same goes for the surrounding lines,
which an answer may begin or end with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set

from engine.fill.draft_tree import ROWS, Following, TokenDraft, either, of_drafts
from engine.fill.ngrams import NGrams

_SYNC, _JUST_MET = 0.97, 0.85
_LONG_SYNC = 0.995
"""Probability of the next old token: while the answer follows the old text, just after the texts have met again, and
after a long run."""
_AGAIN = 0.9
_REPLACED = 0.17
"""Probability that the old text goes on after a replacement of as many tokens; counted in 32 rewrites."""
_OF_SEEN = 0.8
"""Factor on the probabilities of n-grams: a rewrite has more new text than a gap."""
MET = 3
"""Equal tokens in a row after which the texts have met again, and the most tokens that one replacement may replace."""
_BACK = 6
"""Equal tokens needed to meet at an earlier place: the last meeting was wrong, or the answer repeats itself."""
_MOST_ROWS = 64
"""Most tokens of a draft, after as many equal ones: one such pass costs little more than a third of passes of 16."""
_LONG = 12
"""Equal tokens in a row that count at most; tokens before them are not looked at."""


class OldText:
    """Follows an answer through the tokens of the old text."""

    def __init__(self, ids: Sequence[int], around: Sequence[int] = ()) -> None:
        """`ids`: tokens of the old text, and those that end the answer; `around`: tokens of the surrounding lines that
        the model saw."""
        self._ids = list(ids)
        self._around = OldText(around) if around else None
        self._places: defaultdict[int, list[int]] = defaultdict(list)
        for at, token in enumerate(self._ids):
            self._places[token].append(at)
        self.at = 0
        """Tokens of the old text that the answer has passed."""
        self._low = 0
        """The same, if the last meeting was at the wrong place."""
        self._steps = _LONG
        """Equal tokens since the texts met."""
        self._apart: list[int] = []
        """Tokens written since the texts parted."""
        self._runs: dict[int, int] = {}
        """The places that the last tokens lead to, with the number of these tokens."""
        self._replaced: dict[tuple[int, ...], tuple[int, ...]] = {}

    @property
    def together(self) -> bool:
        """Whether the last tokens written are those of the old text."""
        return not self._apart

    @property
    def left(self) -> list[int]:
        """The rest of the old text."""
        return self._ids[self.at :]

    @property
    def rows(self) -> int:
        """The number of rows that the next pass is worth."""
        if self._apart:
            return ROWS if self._around is None else self._around.rows
        return max(ROWS, min(self._steps, _MOST_ROWS))

    @property
    def sure(self) -> float:
        """Highest probability of a draft's next token."""
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
        """Next tokens by the old text; where the texts have parted, also by the n-grams `seen` in the context and the
        answer, except for `ends`."""
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
        """Drafts from the surrounding lines, at the beginning of an answer or after such lines."""
        around = self._around
        if around is None or len(around._apart) >= _BACK:
            return []
        if around.at:
            return around.drafts()
        return [] if around._apart else [TokenDraft(ids=around._ids[:ROWS], likely=_REPLACED)]

    def _again(self, ahead: Sequence[int]) -> Iterator[TokenDraft]:
        """A draft in which earlier replacements are repeated."""
        for was, becomes in self._replaced.items():
            for at in range(len(ahead) - len(was) + 1):
                if tuple(ahead[at : at + len(was)]) == was:
                    yield TokenDraft(ids=[*ahead[:at], *becomes, *ahead[at + len(was) :]], likely=_AGAIN)
                    break
