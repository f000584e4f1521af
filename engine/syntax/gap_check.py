"""What of a fill belongs in its gap, and what it does to the syntax of its file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice

from engine.common.closers import closes
from engine.syntax.brackets import brackets_near, line_start
from engine.syntax.budget import Budget
from engine.syntax.extent import cut_to_extent, without_closers
from engine.syntax.heads import longest_valid_head
from engine.syntax.overlap import without_ends, without_lines
from engine.syntax.questions import ValidatedFill, ValidateFills
from engine.syntax.tree import Trees, plain
from engine.syntax.validator import Validator
from engine.syntax.verdict import Verdict

Fits = Callable[[ValidatedFill], bool]
_TRIED = 4
"""Ends of a fill that are left out, or closers after a gap that are, to see what is whole then."""


class GapCheck:
    """One gap, and what was found out about fills of it: rows agree, and a model may insist on what it said.

    Here alone it is decided what of a fill the text after the gap says again, and what of that text the fill does: by
    the file as it will be.
    """

    def __init__(self, question: ValidateFills, trees: Trees) -> None:
        text, start, end = plain(question.text), question.start, question.end
        self._before, self._old, self._after = text[:start], text[start:end], text[end:]
        self._language, self._may_swallow = question.language, question.may_swallow
        self._head = self._before[line_start(self._before, len(self._before)) :]
        """The gap's line before it."""
        self._line = self._after.partition("\n")[0]
        """And after it."""
        self._trees = trees
        self._validators: dict[int, Validator] = {}
        """By how many characters after the gap are left out."""
        self._known: dict[tuple[str, int], Verdict] = {}

    def validated(self, fill: str, budget: Budget, *, whole: bool) -> ValidatedFill:
        """What may be offered of a fill, and the verdict on it."""
        if whole:
            return self._as(fill, budget)
        fill = without_lines(self._before, fill, self._after)
        as_is = self._as(fill, budget)
        if not as_is.verdict:
            return self._trimmed(fill, budget)
        if _is_whole(as_is):
            return self._kept(as_is, _is_whole, budget)
        ways = list(self._other_ways(fill, budget))
        if chosen := next(filter(_is_whole, ways), None):
            return chosen
        if _is_clean(as_is):
            return self._kept(as_is, _is_clean, budget)
        # What is broken anyway proves nothing about the text after the gap: that stays.
        chosen = next((way for way in ways if _is_clean(way) and not way.swallowed), None)
        return chosen or self._trimmed(fill, budget)

    def cut(self, fill: str, budget: Budget) -> ValidatedFill | None:
        """What of a fill breaks nothing."""
        found = self._as(self._belonging(without_lines(self._before, fill, self._after), budget), budget)
        if found.verdict and found.verdict.problems:
            head = longest_valid_head(self._validator(0, budget), found.text, budget)
            found = head and self._as(head, budget)
        return found if found and found.text.strip() else None

    def _other_ways(self, fill: str, budget: Budget) -> Iterator[ValidatedFill]:
        """What else a fill may be meant for: not to be followed by what it ends with, or to close itself what an
        editor has closed. Which it is shows in what parses."""
        yield from self._without_ends(fill, budget, blanks=False)
        for count in range(1, 1 + min(_TRIED, len(self._line))) if self._may_swallow else ():
            if closes(self._head, fill, self._line[:count]):
                yield self._as(fill, budget, count)
        yield from self._without_ends(fill, budget, blanks=True)

    def _without_ends(self, fill: str, budget: Budget, *, blanks: bool) -> Iterator[ValidatedFill]:
        for left in islice(without_ends(self._before, fill, self._after, blanks=blanks), _TRIED):
            yield self._as(left, budget)

    def _kept(self, as_is: ValidatedFill, fits: Fits, budget: Budget) -> ValidatedFill:
        """A fill that fits as it is, but for closers that stand after the gap, too, as in prose, strings and comments
        they break nothing; and of several lines those that go not beyond what the gap lies in."""
        line = self._line.lstrip()
        for way in self._without_ends(as_is.text, budget, blanks=True):
            end = as_is.text[len(way.text) :].strip()
            if end and line.startswith(end) and closes(self._inside, as_is.text, end, line[len(end) :]) and fits(way):
                return way
        if "\n" not in as_is.text:
            return as_is
        cut = self._as(cut_to_extent(self._validator(0, budget).brackets, as_is.text), budget)
        return cut if fits(cut) else as_is

    @cached_property
    def _inside(self) -> str:
        """The gap's line before it, as far as it is of the string or comment that the gap lies in."""
        inside = brackets_near(self._before, "", self._language).head
        return self._head[-len(inside) :] if inside else self._head

    def _trimmed(self, fill: str, budget: Budget) -> ValidatedFill:
        """What belongs in the gap; where trimming takes what is broken, that counts."""
        text = self._belonging(fill, budget)
        lost = self._as(fill, budget).verdict if self._loses(fill, text) else None
        return ValidatedFill(text=text, verdict=lost) if lost and lost.problems else self._as(text, budget)

    def _belonging(self, fill: str, budget: Budget) -> str:
        """What of a fill goes not beyond what the gap lies in, without closers that stand after it."""
        brackets = self._validator(0, budget).brackets
        return without_closers(brackets, cut_to_extent(brackets, fill))

    def _loses(self, fill: str, trimmed: str) -> bool:
        """Whether trimming took more than brackets, quotes or what stands after the gap anyway."""
        tail = fill[len(trimmed) :].strip()
        return any(letter.isalnum() for letter in tail) and not self._after.lstrip().startswith(tail)

    def _as(self, text: str, budget: Budget, swallowed: int = 0) -> ValidatedFill:
        """A text in the gap, as it is."""
        found = self._known.get((text, swallowed)) or self._validator(swallowed, budget).verdict(text, budget)
        if found:
            self._known[text, swallowed] = found
        return ValidatedFill(text=text, verdict=found, swallowed=swallowed)

    def _validator(self, swallowed: int, budget: Budget) -> Validator:
        if swallowed not in self._validators:
            after = self._after[swallowed:]
            tree = self._trees.tree(self._before + self._old + after, self._language, budget)
            self._validators[swallowed] = Validator(self._before, after, self._language, self._old, tree)
        return self._validators[swallowed]


def _is_whole(fill: ValidatedFill) -> bool:
    return fill.verdict is not None and fill.verdict.whole


def _is_clean(fill: ValidatedFill) -> bool:
    return fill.verdict is not None and fill.verdict.is_clean
