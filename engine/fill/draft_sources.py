"""What may come next of a gap's text, before the model has said it: code repeats itself, and others have answered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.common.sequences import common_head
from engine.fill.draft_tree import TokenDraft

LONGEST, SHORTEST = 4, 2
"""Tokens that have to be the same before what went on there may go on here."""
AHEAD = 8
"""Tokens of a draft from the file."""
PLACES = 3
"""Different continuations that are looked for in the file."""
OF_FILE = {1: 0.2, 2: 0.5, 3: 0.65, 4: 0.8}
"""How likely the next token is the one that followed so many like the last ones."""
OF_TEXT, OF_SUFFIX, OF_BEGUN_SUFFIX = 0.75, 0.2, 0.9
"""The same of an answer that somebody else has, of what follows the gap, and of that where it has begun."""

_BETWEEN = -1
"""Stands between texts that do not follow each other."""


class DraftSources:
    """Drafts of a gap's tokens. Deterministic; knows nothing of the model but its tokens."""

    def __init__(
        self,
        context: Sequence[int],
        suffix: Sequence[int] = (),
        texts: Sequence[Sequence[int]] = (),
        *,
        stops: frozenset[int] = frozenset(),
        shortest: int = SHORTEST,
    ) -> None:
        """`context`: what stands in the file, and in others; `texts`: answers of others, in tokens of the gap; `stops`:
        tokens that are no text, across which nothing goes on; `shortest`: tokens
        that have to be the same, at the least."""
        self._shortest = shortest
        self._suffix = list(suffix[:AHEAD])
        self._texts = [[*text, *self._suffix] for text in texts if text]
        self._stops = stops | {_BETWEEN}
        before = list(context[1 - LONGEST :])
        self._pool = [*(token for text in self._texts for token in (*before, *text, _BETWEEN)), *context]

    def after(self, written: Sequence[int]) -> list[TokenDraft]:
        """Drafts of what follows the gap's first tokens `written`, the best sources first."""
        written = list(written)
        drafts = [
            TokenDraft(ids=text[len(written) :], likely=OF_TEXT)
            for text in self._texts
            if len(written) < len(text) and text[: len(written)] == written
        ]
        drafts += self._of_file(written)
        begun = self._suffix_begun(written)
        likely = OF_BEGUN_SUFFIX if begun else OF_SUFFIX
        return [*drafts, TokenDraft(ids=self._suffix[begun:], likely=likely)]

    def _of_file(self, written: Sequence[int]) -> list[TokenDraft]:
        found: list[TokenDraft] = []
        for alike, ids in went_on_at([*self._pool, *written], LONGEST, self._shortest, AHEAD):
            ids = self._text(ids)
            if ids and all(common_head(ids, each.ids) < min(len(ids), len(each.ids)) for each in found):
                found.append(TokenDraft(ids=ids, likely=OF_FILE[alike]))
                if len(found) == PLACES:
                    break
        return found

    def _text(self, ids: Sequence[int]) -> Sequence[int]:
        """As far as they are text."""
        return ids[: next((at for at, token in enumerate(ids) if token in self._stops), len(ids))]

    def _suffix_begun(self, written: Sequence[int]) -> int:
        """How many of the last tokens are the suffix's first."""
        most = min(len(written), len(self._suffix) - 1)
        return next((count for count in range(most, 0, -1) if written[-count:] == self._suffix[:count]), 0)


def went_on_at(items: Sequence[int], longest: int, shortest: int, count: int) -> Iterator[tuple[int, Sequence[int]]]:
    """(how many of the last items were the same, at most `count` items that followed there), where `shortest` or more
    were: the longest first, of those the latest. Of more than `longest` nothing is told."""
    items = list(items)
    size = len(items)
    alike: list[tuple[int, int]] = []
    end = 0
    while size > shortest and (end := _index(items, items[-1], end)) < size - 1:
        end += 1
        same = 1
        while same < min(longest, end) and items[end - 1 - same] == items[size - 1 - same]:
            same += 1
        if same >= shortest:
            alike.append((same, end))
    for same, end in sorted(alike, reverse=True):
        yield same, items[end : end + count]


def _index(items: list[int], item: int, start: int) -> int:
    """Where it stands next; the last one is always there."""
    return items.index(item, start)
