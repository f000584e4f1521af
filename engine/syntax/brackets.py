"""Brackets that are open at a gap, those that the text after it closes, and what a fill does to both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from engine.syntax.lexing import CONTEXT_CHARS, OPENER, Lexeme, lexemes


class Bracket(NamedTuple):
    """An opening bracket: its place, and the bracket that closes it."""

    start: int
    closer: str


@dataclass(frozen=True, slots=True)
class Pairing:
    """How the brackets of a text pair. Offsets count from its beginning; what was open before it is negative."""

    pairs: tuple[tuple[Bracket, int], ...]
    """Each closed bracket with the place of its closer."""
    unopened: tuple[int, ...]
    """Closers without an opener."""
    unclosed: tuple[Bracket, ...]
    """Openers without a closer, outermost first."""
    pending: Lexeme | None
    """The string or comment that the end of the text cuts off."""
    cut_off: tuple[int, ...] = ()
    """Places of strings that the end of their line cuts off."""


class _Stack:
    """Open brackets. Closing one drops the brackets inside it, at a cost of one step each."""

    def __init__(self, open_before: tuple[Bracket, ...]) -> None:
        self.open: list[Bracket] = [*open_before]
        self.dropped: list[Bracket] = []
        self._depths: dict[str, list[int]] = {closer: [] for closer in OPENER}
        """Depths of the open brackets by their closers, outermost first."""
        for depth, bracket in enumerate(open_before):
            self._depths[bracket.closer].append(depth)

    def copy(self) -> _Stack:
        """A copy; open brackets are not gone through."""
        other = _Stack(())
        other.open, other.dropped = self.open.copy(), self.dropped.copy()
        other._depths = {closer: depths.copy() for closer, depths in self._depths.items()}
        return other

    def push(self, bracket: Bracket) -> None:
        self._depths[bracket.closer].append(len(self.open))
        self.open.append(bracket)

    def close(self, closer: str) -> Bracket | None:
        """The innermost bracket that a closer closes; None where there is none."""
        if not self._depths[closer]:
            return None
        depth = self._depths[closer].pop()
        inner = self.open[depth + 1 :]
        for bracket in inner:
            self._depths[bracket.closer].pop()
        self.dropped += inner
        bracket = self.open[depth]
        del self.open[depth:]
        return bracket


def pair(text: str, language: str, before: _Stack | None = None, context: str = "") -> Pairing:
    """Pair the brackets of a text that follows `context`, in which those of `before` stayed open."""
    stack = before.copy() if before else _Stack(())
    pairs: list[tuple[Bracket, int]] = []
    unopened: list[int] = []
    cut_off: list[int] = []
    last: Lexeme | None = None
    for last in lexemes(text, language, context):
        if last.kind == "open":
            stack.push(Bracket(last.start, last.closer))
        elif last.kind == "close":
            bracket = stack.close(text[last.start])
            if bracket is None:
                unopened.append(last.start)
            else:
                pairs.append((bracket, last.start))
        elif last.kind == "string" and not last.ended and last.end < len(text):
            cut_off.append(last.start)
    pending = last if last and not last.ended and last.end == len(text) else None
    # What is open stands in its order.
    unclosed = sorted((*stack.dropped, *stack.open)) if stack.dropped else stack.open
    return Pairing(tuple(pairs), tuple(unopened), tuple(unclosed), pending, tuple(cut_off))


def outside_of_all(
    text: str, language: str, places: Iterable[int], open_before: tuple[Bracket, ...] = (), context: str = ""
) -> Iterator[int]:
    """The places, in order, that are in no bracket, string or comment. `open_before`: brackets open at the end of
    `context`, the text before."""
    stack = _Stack(open_before)
    coming = lexemes(text, language, context)
    lexeme = next(coming, None)
    for place in places:
        while lexeme and lexeme.end <= place:
            if lexeme.kind == "open":
                stack.push(Bracket(lexeme.start, lexeme.closer))
            elif lexeme.kind == "close":
                stack.close(text[lexeme.start])
            lexeme = next(coming, None)
        if not (stack.open or stack.dropped or (lexeme and lexeme.start < place)):
            yield place


# The fills of a gap are all asked about the text before it.
@lru_cache(maxsize=2)
def statement_start(text: str, language: str) -> int:
    """The beginning of the line in which a text's last statement begins, as brackets may span lines; 0 if a bracket was
    never opened."""
    pairing = pair(text, language)
    start = line_start(text, len(text))
    for bracket, closed in sorted(pairing.pairs, key=lambda each: -each[1]):
        if closed < start:
            break
        if bracket.start < start:
            start = line_start(text, bracket.start)
    return 0 if any(at >= start for at in pairing.unopened) else start


def indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


_REACH = 16_000
"""Characters on either side of a gap that are searched for brackets."""
_FAR_REACH = 120_000
"""Characters before a gap in which a beginning is searched."""
_TOP_LEVEL = re.compile(
    r"^(?:\}|(?:(?:export|default|public|static|async|pub)[ \t]++)*+"
    r"(?:def|class|function|func|fn|import|from|const|let|var|type|struct|impl|interface|namespace|package|use)\b)",
    re.MULTILINE,
)


def brackets_near(before: str, after: str, language: str) -> Brackets:
    """The brackets of the text near a gap; those further away rarely matter."""
    if len(before) <= _REACH:
        return Brackets(before, after[:_REACH], language)
    return Brackets(before[_beginning(before) :], after[:_REACH], language, cut=True)


def _beginning(before: str) -> int:
    """Where to start reading a long text: at the first top-level line within reach, else at the last one before that,
    as a place in the middle of a long class may lie in a string."""
    low, near = max(0, len(before) - _FAR_REACH), len(before) - _REACH
    last = low
    for found in _TOP_LEVEL.finditer(before, low):
        last = found.start()
        if last >= near:
            break
    return last


# Who checks a fill, cuts it and mends it asks about one gap.
@lru_cache(maxsize=2)
def _paired(before: str, language: str) -> tuple[Pairing, _Stack]:
    """The brackets of the text before a gap, and those that it leaves open, by offsets from its end."""
    pairing, size = pair(before, language), len(before)
    return pairing, _Stack(tuple(Bracket(start - size, closer) for start, closer in pairing.unclosed))


@dataclass(frozen=True)
class Brackets:
    """The brackets around a gap; none in a language that `lexing` does not know."""

    before: str
    after: str
    language: str
    cut: bool = False
    """Whether text before `before` is left out: it may open braces that `after` closes."""

    @cached_property
    def at_gap(self) -> Pairing:
        """Everything before the gap."""
        return _paired(self.before, self.language)[0]

    @cached_property
    def head(self) -> str:
        """The beginning of the string or comment that the gap lies in."""
        pending = self.at_gap.pending
        return self.before[pending.start :] if pending else ""

    @cached_property
    def context(self) -> str:
        """The end of the text before `head`, long enough to tell how that or a fill begins."""
        end = len(self.before) - len(self.head)
        return self.before[max(0, end - CONTEXT_CHARS) : end]

    @property
    def depth(self) -> int:
        """Characters from the outermost bracket or string around the gap to the gap; 0 outside of any."""
        starts = [bracket.start for bracket in self.at_gap.unclosed]
        starts += [self.at_gap.pending.start] if self.at_gap.pending else []
        return len(self.before) - min(starts, default=len(self.before))

    @cached_property
    def unclosed(self) -> tuple[Bracket, ...]:
        """Brackets open at the gap that the text after it does not close, outermost first; offsets into `before`, from
        its end."""
        return tuple(bracket for bracket in self._without_fill.unclosed if bracket.start < 0)

    @property
    def closers(self) -> str:
        """The closers of `unclosed`."""
        return "".join(bracket.closer for bracket in reversed(self.unclosed))

    @property
    def openers(self) -> str:
        """The openers of brackets that the text after the gap closes too often."""
        text = self.head + self.after
        closers = [text[at] for at in self._without_fill.unopened if not self._may_be_open(text[at])]
        return "".join(OPENER[closer] for closer in reversed(closers))

    def excess(self, fill: str) -> int | None:
        """Offset in `fill` of the first closer without an opener, or with one that the text after the gap closes.

        The policy "never close more than is open before the text after the gap closes it"; a fill that opens again
        what it closed (`a), (b`) is fine.
        """
        if self._keeps_all(fill):
            return None
        pairing, shift = self._with(fill)
        end = shift + len(fill)
        if self._surplus(pairing, fill) <= self._surplus(self._without_fill, ""):
            return None
        needed = {bracket for bracket, _ in self._without_fill.pairs if bracket.start < 0}
        early = [at for bracket, at in pairing.pairs if bracket in needed and at < end]
        culprits = [at - shift for at in (*pairing.unopened, *early) if shift <= at < end]
        return min(culprits, default=None)

    def closed_by(self, fill: str) -> str:
        """The closers of the string and brackets around the gap, innermost first, that the fill has itself."""
        pending, closers, fill_end = self.at_gap.pending, "", len(self.head) + len(fill)
        if pending:
            pending = next(lexemes(self.head + fill, self.language, self.context), pending)
            if not pending.ended:
                return ""
            closers = pending.closer.strip()
        closed = {bracket.start for bracket, at in self._with(fill)[0].pairs if at < fill_end}
        for bracket in reversed(self.at_gap.unclosed):
            if bracket.start - len(self.before) not in closed:
                break
            closers += bracket.closer
        return closers

    def left_open(self, fill: str) -> tuple[int, ...]:
        """Offsets in `fill` of the brackets that it opens and nothing closes. If a bracket took the closer of another,
        the offset is the other's."""
        if self._keeps_all(fill):
            return ()
        pairing, shift = self._with(fill)
        if len(pairing.unclosed) <= len(self._without_fill.unclosed):
            return ()
        end = shift + len(fill)
        unclosed = [bracket.start - shift for bracket in pairing.unclosed if shift <= bracket.start < end]
        late = [bracket.start - shift for bracket, at in pairing.pairs if shift <= bracket.start < end <= at]
        return tuple(unclosed or late)

    def still_open(self, fill: str) -> str:
        """The closers of brackets open at the gap that neither the fill nor the text after it closes."""
        pairing, shift = self._with(fill)
        return "".join(bracket.closer for bracket in reversed(pairing.unclosed) if bracket.start < shift)

    def cut_off(self, fill: str) -> tuple[int, ...]:
        """Offsets in `fill` of quotes that begin a string without an end, if there are more of these than without the
        fill."""
        if self._keeps_all(fill):
            return ()
        pairing, shift = self._with(fill)
        if len(pairing.cut_off) <= len(self._without_fill.cut_off):
            return ()
        return tuple(at - shift for at in pairing.cut_off if shift <= at < shift + len(fill))

    def all_pair(self, fill: str) -> bool:
        """Whether each bracket near the gap has its partner."""
        pairing, _ = self._with(fill)
        return not pairing.unclosed and not self._surplus(pairing, fill)

    def _surplus(self, pairing: Pairing, fill: str) -> int:
        """The number of closers that can have no opener."""
        text = self.head + fill + self.after
        return sum(not self._may_be_open(text[at]) for at in pairing.unopened)

    def _may_be_open(self, closer: str) -> bool:
        """Whether the text that is left out may have the opener."""
        return self.cut and closer == "}"

    def _keeps_all(self, fill: str) -> bool:
        """Whether a fill changes no bracket of the text after the gap."""
        pairing = pair(fill, self.language, context=self.context)
        return not (self.head or pairing.unopened or pairing.unclosed or pairing.pending or pairing.cut_off)

    @cached_property
    def _open(self) -> _Stack:
        return _paired(self.before, self.language)[1]

    @cached_property
    def _without_fill(self) -> Pairing:
        return self._with("")[0]

    def _with(self, fill: str) -> tuple[Pairing, int]:
        """The brackets from the gap on, and the beginning of the fill in that text."""
        if fill not in self._seen:
            self._seen[fill] = pair(self.head + fill + self.after, self.language, self._open, self.context)
        return self._seen[fill], len(self.head)

    @cached_property
    def _seen(self) -> dict[str, Pairing]:
        """The brackets of a fill, kept because several questions need them."""
        return {}
