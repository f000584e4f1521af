"""Candidates for one missing token: what it is and where it goes, likeliest first.

As in a parser's error recovery, they are near the error; brackets and strings that don't pair show what kind of token
is missing. Nothing is tried here: a parser decides.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice, pairwise

from engine.common.analysis import SyntaxErrorRegion
from engine.syntax.brackets import indentation, pair
from engine.syntax.languages import GRAMMARS, Grammar
from engine.syntax.lexing import OPENER, PARTNER, lexemes
from engine.syntax.parsed_text import ParsedText

_TOKEN = re.compile(r"\w+|[^\w\s]")
_WORD = re.compile(r"\w+")
_REACH = 60
"""Lines between a bracket and its partner at most."""
_LONGEST = 400
"""Most lines of a string."""
_SUSPECTS = 3
"""Brackets of a kind that may be the unpaired ones."""
_SPOTS = 6
"""Spots of an error region whose lines are searched."""
_OPENERS, _CLOSERS = "".join(PARTNER), "".join(OPENER)
_PREFIXES = re.compile(r"(?i:[rbfu]|rb|br|fr|rf)\Z")
"""Prefixes of a string's quote."""
_MOST = 20_000
"""Most candidates: a file may be one long line, or all brackets."""
_RUN = 100
"""Most equal characters in a row."""
_WORD_CHARS = 80
"""Most characters of a word that may be two words with something missing in between."""
_SURPLUS = 3.0
"""Cost of taking a bracket away."""
_OUTSIDE = 4.0
"""Cost of closing a bracket in the middle of a line that seems complete."""
_NEVER = 99.0
"""Cost of a token that nobody would leave out."""
_CONTRACTED = re.compile(r"(?<=\w)'(?=(?:s|t|m|d|re|ve|ll)\b)")
_HEADS = {"if": "; then", "elif": "; then", "for": "; do", "while": "; do", "until": "; do"}
"""The ends of a shell's heads."""
_VALUES = frozenset(("false", "nil", "none", "null", "self", "super", "this", "true", "undefined"))
"""Words that are values. Where one completes a line, another token may be the missing one."""
LEAST_LIKELY = 9.0
"""Highest cost of a candidate that is tried."""
WORTH = 3.5
"""Highest cost beyond that of a candidate that helps."""


@dataclass(frozen=True, slots=True, order=True)
class Insertion:
    """`text` stands at the offset `at`."""

    cost: float
    """How unlikely it is, in nats, compared with other candidates."""
    at: int
    text: str
    removed: int = 0
    """Characters that are replaced: of a bracket that closes nothing, which may be one too many."""


def insertions(text: ParsedText, region: SyntaxErrorRegion) -> list[Insertion]:
    """All candidates near an error region, likeliest first, without repetition."""
    if old := text.outdated:
        return [] if old.new is None else [Insertion(0.0, old.start, old.new, old.end - old.start)]
    near = _Near(text, region)
    thought = map(near.with_line_end, islice(near.all(), _MOST))
    best: dict[tuple[int, str, int], Insertion] = {}
    for each in sorted(each for each in thought if each.cost <= LEAST_LIKELY):
        at, said = each.at, each.text
        # A token beside its like, or a blank beside another, is the same text on either side of it.
        while said[:1] == text.tree.text[at : at + 1] != "" and at - each.at < _RUN:
            at, said = at + 1, said[1:] + said[0]
        best.setdefault((at, said, each.removed), each)
    return list(best.values())


@dataclass(frozen=True, slots=True)
class _Slot:
    """A place between two tokens of a line, or at its edges."""

    at: int
    line: int
    before: str
    """The token before it, or blank."""
    after: str
    """The token after it, or blank; a line feed at the end of the line's code."""
    first: bool = False
    """Whether only blanks precede it in its line."""
    split: bool = False
    """Whether it is inside a word."""


