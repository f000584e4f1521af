"""Workspace matches: text from places whose surroundings are like the gap's, with its names adapted to the gap.

Tokens are compared outward from a place on both sides. Equal tokens count; a different name counts less, and is
replaced by the gap's name from there on.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from dg_lsp.workspace.cursor_line import holds_lines, indent_of
from dg_lsp.workspace.text_index import (
    AFTER,
    BEFORE,
    REACH_LINES,
    IndexQuery,
    Place,
    Surroundings,
    TextIndex,
    is_name_token,
    last_place,
    places_like,
)
from engine.common.names import is_name_character

READ = 4
"""Places that are read for a gap, the likeliest ones by their lines."""
OFFSETS = 2
"""Places tried in one line."""
MAX_TOKENS = 64
LEFT_TOKENS, RIGHT_TOKENS = 16, 12
EQUAL, EQUAL_NAME, OTHER_NAME, CONTRADICTED, FARTHER = 1.0, 1.5, 0.4, -0.2, -0.02
_AROUND_CHARS = 1500
_LEFT_CHARS, _RIGHT_CHARS = 120, 480
_AFTER_LINE = 3
"""Lines that have to agree after a gap that ends on its line."""
_PIECE = re.compile(r"[ \t]*(?:\w+|\n\s*|\S)")
"""A token and the space before it; line breaks and the indent after them are one token."""
_BREAK = ""
"""The token of line breaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """A workspace match and its place: the text's name, and the line's number from 1."""

    text: str
    name: str
    number: int
    score: float
    """Higher for more tokens around that are like the gap's; lower for a long text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Anchor:
    """A place before the gap, where comparing starts."""

    is_inside: bool
    """Whether it is after the start of the gap's line."""
    left: Sequence[str]
    """Tokens before it, the nearest first."""
    typed: Sequence[str]
    """Tokens between it and the gap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _GapTokens:
    """A gap and the text around it, as tokens to compare with other places."""

    around: Surroundings
    starts: Sequence[_Anchor]
    """Where comparing starts: at the last place on the gap's line, if there is one, and at the line's start."""
    is_begun: bool
    """Whether the last typed token may continue in the gap."""
    right: Sequence[str]
    single_line: bool
    is_line: bool
    """Whether the gap holds whole lines, with their indent and the last line break."""
    is_apart: bool
    """Whether there is a space before the gap."""
    is_apart_after: bool


def look_up(
    indexes: Iterable[TextIndex],
    name: str,
    prefix: str,
    suffix: str,
    *,
    number: int = 0,
    single_line: bool = False,
    within_s: float = math.inf,
) -> list[Occurrence]:
    """Code from other places between a similar prefix and suffix, the likeliest first.

    `name`: the gap's document; `number`: the gap's line there, from 1, which is not a match for itself. `within_s`:
    seconds of this thread's time; a further place is read only if as much time as the previous one took is left.
    """
    began_s = at_s = time.thread_time()
    gap = _gap(name, prefix, suffix, single_line=single_line)
    # The last line that is the gap's own.
    end = number + suffix[: len(suffix) - len(suffix.lstrip())].count("\n")
    seen = list[Occurrence]()
    sought = IndexQuery.of(gap.around)
    ranked = [(score, line, index) for index in indexes for score, line in index.nearest(sought)]
    ranked.sort(key=itemgetter(0), reverse=True)
    for rank, (_, line, index) in enumerate(ranked[:READ]):
        before_s, at_s = at_s, time.thread_time()
        if rank and 2 * at_s - before_s - began_s > within_s:
            break
        place = index.place(line, _AFTER_LINE if single_line else REACH_LINES)
        for found in _found_at(gap, place) if place else ():
            if name == found.name and found.number <= end and number <= found.number + found.text.count("\n"):
                continue
            seen.append(found)
    return likeliest(seen)


def likeliest(found: Iterable[Occurrence]) -> list[Occurrence]:
    """Best first, each text once."""
    best = dict[str, Occurrence]()
    for each in sorted(found, key=lambda each: -each.score):
        best.setdefault(each.text, each)
    return [*best.values()]


def _gap(name: str, prefix: str, suffix: str, *, single_line: bool) -> _GapTokens:
    prefix, suffix = prefix[-_AROUND_CHARS:], suffix[:_AROUND_CHARS]
    above, _, head = prefix.rpartition("\n")
    is_line = holds_lines(head, suffix)
    inside = last_place(head)
    before = [line for line in reversed(above.split("\n")) if line and not line.isspace()]
    below = suffix.split("\n")[0 if is_line else 1 :]
    after = [line for line in below if line and not line.isspace()]
    starts = [_start(above, head, len(head) - len(head.lstrip()), is_inside=False)]
    if inside is not None:
        starts.insert(0, _start(above, head, inside, is_inside=True))
    right = ("\n" + suffix if is_line else suffix)[:_LEFT_CHARS]
    return _GapTokens(
        around=Surroundings(name=name, before=before[:BEFORE], head=head, after=after[:AFTER]),
        starts=starts,
        is_begun=is_name_character(head[-1:]),
        right=_tokens(_PIECE.findall(right)[:RIGHT_TOKENS]) or [_BREAK],
        single_line=single_line,
        is_line=is_line,
        is_apart=head[-1:].isspace(),
        is_apart_after=suffix[:1].isspace() or not suffix,
    )


def _start(above: str, head: str, at: int, *, is_inside: bool) -> _Anchor:
    return _Anchor(
        is_inside=is_inside,
        left=_tokens(_PIECE.findall(f"{above}\n{head[:at]}"[-_LEFT_CHARS:])[: -LEFT_TOKENS - 1 : -1]),
        typed=_tokens(_PIECE.findall(head[at:])),
    )


def _found_at(gap: _GapTokens, place: Place) -> Iterator[Occurrence]:
    for start in gap.starts:
        line_start = len(place.line) - len(place.line.lstrip())
        offsets = places_like(gap.around.head, place.line)[:OFFSETS] if start.is_inside else [line_start]
        for at in offsets:
            right = _RIGHT_CHARS
            if gap.single_line:
                # The gap ends on this line, and what has to agree follows at once.
                right = min(right, len(place.line) - at + _LEFT_CHARS)
            pieces = _PIECE.findall(f"{place.line[at:]}{place.after}"[:right])
            tokens = [*_tokens(pieces), _BREAK]
            if not _may_begin(start, tokens[0]):
                continue
            names = dict[str, str]()
            left = f"{place.before}{place.line[:at]}"[-_LEFT_CHARS:]
            score = _agreement(_tokens(_PIECE.findall(left)[: -LEFT_TOKENS - 1 : -1]), start.left, names, names)
            typed = _typed(start, tokens, names, is_begun=gap.is_begun)
            begin = len(start.typed)
            ended = typed and _end(gap, tokens, begin, names)
            if not typed or not ended:
                continue
            text = _text(gap, place, at, typed[1], pieces[begin : ended[1] + 1], names | ended[2])
            if text.strip():
                yield Occurrence(text=text, name=place.name, number=place.number, score=score + typed[0] + ended[0])
        if offsets:
            # The line's start would give the same again.
            return


def _text(gap: _GapTokens, place: Place, at: int, rest: str, pieces: list[str], names: dict[str, str]) -> str:
    """The pieces as text for the gap; the last piece comes after it. `rest`: the rest of the name that was begun."""
    indent, other = _indents(gap, place)
    made = [rest]
    if not gap.around.head.strip() and (gap.is_line or not place.line[:at].strip()):
        made.append(indent.removeprefix(gap.around.head))
    for number, piece in enumerate(pieces[:-1]):
        token = piece.strip()
        if not token:
            made.append(_moved(piece.lstrip(" \t"), other, indent))
            continue
        space = "" if number == 0 and gap.is_apart else piece[: len(piece) - len(token)]
        made.append(space + names.get(token, token))
    if pieces and not gap.is_apart_after:
        made.append(pieces[-1][: len(pieces[-1]) - len(pieces[-1].lstrip(" \t"))])
    if gap.is_line:
        made.append("\n")
    return "".join(made)


def _may_begin(start: _Anchor, token: str) -> bool:
    """Whether what was typed may begin with this token."""
    if not start.typed:
        return True
    typed = start.typed[0]
    return token == typed or is_name_token(token) or (len(start.typed) == 1 and token.startswith(typed))


def _typed(start: _Anchor, tokens: Sequence[str], names: dict[str, str], *, is_begun: bool) -> tuple[float, str] | None:
    """The score of the typed tokens, and the rest of the last name; None: they do not fit."""
    score, rest = 0.0, ""
    for number, (typed, token) in enumerate(zip(start.typed, tokens, strict=False), 1):
        if number == len(start.typed) and is_begun:
            wanted = names.get(token, token)
            if not wanted.startswith(typed):
                return None
            rest = wanted[len(typed) :]
            score += EQUAL
        elif token == typed:
            score += EQUAL_NAME if is_name_token(token) else EQUAL
        elif is_name_token(token) and is_name_token(typed) and names.setdefault(token, typed) == typed:
            score += OTHER_NAME
        else:
            return None
    return (score, rest) if len(tokens) > len(start.typed) else None


def _end(
    gap: _GapTokens, tokens: Sequence[str], begin: int, names: dict[str, str]
) -> tuple[float, int, dict[str, str]] | None:
    """The likeliest end from `begin` on: its score, its index, and the names learned after it."""
    best = None
    wanted = gap.right[0]
    may_differ = is_name_token(wanted)
    for end in range(begin, min(begin + MAX_TOKENS, len(tokens))):
        token = tokens[end]
        if token == wanted or (may_differ and is_name_token(token)):
            learned = dict[str, str]()
            score = _agreement(tokens[end : end + RIGHT_TOKENS], gap.right, names, learned) + FARTHER * (end - begin)
            if best is None or score > best[0]:
                best = score, end, learned
        if token == _BREAK and gap.single_line:
            break
    return best


def _agreement(tokens: Sequence[str], wanted: Sequence[str], names: dict[str, str], learned: dict[str, str]) -> float:
    """The score of tokens against the gap's; different names are added to `learned`, unless known as another."""
    score = 0.0
    for token, other in zip(tokens, wanted, strict=False):
        if token == other:
            score += EQUAL_NAME if is_name_token(token) else EQUAL
        elif is_name_token(token) and is_name_token(other):
            if names.get(token, other) == other:
                learned[token] = other
                score += OTHER_NAME
            else:
                score += CONTRADICTED
        else:
            break
    return score


def _indents(gap: _GapTokens, place: Place) -> tuple[str, str]:
    """The indents of the gap's line and of the place's."""
    other = indent_of(place.line)
    if gap.around.head:
        return indent_of(gap.around.head), other
    above = indent_of(gap.around.before[0]) if gap.around.before else ""
    lines = [line for line in place.before.split("\n") if line.strip()]
    above_other = indent_of(lines[-1]) if lines else ""
    if other.startswith(above_other):
        return above + other[len(above_other) :], other
    return above[: max(len(above) - len(above_other) + len(other), 0)], other


def _moved(line_break: str, old: str, new: str) -> str:
    """Line breaks and an indent, with the old indent replaced by the new one."""
    breaks, _, indent = line_break.rpartition("\n")
    return f"{breaks.count(chr(10)) * chr(10)}\n{new + indent[len(old) :] if indent.startswith(old) else indent}"


def _tokens(pieces: Sequence[str]) -> list[str]:
    """Pieces without the space around them; line breaks with the indent after them become `_BREAK`."""
    return [*map(str.strip, pieces)]
