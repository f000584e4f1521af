"""Where else an edit may belong, read from text alone: other places of what it replaced, each with how much speaks for
doing the same there.

No model is asked. The weights were fitted on edits between two releases of the development packages: a logistic
regression on places of edits that were followed by the same elsewhere and of edits that were not, see
engine.eval.next_edits.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice

from engine.core.sequences import common_head

LONGEST = 2000
"""Characters of an edit; what is longer says too many things at once."""
_NEIGHBOURS = 5
"""Tokens on each side of a place that are held against those of the edit."""
_AROUND = 120
"""Characters in which they are looked for."""
_PLACES = 60
"""Of one replaced text, the nearest."""
_LINE = 200
"""Characters of a line that are held against another."""
_NEAR = 1000
_OFTEN_NEW, _OFTEN_OLD = 5, 10
_TOKEN = re.compile(r"[^\W\d]\w*|\d[\w.]*|\s+|[^\w\s]")
_BIAS = -3.75
_SAME_BEFORE, _SAME_AFTER, _ALIKE = 0.35, 0.46, 1.63
"""For each token that is the same before the place, and behind it; for a line that is the same."""
_NEW_NAME, _KNOWN_NAME = 3.38, 0.31
"""Where the new text stands nowhere else, as when a name is replaced by a new one; for each place where it does."""
_COMMON = -0.28
"""For each place of the old text: what stands everywhere seldom goes everywhere."""
_REPEATED, _DELETED, _IN_TEXT, _CLOSE = 1.1, 1.25, -1.3, 0.59
"""Where the edit did the same twice, only took away; for a place in a string or a comment, and one that is near."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """`text[start:end]` of a document could become `new`."""

    start: int
    end: int
    new: str
    likely: float
    """Log-odds that it is to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replaced:
    """What an edit replaced at one place of its lines."""

    old: str
    new: str
    before: Sequence[str]
    """The nearest first, blank ones left out, as in `after`."""
    after: Sequence[str]
    line: str
    """As it was."""
    repeated: bool


def replays(text: str, old: str, new: str, mine: Sequence[tuple[int, int]], near: int) -> list[Replay]:
    """The likeliest first, of an edit that made the lines `new` of the lines `old`. `mine`: spans of `text` that were
    edited lately, this one among them: nothing is changed there, and a new name that stands there is still new. `near`:
    where somebody is looking."""
    if max(len(old), len(new)) > LONGEST:
        return []
    found = [replay for each in _replaced(old, new) for replay in _elsewhere(text, mine, near, each)]
    return sorted(found, key=lambda replay: -replay.likely)


def replaced(old: str, new: str) -> Iterator[tuple[int, str, str]]:
    """What it takes to make `new` of `old`, token by token: where in `old`, what goes and what comes."""
    before, after = _TOKEN.findall(old), _TOKEN.findall(new)
    at = [0]
    for token in before:
        at.append(at[-1] + len(token))
    for kind, first, last, new_first, new_last in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind != "equal":
            yield at[first], "".join(before[first:last]), "".join(after[new_first:new_last])


def _replaced(old: str, new: str) -> Iterator[_Replaced]:
    found = list(replaced(old, new))
    times = Counter((was, now) for _, was, now in found)
    for (was, now), count in times.items():
        # A bare sign or an insertion says nothing about where else it belongs.
        if len(was) < 2 or not re.search(r"\w", was):
            continue
        start = next(at for at, each, other in found if (each, other) == (was, now))
        yield _Replaced(
            old=was,
            new=now,
            before=_before(old, start),
            after=_after(old, start + len(was)),
            line=_line(old, start, start + len(was)),
            repeated=count > 1,
        )


def _elsewhere(text: str, mine: Sequence[tuple[int, int]], near: int, done: _Replaced) -> Iterator[Replay]:
    def untouched(at: int) -> bool:
        return not any(first <= at < last for first, last in mine)

    places = [*filter(untouched, _places(text, done.old))]
    again = _OFTEN_NEW
    if re.search(r"\w", done.new):
        again = sum(map(untouched, _places(text, done.new)))
    for at in sorted(places, key=lambda at: abs(at - near))[:_PLACES]:
        stop = at + len(done.old)
        line_start = text.rfind("\n", 0, at) + 1
        before_it = text[line_start:at]
        in_text = before_it.count('"') % 2 or before_it.count("'") % 2 or "#" in before_it
        likeness = SequenceMatcher(None, done.line[:_LINE], _line(text, at, stop)[:_LINE], autojunk=False).ratio()
        yield Replay(
            start=at,
            end=stop,
            new=done.new,
            likely=_BIAS
            + _SAME_BEFORE * common_head(done.before, _before(text, at))
            + _SAME_AFTER * common_head(done.after, _after(text, stop))
            + _ALIKE * likeness
            + (_KNOWN_NAME * min(again, _OFTEN_NEW) if again else _NEW_NAME)
            + _COMMON * min(len(places), _OFTEN_OLD)
            + _REPEATED * done.repeated
            + _DELETED * (not done.new.strip())
            + (_IN_TEXT if in_text else 0)
            + _CLOSE / (1 + abs(at - near) / _NEAR),
        )


def _places(text: str, wanted: str) -> Iterator[int]:
    """Where it stands as whole tokens."""
    ends = [r"\b" if re.match(r"\w", each) else "" for each in (wanted[0], wanted[-1])]
    return (found.start() for found in re.finditer(f"{ends[0]}{re.escape(wanted)}{ends[1]}", text))


def _before(text: str, at: int) -> list[str]:
    tokens = [token for token in _TOKEN.findall(text[max(0, at - _AROUND) : at]) if not token.isspace()]
    return tokens[: -_NEIGHBOURS - 1 : -1]


def _after(text: str, at: int) -> list[str]:
    tokens = (found.group() for found in _TOKEN.finditer(text, at, at + _AROUND))
    return list(islice((token for token in tokens if not token.isspace()), _NEIGHBOURS))


def _line(text: str, start: int, end: int) -> str:
    """The lines that hold [start, end)."""
    stop = text.find("\n", end)
    return text[text.rfind("\n", 0, start) + 1 : stop if stop >= 0 else len(text)]
