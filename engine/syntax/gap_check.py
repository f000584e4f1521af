"""The part of a fill that belongs in its gap, and what it does to the syntax of its file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice

from engine.common.closers import begins_with, closes
from engine.syntax.brackets import brackets_near, line_start
from engine.syntax.budget import Budget
from engine.syntax.extent import cut_to_extent, without_closers
from engine.syntax.heads import longest_valid_head
from engine.syntax.overlap import closes_again, ends_again, lonely, swallowed, without_ends, without_lines
from engine.syntax.problems import find
from engine.syntax.questions import ValidatedFill, ValidateFills
from engine.syntax.tree import Trees, plain
from engine.syntax.validator import Validator
from engine.syntax.verdict import Verdict

_ENDS_LINE = re.compile(r"[\s)\]};,:]*")
"""Marks that may follow at the end of a line that closers end."""
_CLOSERS = re.compile(r"[)\]}>\"'`]+")
_CLOSES_ALL = re.compile(r"[\"'`][)\]}]{2}")
"""A quote and closers that begin neither a string nor a bracket: nobody writes them twice."""
_TEXT = re.compile(r"comment|string|text|scalar|heredoc|template|attribute_value")
"""Names of nodes in which marks mean nothing to the language."""
Fits = Callable[[ValidatedFill], bool]
_TRIED = 4
"""Variants that are parsed of one kind: ends of a fill, or closers after a gap, left out."""


class GapCheck:
    """One gap, with results for fills of it, as rows often agree. It alone decides which end of a fill repeats the text
    after the gap, and which part of that text the fill replaces: by the file that results."""

    def __init__(self, question: ValidateFills, trees: Trees) -> None:
        text, start, end = plain(question.text), question.start, question.end
        self._before, self._old, self._after = text[:start], text[start:end], text[end:]
        self._language, self._may_swallow = question.language, question.may_swallow
        self._head = self._before[line_start(self._before, len(self._before)) :]
        """The gap's line before the gap."""
        self._line = self._after.partition("\n")[0]
        """The gap's line after the gap."""
        self._trees = trees
        self._validators: dict[int, Validator] = {}
        """Validators by the number of characters left out after the gap."""
        self._known: dict[tuple[str, int], Verdict] = {}

    def validated(self, fill: str, budget: Budget, *, whole: bool) -> ValidatedFill:
        """The part of a fill that may be offered, and the verdict on it."""
        if whole:
            return self._as(fill, budget)
        fill = without_lines(self._before, fill, self._after)
        as_is = self._as(fill, budget)
        if not as_is.verdict:
            return self._trimmed(fill, budget)
        if _is_whole(as_is):
            return self._mended(as_is, budget) or self._kept(as_is, _is_whole, budget)
        variants = list(self._variants(fill, budget))
        if fitting := list(filter(_is_whole, variants)):
            # Several may be whole: the one with the fewest unpaired brackets and quotes that replaces least.
            rests = {each.swallowed: self._line[each.swallowed :] for each in fitting}
            return min(
                fitting,
                key=lambda each: (lonely(self._head, each.text, rests[each.swallowed]), each.swallowed > 1),
            )
        if _is_clean(as_is):
            return self._kept(as_is, _is_clean, budget)
        # In doubt the text after the gap stays.
        chosen = next((each for each in variants if _is_clean(each) and self._is_sure(each, as_is, budget)), None)
        return chosen or self._trimmed(fill, budget)

    def cut(self, fill: str, budget: Budget) -> ValidatedFill | None:
        """The part of a fill that breaks nothing."""
        found = self._as(self._belonging(without_lines(self._before, fill, self._after), budget), budget)
        if found.verdict and found.verdict.problems:
            head = longest_valid_head(self._validator(0, budget), found.text, budget)
            found = head and self._as(head, budget)
        return found if found and found.text.strip() else None

    def _variants(self, fill: str, budget: Budget) -> Iterator[ValidatedFill]:
        """Variants of a fill: without an end that is repeated after the gap, or in place of closers that an
        editor added. Which one is meant shows in what parses."""
        yield from self._without_ends(fill, budget, blanks=False)
        closed = self._validator(0, budget).brackets.closed_by(fill)
        for count in range(1, 1 + min(_TRIED, len(self._line))) if self._may_swallow else ():
            tail = self._line[:count]
            if closes(self._head, fill, tail) or begins_with(closed, tail):
                yield from self._closing(fill, count, budget)
        yield from self._without_ends(fill, budget, blanks=True)

    def _closing(self, fill: str, count: int, budget: Budget) -> Iterator[ValidatedFill]:
        """A fill that replaces closers after the gap; it may repeat what follows them, too."""
        for left in islice(without_ends(self._before, fill, self._after[count:], blanks=False), 1):
            rest = self._line[count + len(fill) - len(left) :]
            if _ENDS_LINE.fullmatch(rest) and not _goes_on(self._before + left, fill[len(left) :]):
                yield self._as(left, budget, count)
        yield self._as(fill, budget, count)

    def _without_ends(self, fill: str, budget: Budget, *, blanks: bool) -> Iterator[ValidatedFill]:
        for left in islice(without_ends(self._before, fill, self._after, blanks=blanks), _TRIED):
            yield self._as(left, budget)

    def _mended(self, as_is: ValidatedFill, budget: Budget) -> ValidatedFill | None:
        """A variant that repairs the file, if the fill itself leaves it as broken as before: a quote without an end may
        show far from the gap."""
        variants = list(self._variants(as_is.text, budget))
        if not variants or self._parses(as_is, budget):
            return None
        return next((variant for variant in variants if _is_whole(variant) and self._parses(variant, budget)), None)

    def _parses(self, fill: ValidatedFill, budget: Budget) -> bool:
        return self._errors(fill.text, self._after[fill.swallowed :], budget) == 0

    def _is_sure(self, variant: ValidatedFill, as_is: ValidatedFill, budget: Budget) -> bool:
        """Whether a variant is safe: it replaces nothing after the gap, or a file that is broken elsewhere gets no
        worse with it, but worse with the fill itself."""
        if not variant.swallowed:
            return True
        now = self._errors(self._old, self._after, budget)
        then = self._errors(variant.text, self._after[variant.swallowed :], budget)
        otherwise = self._errors(as_is.text, self._after, budget)
        if now is None or then is None or otherwise is None:
            return False
        return then <= now and then < otherwise

    def _errors(self, fill: str, after: str, budget: Budget) -> int | None:
        """The number of errors in a file with a fill in it."""
        tree = self._trees.tree(self._before + fill + after, self._language, budget)
        found = find(tree.root, budget) if tree else None
        return None if found is None else len(found)

    def _kept(self, as_is: ValidatedFill, fits: Fits, budget: Budget) -> ValidatedFill:
        """A fill that fits as it is, without closers that also follow the gap (in prose, strings and comments they
        break nothing); a fill of several lines up to the end of its extent."""
        if doubled := next(filter(fits, self._without_doubled(as_is.text, budget)), None):
            return doubled
        if "\n" not in as_is.text:
            return as_is
        cut = self._as(cut_to_extent(self._validator(0, budget).brackets, as_is.text), budget)
        return cut if fits(cut) else as_is

    def _without_doubled(self, fill: str, budget: Budget) -> Iterator[ValidatedFill]:
        """A fill whose closers appear once: without those at its end, or in place of those that follow, if the file
        parses then."""
        yield from self._without_closers(fill, budget, blanks=False)
        # After a quote stands code.
        head = self._head if self._line[:1] in ('"', "'", "`") else self._inside
        for count in swallowed(head, fill, self._line) if self._may_swallow else ():
            for variant in self._closing(fill, count, budget):
                if self._parses(variant, budget) or self._is_sure(variant, self._as(fill, budget), budget):
                    yield variant
        yield from self._without_closers(fill, budget, blanks=True)

    def _without_closers(self, fill: str, budget: Budget, *, blanks: bool) -> Iterator[ValidatedFill]:
        """The variants without an end that lose only a repeated closer or end."""
        line = self._line.lstrip()
        for variant in self._without_ends(fill, budget, blanks=blanks):
            end = fill[len(variant.text) :].strip()
            left = fill.rstrip()[: -len(end) or None]
            if not end or not line.startswith(end) or _goes_on(self._before + left, end):
                continue
            closers = _CLOSERS.match(end)
            is_closed = closers and closes(self._inside, fill, closers[0], line[len(closers[0]) :])
            if is_closed or _CLOSES_ALL.match(end) or closes_again(self._head, left, end):
                yield variant
            elif ends_again(self._inside, left, end, line[len(end) :]):
                yield from [variant] * self._is_in_text(left, fill, budget)

    def _is_in_text(self, left: str, fill: str, budget: Budget) -> bool:
        """Whether the end of a fill, after `left`, stands in a string, a comment or prose."""
        tree = self._trees.tree(self._before + fill + self._after, self._language, budget)
        if tree is None:
            return False
        at = tree.byte(len(self._before) + len(left))
        node = tree.root.descendant_for_byte_range(at, at + 1)
        return self._language == "markdown" or (node is not None and bool(_TEXT.search(node.type)))

    @cached_property
    def _inside(self) -> str:
        """The part of the gap's line before the gap that is in the string or comment around it."""
        inside = brackets_near(self._before, "", self._language).head
        return self._head[-len(inside) :] if inside else self._head

    def _trimmed(self, fill: str, budget: Budget) -> ValidatedFill:
        """The part of a fill that belongs in the gap, with its verdict if trimming removes the problems."""
        text = self._belonging(fill, budget)
        lost = self._as(fill, budget).verdict if self._loses(fill, text) else None
        return ValidatedFill(text=text, verdict=lost) if lost and lost.problems else self._as(text, budget)

    def _belonging(self, fill: str, budget: Budget) -> str:
        """A fill within the gap's extent, without closers that follow the gap."""
        brackets = self._validator(0, budget).brackets
        return without_closers(brackets, cut_to_extent(brackets, fill))

    def _loses(self, fill: str, trimmed: str) -> bool:
        """Whether trimming removed more than brackets, quotes or text that follows the gap."""
        tail = fill[len(trimmed) :].strip()
        return any(letter.isalnum() for letter in tail) and not self._after.lstrip().startswith(tail)

    def _as(self, text: str, budget: Budget, swallowed: int = 0) -> ValidatedFill:
        """A text for the gap, unchanged."""
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


def _goes_on(before: str, end: str) -> bool:
    """Whether an end belongs to a row of marks, such as a fence, or is an operator after a blank."""
    return before[-1:] == end[0] if end[0] != ">" else before[-1:].isspace()


def _is_whole(fill: ValidatedFill) -> bool:
    return fill.verdict is not None and fill.verdict.whole


def _is_clean(fill: ValidatedFill) -> bool:
    return fill.verdict is not None and fill.verdict.is_clean
