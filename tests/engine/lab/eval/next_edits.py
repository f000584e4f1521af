"""Real edits, and what followed: taken from two releases of each reserved package.

An edit is a block of lines that changed by one replaced text. It is followed where the same was replaced elsewhere in
the file: the file as it was, with the first of them done, must lead to one of the others. And nothing follows where the
file is done: the new file, of which one edit that happened nowhere else was the last.

    python -m tests.engine.lab.eval.next_edits development
"""

from __future__ import annotations

import random
import sys
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate

from engine.common.percentiles import percentile
from engine.common.request import FillRequest, RecentEdit
from engine.fill.executor import drive
from engine.fill.loading import load
from engine.fill.next_edit import next_edit
from engine.fill.replays import replaced
from engine.lab.eval.reserved.packages import ReservedFile, Role, reserved_files, reserved_sources
from engine.models.base import Model

_LONGEST_FILE = 200_000
_LINES = 8
"""Of an edit, before and after, at the most."""
_STEPS = 3
"""Of one replaced text that goes through a file, as many are asked for."""
_ALONE = 2
"""Edits of one file after which nothing follows, at the most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextEditCase:
    """`text[start:end]` was `old` before the last edit."""

    package: str
    path: str
    text: str
    start: int
    end: int
    old: str
    earlier: tuple[tuple[int, int, str], ...]
    """Edits before it: spans of `text`, and what was there."""
    follows: frozenset[tuple[int, int, str]]
    """Spans of `text` that are replaced elsewhere, and by what; any of them is right. Empty: nothing follows."""


def release_pairs(role: Role) -> Iterator[tuple[str, str, str, str]]:
    """Package, path, the earlier text and the later one of each Python file that both releases of a package have."""
    listed = {each.name: each for each in reserved_sources() if each.role == role and each.earlier}
    earlier: dict[tuple[str, str], str] = {}
    later: list[ReservedFile] = []
    for file in reserved_files():
        each = listed.get(file.package)
        if each and file.version == each.earlier:
            earlier[file.package, file.path] = file.text
        elif each:
            later.append(file)
    for file in later:
        before = earlier.get((file.package, file.path))
        if before is not None:
            yield file.package, file.path, before, file.text


def next_edit_cases(role: Role) -> Iterator[NextEditCase]:
    """In a fixed order. Raises BadInput where the packages are not there and no registry is reached."""
    for package, path, before, after in release_pairs(role):
        if before != after and max(len(before), len(after)) <= _LONGEST_FILE and "\r" not in before + after:
            yield from edits_between(package, path, before, after)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextEditFigures:
    """Shares in [0, 1]."""

    followed: int
    """Cases in which something follows."""
    found: float
    """Of these, those in which the first that is shown is right."""
    alone: int
    quiet: float
    """Of those in which nothing follows, the ones in which nothing is shown."""
    right: float
    """Of what is shown, over as many cases of each kind."""
    ms: tuple[float, float]
    """Median and 95th percentile."""


def next_edit_figures(model: Model, cases: Iterable[NextEditCase]) -> NextEditFigures:
    """What the engine shows, with `model` to read it."""
    followed, alone, found, shown, disturbed = 0, 0, 0, 0, 0
    taken: list[float] = []
    for case in cases:
        began = time.perf_counter()
        said = next(iter(drive(model, next_edit(model, request_of(case))).candidates), None)
        taken.append((time.perf_counter() - began) * 1000)
        followed += bool(case.follows)
        alone += not case.follows
        shown += bool(case.follows and said)
        disturbed += bool(said and not case.follows)
        found += bool(said and said.replaces and (*said.replaces, said.text) in case.follows)
    evenly = shown + disturbed * followed / max(1, alone)
    return NextEditFigures(
        followed=followed,
        found=found / max(1, followed),
        alone=alone,
        quiet=1 - disturbed / max(1, alone),
        right=found / max(1, evenly),
        ms=(percentile(taken, 50) or 0.0, percentile(taken, 95) or 0.0),
    )


def request_of(case: NextEditCase) -> FillRequest:
    """Of somebody whose cursor stands where the edit begins."""
    earlier = [RecentEdit(path=case.path, old=old, new=case.text[at:end], start=at) for at, end, old in case.earlier]
    newest = RecentEdit(path=case.path, old=case.old, new=case.text[case.start : case.end], start=case.start)
    return FillRequest(
        prefix=case.text[: case.start],
        suffix=case.text[case.start :],
        language="python",
        task="next",
        edits=(*earlier, newest),
    )


_Block = tuple[int, int, str, str]
"""Characters [start, end) of the earlier text, what stands there and what stands in its place later: whole lines."""


def edits_between(package: str, path: str, before: str, after: str) -> Iterator[NextEditCase]:
    """The cases of one file that was `before` and is `after`."""
    blocks = list(_blocks(before, after))
    places: defaultdict[tuple[str, str], list[tuple[_Block, int]]] = defaultdict(list)
    single: set[_Block] = set()
    for block in blocks:
        start, _, old, new = block
        if old and new and max(old.count("\n"), new.count("\n")) <= _LINES:
            changes = list(replaced(old, new))
            telling = [change for change in changes if len(change[1]) > 1 and any(map(str.isalnum, change[1]))]
            if telling and len({(was, now) for _, was, now in changes}) == 1:
                single.add(block)
            for at, was, now in telling:
                places[was, now].append((block, start + at))
    for (was, now), where in places.items():
        order = list(dict.fromkeys(block for block, _ in where))
        last = [at for at, block in enumerate(order[:-1]) if block in single][:_STEPS]
        for at in last:
            done = order[: at + 1]
            text, moved = _applied(before, done)
            start = moved(order[at][0])
            yield NextEditCase(
                package=package,
                path=path,
                text=text,
                start=start,
                end=start + len(order[at][3]),
                old=order[at][2],
                earlier=tuple((moved(begin), moved(begin) + len(new), old) for begin, _, old, new in order[:at]),
                follows=frozenset(
                    (moved(spot), moved(spot) + len(was), now) for block, spot in where if block not in done
                ),
            )
    shared = {block for where in places.values() if len({block for block, _ in where}) > 1 for block, _ in where}
    lonely = [block for block in blocks if block in single and block not in shared]
    _, moved = _applied(before, blocks)
    for block in random.Random(f"{package}/{path}").sample(lonely, min(_ALONE, len(lonely))):
        start = moved(block[0])
        yield NextEditCase(
            package=package,
            path=path,
            text=after,
            start=start,
            end=start + len(block[3]),
            old=block[2],
            earlier=(),
            follows=frozenset(),
        )


def _blocks(before: str, after: str) -> Iterator[_Block]:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, old))]
    for kind, first, last, new_first, new_last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            yield starts[first], starts[last], "".join(old[first:last]), "".join(new[new_first:new_last])


def _applied(text: str, blocks: Sequence[_Block]) -> tuple[str, Callable[[int], int]]:
    """`text` with some blocks, in order, as they are later, and where what is outside of them moved to."""
    parts, at = list[str](), 0
    for start, end, _, new in blocks:
        parts += [text[at:start], new]
        at = end
    ends, shifts = [end for _, end, _, _ in blocks], [len(new) - (end - start) for start, end, _, new in blocks]

    def moved(spot: int) -> int:
        return spot + sum(shifts[: bisect_right(ends, spot)])

    return "".join([*parts, text[at:]]), moved


def main(role: Role, model: str = "bundled") -> None:
    cases = list(next_edit_cases(role))
    said = next_edit_figures(load(model).model, cases)
    packages = len({case.package for case in cases})
    sys.stdout.write(
        f"{model}, {packages} {role} packages\n"
        f"{said.followed} edits that are followed: the next found {said.found:.1%}\n"
        f"{said.alone} that nothing follows: quiet {said.quiet:.1%}\n"
        f"Of what is shown, as many of each: right {said.right:.1%}\n"
        f"p50 {said.ms[0]:.1f} ms, p95 {said.ms[1]:.1f} ms\n"
    )


if __name__ == "__main__":
    main("reported" if "reported" in sys.argv[1:] else "development")
