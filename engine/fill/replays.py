"""Further places of an edit: where else the replaced text stands, with the evidence that it changes there too.

The model is not run. The evidence is the text and, if there is a tree, the roles of both places in the code. The
weights are a logistic regression on edits between two releases of the development packages, some followed by the same
change elsewhere and some not: see tests.engine.lab.eval.next_edits.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import Match, SequenceMatcher
from itertools import accumulate, islice

from engine.common.sequences import common_ends, common_head
from engine.syntax.roles import BINDS, MEMBERS, RoleKind, SpanRole

LONGEST, _THINGS = 2000, 8
"""Most characters of an edit, and most texts that it replaces; larger ones mean too many things at once."""
_NEIGHBOURS = 5
"""Tokens on each side of a place that are compared with the edit's."""
_AROUND = 120
"""Characters in which these are searched."""
_PLACES = 60
"""Most places of one replaced text, the nearest first."""
_LINE = 200
"""Characters of a line that are compared."""
_NEAR = 1000
_MOST_TOKEN_PAIRS, _MOST_SIGN_PAIRS = 500_000, 50_000
"""Most pairs compared for one matching: a few times what code needs, some hundredths of a second."""
_OFTEN_NEW, _OFTEN_OLD, _OFTEN_DONE = 5, 10, 2
_APART: frozenset[RoleKind] = frozenset({"keyword", "text"})
"""Roles in which a name is independent of bindings around it."""
_TOKEN = re.compile(r"[^\W\d]\w*|\d[\w.]*|\s+|[^\w\s]")
_BY_TEXT: Mapping[str, float] = {
    "bias": -4.25,
    # For each token that is the same before the place, and after it; for a line that is the same.
    "same before": 0.3,
    "same after": 0.37,
    "alike": 2.31,
    # Where the new text stands nowhere else, as when a name is replaced by a new one; for each place where it does.
    "new name": 3.21,
    "known name": 0.33,
    # For each place of the old text: what stands everywhere seldom goes everywhere.
    "common": -0.27,
    # Where the edit did the same twice; for each edit before it that did.
    "repeated": 1.48,
    "done": 0.41,
    # Where the edit only took away; for a place in a string or a comment, and one that is near.
    "deleted": 1.33,
    "in text": -1.9,
    "close": 0.61,
}
_BY_TREE: Mapping[str, float] = {
    "bias": -5.43,
    "same before": 0.19,
    "same after": 0.29,
    "alike": 1.71,
    "new name": 3.16,
    "known name": 0.27,
    "common": -0.29,
    "repeated": 1.71,
    "done": 0.42,
    "deleted": 1.17,
    "in text": -1.5,
    "close": 0.74,
    # What the edited place was to the code, this one is too; and it lies in such a node.
    "same role": 1.63,
    "same inside": 0.72,
    # Of a name that the edit binds: where it is known (a parameter's also where its function is called by keyword), and
    # where it is not.
    "in scope": 1.72,
    "out of scope": -0.71,
    # A use of what nothing binds any more; and another binding of the name.
    "orphan": 1.64,
    "both bind": -2.72,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """One replacement of an edit."""

    start: int
    """Offset in the old lines."""
    old: str
    new: str
    before: Sequence[str]
    """Tokens before it, the nearest first, without blank ones; `after` likewise."""
    after: Sequence[str]
    line: str
    """The old line."""
    repeated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """`text[start:end]` of a document could become `new`."""

    start: int
    end: int
    new: str
    edit: Replaced
    seen: Mapping[str, float] = field(repr=False)

    @property
    def likely(self) -> float:
        """Log-odds that it belongs there."""
        weights = _BY_TREE if "same role" in self.seen else _BY_TEXT
        return sum(weight * self.seen.get(name, 0.0) for name, weight in weights.items())


def replays(
    text: str,
    old: str,
    new: str,
    mine: Sequence[tuple[int, int]],
    near: int,
    earlier: Sequence[tuple[str, str]] = (),
) -> list[Replay]:
    """Further places of an edit that changed the lines `old` to `new`, the likeliest first. `mine`: spans of `text`
    that were edited lately, this edit included: they stay, and a new name in them still counts as new. `near`: where
    the user looks. `earlier`: old and new lines of the edits before."""
    done = Counter(
        (was, now) for lines in earlier if max(map(len, lines)) <= LONGEST for _, was, now in replaced(*lines)
    )
    found = [replay for each in _replaced(old, new) for replay in _other_places(text, mine, near, each, done)]
    return sorted(found, key=lambda replay: -replay.likely)


def replaces(old: str, new: str) -> bool:
    """Whether an edit replaces something that may stand in other places."""
    return any(_replaced(old, new))


def resizes(old: str, new: str) -> bool:
    """Whether an edit of lines adds words or removes some."""
    if not (old.strip() and new.strip()) or max(len(old), len(new)) > LONGEST:
        return False
    return any(bool(re.search(r"\w", was)) != bool(re.search(r"\w", now)) for _, was, now in replaced(old, new))


def replaced(old: str, new: str) -> Iterator[tuple[int, str, str]]:
    """The replacements that turn `old` into `new`, token by token."""
    before, after = _TOKEN.findall(old), _TOKEN.findall(new)
    at = [0, *accumulate(map(len, before))]
    for kind, first, last, new_first, new_last in _Matching(before, after, _MOST_TOKEN_PAIRS).get_opcodes():
        if kind != "equal":
            yield at[first], "".join(before[first:last]), "".join(after[new_first:new_last])


class _Matching(SequenceMatcher[str]):
    """difflib's matching. Its time is cubic where all is alike, so beyond so many pairs only a common beginning and end
    match."""

    def __init__(self, before: Sequence[str], after: Sequence[str], most_pairs: int) -> None:
        super().__init__(None, before, after, autojunk=False)
        self._before, self._after, self._times = before, after, Counter(after)
        self._left = most_pairs

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        before, after = self._before[alo:ahi], self._after[blo:bhi]
        self._left -= sum(1 + self._times[each] for each in before)
        if self._left >= 0:
            return super().find_longest_match(alo, ahi, blo, bhi)
        head, tail = common_ends(before, after)
        if head:
            return Match(alo, blo, head)
        return Match(alo + len(before) - tail, blo + len(after) - tail, tail)


def with_roles(found: Sequence[Replay], here: Sequence[SpanRole], edited: Mapping[int, SpanRole]) -> list[Replay]:
    """The same places, ordered anew by their roles in the code. `edited`: the edit's own roles, by `Replaced.start`, in
    the text before it."""
    by_edit: dict[int, list[SpanRole]] = {}
    for replay, place in zip(found, here, strict=True):
        by_edit.setdefault(replay.edit.start, []).append(place)
    known = [
        _with_role(replay, place, edited[replay.edit.start], by_edit[replay.edit.start])
        for replay, place in zip(found, here, strict=True)
    ]
    return sorted(known, key=lambda replay: -replay.likely)


def _with_role(replay: Replay, here: SpanRole, edit: SpanRole, others: Sequence[SpanRole]) -> Replay:
    binds, member = edit.role in BINDS, edit.role in MEMBERS
    # A name binds in the function around it, that of a function or class in what is around that.
    around = edit.scopes[edit.role == "definition" :]
    scope = around[0] if binds and not member and around else None
    called = edit.role == "parameter" and here.role == "keyword" and here.function == edit.function != ""
    in_scope = binds and (scope is None or scope in here.scopes or called)
    bound = any(
        each.role in BINDS and (each.role in MEMBERS) == member and (scope is None or scope in each.scopes)
        for each in others
    )
    seen = {
        # The text alone takes a name in an f-string for text.
        "in text": replay.seen["in text"] and here.role == "text",
        "same role": here.role == edit.role,
        "same inside": here.inside == edit.inside,
        "in scope": in_scope,
        "out of scope": binds and not in_scope,
        # What the edit bound, and nothing binds any more.
        "orphan": in_scope and not bound and (called or ((here.role in MEMBERS) == member and here.role not in _APART)),
        "both bind": binds and here.role in BINDS,
    }
    return Replay(start=replay.start, end=replay.end, new=replay.new, edit=replay.edit, seen={**replay.seen, **seen})


def _replaced(old: str, new: str) -> Iterator[Replaced]:
    if max(len(old), len(new)) > LONGEST:
        return
    found = list(replaced(old, new))
    times = Counter((was, now) for _, was, now in found)
    if len(times) > _THINGS:
        return
    for (was, now), count in times.items():
        # A bare sign or an insertion says nothing about where else it belongs.
        if len(was) < 2 or not re.search(r"\w", was):
            continue
        start = next(at for at, each, other in found if (each, other) == (was, now))
        yield Replaced(
            start=start,
            old=was,
            new=now,
            before=_before(old, start),
            after=_after(old, start + len(was)),
            line=_line(old, start, start + len(was)),
            repeated=count > 1,
        )


def _other_places(
    text: str, mine: Sequence[tuple[int, int]], near: int, edit: Replaced, done: Mapping[tuple[str, str], int]
) -> Iterator[Replay]:
    def untouched(at: int) -> bool:
        return not any(first <= at < last for first, last in mine)

    places = [*filter(untouched, _places(text, edit.old))]
    again = _OFTEN_NEW
    if re.search(r"\w", edit.new):
        again = sum(map(untouched, islice(_places(text, edit.new), _PLACES)))
    defines = re.compile(rf"\s*{re.escape(edit.new)}\s*(:[^=]*)?=(?!=)") if edit.new.strip() else None
    for at in sorted(places, key=lambda at: abs(at - near))[:_PLACES]:
        stop = at + len(edit.old)
        before_it = text[text.rfind("\n", 0, at) + 1 : at]
        # What the new text is made of stays: it was taken out of other places.
        if defines and defines.match(before_it):
            continue
        in_text = before_it.count('"') % 2 or before_it.count("'") % 2 or "#" in before_it
        likeness = _Matching(edit.line[:_LINE], _line(text, at, stop)[:_LINE], _MOST_SIGN_PAIRS).ratio()
        yield Replay(
            start=at,
            end=stop,
            new=edit.new,
            edit=edit,
            seen={
                "bias": 1,
                "same before": common_head(edit.before, _before(text, at)),
                "same after": common_head(edit.after, _after(text, stop)),
                "alike": likeness,
                "new name": not again,
                "known name": min(again, _OFTEN_NEW),
                "common": min(len(places), _OFTEN_OLD),
                "repeated": edit.repeated,
                "done": min(done.get((edit.old, edit.new), 0), _OFTEN_DONE),
                "deleted": not edit.new.strip(),
                "in text": bool(in_text),
                "close": 1 / (1 + abs(at - near) / _NEAR),
            },
        )


def _places(text: str, wanted: str) -> Iterator[int]:
    """Its places as whole tokens."""
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