class _Near:
    """Searches near one error region."""

    def __init__(self, text: ParsedText, region: SyntaxErrorRegion) -> None:
        self._source, self._language = text.tree.text, text.tree.language
        self._grammar = GRAMMARS.get(self._language, Grammar(name=self._language))
        self._region = region
        self._lines = self._source.split("\n")
        self._starts = [0, *accumulate(len(line) + 1 for line in self._lines)]
        self._pairing = pair(self._source, self._language)
        self._opaque = [each for each in lexemes(self._source, self._language) if each.kind in ("string", "comment")]
        self._ended = [each for each in self._opaque if each.ended]
        self._ends = [each.end for each in self._ended]
        self._words = frozenset(_WORD.findall(self._source))

    def all(self) -> Iterator[Insertion]:
        """All candidates, unordered."""
        unpaired = 0
        for each in (*self._quotes(), *self._closers(), *self._openers(), *self._interpolations()):
            unpaired += 1
            yield each
        if self._pairing.pending:
            # What follows is taken for what it is not.
            return
        if not self._grammar.lexes:
            yield from self._unlexed()
        yield from (*self._heads(), *self._block_ends())
        handicap = 4.0 if unpaired else 0.0
        for place in self._places(self._window()):
            away = handicap + self._away(place.at)
            if self._grammar.lexes or not self._grammar.ends:
                yield Insertion(away + self._colon(place), place.at, ":")
                yield Insertion(away + self._comma(place), place.at, ",")
            yield from self._keywords(place, away)

    def with_line_end(self, each: Insertion) -> Insertion:
        """A new last line ends as the one before it."""
        last = each.text and each.at == len(self._source) and self._source[-1] == "\n"
        return replace(each, text=each.text + "\n") if last else each

    # Where to look

    def _line_of(self, at: int) -> int:
        return bisect_right(self._starts, at) - 1

    def _window(self) -> list[int]:
        """The lines to search: of the error region, of its likeliest spots, and those with code before them, as an
        error may show a line later."""
        region = self._region
        lines = {*range(self._line_of(region.start), self._line_of(region.end) + 1)}
        lines |= {self._line_of(spot) for spot in region.spots[:_SPOTS]}
        for line in [*lines]:
            lines |= {above for above in range(line - 1, max(-1, line - 4), -1) if self._lines[above].strip()}
        return sorted(lines)

    def _away(self, at: int) -> float:
        """The distance of a place from the error."""
        line = self._line_of(at)
        spots = self._region.spots[:_SPOTS] or (self._region.start,)
        return min(0.1 * rank + self._apart(at, line, spot) for rank, spot in enumerate(spots))

    def _apart(self, at: int, line: int, spot: int) -> float:
        """Costs by distance: an error shows where it is or later, seldom before."""
        lines = self._line_of(spot) - line
        if lines:
            return lines + 0.5 if lines > 0 else 2.5 - lines
        return (spot - at) / 20 if at <= spot else 0.5 + (at - spot) / 10

    def _places(self, lines: Iterable[int], *, inside: bool = False) -> Iterator[_Slot]:
        """The slots of some lines; those in strings and comments only if `inside`."""
        for line in lines:
            for place in self._places_of(line):
                index = bisect_right(self._ends, place.at)
                if inside or index == len(self._ended) or place.at <= self._ended[index].start:
                    yield place

    def _places_of(self, line: int) -> Iterator[_Slot]:
        start, said = self._starts[line], self._lines[line].rstrip("\r")
        tokens = list(_TOKEN.finditer(said))
        if not tokens:
            yield _Slot(start + len(said), line, "", "\n", first=True)
            return
        if tokens[0].start():
            yield _Slot(start + tokens[0].start() - 1, line, "", "", first=True)
        for index, token in enumerate(tokens):
            before = tokens[index - 1] if index else None
            first, last = start + token.start(), start + token.end()
            if before is None or before.end() < token.start():
                yield _Slot(first, line, "", token[0], first=before is None)
            if before and token.start() - before.end() > 1:
                yield _Slot(start + before.end() + 1, line, "", "")
            for at in range(first + 1, last) if last - first <= _WORD_CHARS else ():
                yield _Slot(at, line, token[0][: at - first], token[0][at - first :], split=True)
            following = tokens[index + 1] if index + 1 < len(tokens) else None
            touching = following is not None and following.start() == token.end()
            if touching and following and following[0] in "\"'" and _PREFIXES.match(token[0]):
                # A string's prefix and its quote are one token.
                continue
            ends = following is None and last == start + len(said)
            yield _Slot(last, line, token[0], following[0] if touching and following else "\n" if ends else "")
        if said[-1:].isspace():
            yield _Slot(start + len(said), line, "", "\n")

    # What may be there

    def _quotes(self) -> Iterator[Insertion]:
        pending = self._pairing.pending
        for start in self._pairing.cut_off:
            line = self._line_of(start)
            if abs(line - self._line_of(self._region.start)) <= 2:
                quote = next(each.closer for each in self._opaque if each.start == start)
                for place in self._places([line], inside=True):
                    yield Insertion(self._quote(place), place.at, quote)
                for found in _CONTRACTED.finditer(self._lines[line]):
                    yield Insertion(0.0, self._starts[line] + found.start(), "\\")
        if pending and pending.kind == "string":
            yield from self._across_lines(pending.closer)

    def _interpolations(self) -> Iterator[Insertion]:
        """Ends of code in a string."""
        lines = self._window()
        for each in self._ended:
            said = self._source[each.start : each.end]
            line = self._line_of(each.start)
            if each.kind == "string" and line in lines and said.count("{") > said.count("}"):
                opener = each.start + said.rfind("{")
                places = self._places([self._line_of(opener)], inside=True)
                yield from (_in_text(place, "}") for place in places if opener < place.at < each.end)

    def _unlexed(self) -> Iterator[Insertion]:
        """Quotes and brackets without a partner in their line, where strings can't be told from code."""
        for line in self._window():
            said = self._lines[line]
            for mark in "\"'":
                quotes = [*re.finditer(rf"(?<!\\){mark}", said)]
                for place in self._places([line]) if len(quotes) % 2 else ():
                    at = place.at - self._starts[line] - quotes[-1].start()
                    if at > 0:
                        yield _in_text(place, mark)
                    elif not re.match(r"(?<!\w).\S", said[quotes[-1].start() - 1 :]):
                        yield Insertion(self._quote(place), place.at, mark)
            for opener, closer in PARTNER.items():
                if said.count(opener) > said.count(closer):
                    last = self._starts[line] + said.rfind(opener)
                    yield from (_in_text(place, closer) for place in self._places([line]) if place.at > last)

    def _across_lines(self, quote: str) -> Iterator[Insertion]:
        """Places where strings of several lines may begin or end. One quote too few swaps text and code in the rest of
        the file, so the shortest string with code on either side is meant."""
        spans = [(each.start, each.end - len(quote)) for each in self._opaque if each.closer == quote]
        # The last is open to the end of the text.
        quotes = [at for span in spans for at in span][:-1]
        ends = [0, *quotes, len(self._source)]
        looks = [self._looks(at, at + len(quote)) for at in quotes]
        misplaced = _misplaced(looks)
        least = min(misplaced)
        for index, (low, high) in enumerate(pairwise(ends)):
            closes = index % 2 == 1
            partner = self._line_of(low if closes else high)
            away = min(
                abs(partner - self._line_of(spot)) for spot in (*self._region.spots[:_SPOTS], self._region.start)
            )
            odd = misplaced[index] - least + min(1.0, 0.002 * away)
            margin = indentation(self._lines[partner])
            first, last = max(self._line_of(low), partner - _LONGEST), min(self._line_of(high), partner + _LONGEST)
            for place in self._places(range(first, last + 1), inside=True):
                if low + len(quote) * bool(index) <= place.at <= high:
                    lines = abs(place.line - partner)
                    cost = self._end(place, margin, lines) if closes else self._beginning(place)
                    yield Insertion(cost + (0.02 if len(quote) > 1 else 1.0) * lines + odd, place.at, quote)
        if len(quote) == 3:
            for found in re.finditer(rf"(?<!{quote[0]}){quote[:2]}(?!{quote[0]})", self._source):
                yield Insertion(1.0, found.end(), quote[0])

    def _looks(self, start: int, end: int) -> str:
        """Whether a quote looks like the beginning or the end of a string."""
        line = self._line_of(start)
        before, after = (
            self._source[self._starts[line] : start].strip(),
            self._source[end : self._starts[line + 1]].strip(),
        )
        if before and not before[-1].isspace() and before[-1] not in "=(,[{" and not _PREFIXES.match(before):
            return "end" if not after or after[0] in _CLOSERS + ",.:" else ""
        if after:
            return "beginning" if after[0].isalnum() else ""
        above = next((said.rstrip() for said in reversed(self._lines[:line]) if said.strip()), ":")
        return "beginning" if above.endswith((":", "(", "=")) else "end" if not before else ""

    def _end(self, place: _Slot, margin: int, lines: int) -> float:
        """The closing quote of a string of several lines."""
        if place.split:
            return _NEVER
        if not self._lines[place.line].strip():
            return 0.0 if place.at - self._starts[place.line] == margin else 2.0
        if place.after == "\n":
            return 0.3 if lines == 0 else 1.0
        return 2.0 if place.before else 4.0

    def _beginning(self, place: _Slot) -> float:
        """The opening quote of a string of several lines."""
        if place.split:
            return 1.0 if _PREFIXES.match(place.before) else _NEVER
        if place.first:
            above = next((line.rstrip() for line in reversed(self._lines[: place.line]) if line.strip()), ":")
            return 0.0 if above.endswith((":", "(", "=", ",")) else 1.5
        return 1.0 if place.before in tuple("=(,[{") else 2.0

    def _quote(self, place: _Slot) -> float:
        if place.split:
            return 1.0 if _PREFIXES.match(place.before) else _NEVER
        if place.after == "\n":
            return 1.0
        if place.before and place.after in (")", "]", "}", ",", ":", ";"):
            return 0.5
        if not place.before and place.after:
            return 0.5
        return 1.5 if place.before and place.after else 2.0

    def _closers(self) -> Iterator[Insertion]:
        """Closers of brackets that stay open too long."""
        for opener, closer in self._suspects():
            first = self._line_of(opener)
            margin = indentation(self._lines[first])
            for line in range(first, min(first + _REACH, len(self._lines))):
                is_outside = line > first and self._is_outside(line, margin)
                for place in self._places([line]):
                    if place.at > opener:
                        cost = self._closer(place, margin) + 0.05 * (line - first)
                        yield Insertion(cost + _OUTSIDE * (is_outside and not place.first), place.at, closer)
                if is_outside:
                    break

    def _suspects(self) -> list[tuple[int, str]]:
        """Brackets that may lack their partner, and their closers."""
        last = self._region.end
        unclosed = [(each.start, each.closer) for each in self._pairing.unclosed if each.start <= last]
        # A partner that begins a line and is not indented as its bracket's line is belongs to another one.
        crooked = [
            (bracket.start, bracket.closer)
            for bracket, end in self._pairing.pairs
            if unclosed and bracket.start > unclosed[0][0] and self._is_crooked(bracket.start, end)
        ]
        return [*unclosed[-_SUSPECTS:], *sorted(crooked)[-_SUSPECTS:]]

    def _is_crooked(self, start: int, end: int) -> bool:
        opening, closing = self._lines[self._line_of(start)], self._lines[self._line_of(end)]
        begins = closing.lstrip().startswith((*_CLOSERS,)) and self._line_of(start) < self._line_of(end)
        return begins and indentation(opening) != indentation(closing)

    def _is_outside(self, line: int, margin: int) -> bool:
        """Whether a bracket opened in a line above is closed before this one, judged by indentation."""
        said = self._lines[line]
        return bool(said.strip()) and indentation(said) <= margin and said.lstrip()[0] not in _CLOSERS

    def _closer(self, place: _Slot, margin: int) -> float:
        if place.split:
            return _NEVER
        if place.first:
            said = self._lines[place.line].rstrip("\r")
            blank = place.at - self._starts[place.line]
            if not said.strip():
                return 0.0 if blank == margin else 3.0
            return 1.0 if blank == margin else 4.0
        if not place.before:
            return 4.0
        cost = 2.0 if place.before in _OPENERS + "," else 0.0
        if place.after == "\n" or (place.after == ":" and self._ends_line(place.at + 1)):
            return cost
        if place.after in _CLOSERS or not place.after:
            return cost + 1.0
        return cost + (1.0 if place.after in ",;:." else 3.0)

    def _ends_line(self, at: int) -> bool:
        rest = self._lines[self._line_of(at)][at - self._starts[self._line_of(at)] :].strip()
        return not rest or rest.startswith(("#", "//"))

    def _openers(self) -> Iterator[Insertion]:
        """Openers of brackets that are closed too often."""
        for closed in sorted(self._pairing.unopened, key=lambda at: abs(at - self._region.start))[:_SUSPECTS]:
            opener = OPENER[self._source[closed]]
            yield Insertion(_SURPLUS, closed, "", 1)
            last = self._line_of(closed)
            for line in range(self._beginning_of(last), last + 1):
                for place in self._places([line]):
                    if place.at <= closed:
                        yield Insertion(self._opener(place) + 0.05 * (last - line), place.at, opener)

    def _beginning_of(self, last: int) -> int:
        """The line with which a statement begins that ends in the line `last`, judged by indentation."""
        margin = indentation(self._lines[last])
        closes = self._lines[last].lstrip().startswith((*_CLOSERS,))
        for line in range(last - 1, max(-1, last - _REACH), -1):
            said = self._lines[line]
            if said.strip() and (indentation(said) < max(1, margin) or (closes and indentation(said) <= margin)):
                return line
        return max(0, last - _REACH)

    def _opener(self, place: _Slot) -> float:
        if place.split:
            return 4.0 - 1.5 * ((place.before in self._words) + (place.after in self._words))
        if place.after in ("", "\n"):
            return 3.0 if place.after == "" else 1.0
        if place.after in _CLOSERS:
            return 2.5
        return 0.5 if place.before else 1.0

    def _block_ends(self) -> Iterator[Insertion]:
        """Words that end blocks, on lines of their own."""
        words = self._grammar.ends.split()
        first, last = self._line_of(self._region.start), self._line_of(self._region.end)
        for line in range(max(0, first - _REACH), min(last + _REACH, len(self._lines))) if words else ():
            said = self._lines[line].rstrip("\r")
            if not said.strip():
                above = self._lines[:line]
                header = next((one for one in reversed(above) if one.strip() and indentation(one) <= len(said)), "")
                fits = indentation(header) == len(said) and header.strip() not in words
                cost = (0.0 if fits else 3.0) + 0.02 * abs(line - first)
                yield from (Insertion(cost, self._starts[line] + len(said), word) for word in words)

    def _heads(self) -> Iterator[Insertion]:
        """Ends of the heads of blocks in a shell."""
        for line in self._window() if "fi" in self._grammar.ends.split() else ():
            said = self._lines[line].rstrip()
            end = _HEADS.get((said.split() or [""])[0])
            if end and not said.endswith(end.split()[1]):
                # The semicolon may be there.
                yield Insertion(
                    0.5 + self._away(self._starts[line]), self._starts[line] + len(said), end[said.endswith(";") :]
                )

    def _colon(self, place: _Slot) -> float:
        if place.split:
            return self._halves(place)
        if not place.before:
            return 5.0
        return 0.0 if self._ends_line(place.at) else 1.5

    def _comma(self, place: _Slot) -> float:
        if place.split:
            return 1.0 + self._halves(place)
        if not place.before or place.before in _OPENERS + ",":
            return 5.0
        return 0.0 if place.after in ("", "\n") else 1.0

    def _halves(self, place: _Slot) -> float:
        """The halves of a word around a missing mark."""
        return 5.0 if {place.before, place.after} <= self._words else _NEVER

    def _keywords(self, place: _Slot, away: float) -> Iterator[Insertion]:
        """Keywords, with the blanks that they need."""
        if place.split:
            return
        before, after = self._source[place.at - 1 : place.at], self._source[place.at : place.at + 1]
        doubled = before.isspace() and after in (" ", "\t")
        lead = " " if before and not before.isspace() else ""
        trail = " " if after.isalnum() or after in tuple("_\"'([{") else ""
        cost = 1.0 if doubled or (place.first and not trail) else 2.5 + len(lead)
        lead = " " if before.isalnum() or before in tuple("_)]}") else ""
        ends = self._grammar.ends.split()
        words = (word for word in self._grammar.keywords.split() if word.lower() not in _VALUES)
        for word in dict.fromkeys((*words, *ends)):
            # A block ends in the middle of a line only where it was written on that line.
            least = cost if word not in ends else _NEVER if place.first and trail else 6.0
            yield Insertion(away + least, place.at, lead + word + trail)


def _in_text(place: _Slot, closer: str) -> Insertion:
    """A closer in a string, or where strings can't be told from code: it ends a value."""
    if place.split or not place.before or place.before in _OPENERS:
        return Insertion(_NEVER if place.split else 3.0, place.at, closer)
    return Insertion(0.0 if place.after in ("", "\n", *"\"'`", *_CLOSERS) else 1.0, place.at, closer)


def _misplaced(looks: Sequence[str]) -> list[int]:
    """For each quote, and for the end: the number of quotes on the wrong side if one more came before it, that is,
    beginnings that look like ends and vice versa."""
    as_it_is = [look == ("beginning" if at % 2 else "end") for at, look in enumerate(looks)]
    turned = [look == ("end" if at % 2 else "beginning") for at, look in enumerate(looks)]
    after = [*accumulate(reversed(turned), initial=0)][::-1]
    return [head + tail for head, tail in zip(accumulate(as_it_is, initial=0), after, strict=True)]
