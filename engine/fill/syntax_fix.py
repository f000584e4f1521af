"""Fixes broken syntax: only what is broken becomes noise, and only what parses is accepted.

For each error region the ways are tried in turn: one or two tokens in the likeliest lines, then more and more of these
lines as noise. A coder, which has no canvases, writes such lines anew from a likely spot on.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from msgspec import structs

from engine.common.analysis import SyntaxErrorRegion
from engine.common.request import Candidate, FillRequest, Timings
from engine.common.sequences import common_ends
from engine.fill.alternatives import Alternative, alternatives
from engine.fill.causal_fill import causal_fill
from engine.fill.deadline import Deadline
from engine.fill.executor import Filling, Step, Work, filled_by
from engine.fill.gap import Gap
from engine.fill.hypotheses import hypotheses
from engine.fill.line_ends import in_line_feeds
from engine.fill.pieces import drafted_between
from engine.fill.prefill import opened
from engine.fill.rewritten import rewritten
from engine.fill.tokens import old_tokens, token_bounds
from engine.models.base import Model
from engine.models.logits import Logits
from engine.syntax.brackets import indentation
from engine.syntax.insertions import WORTH
from engine.syntax.languages import language_of
from engine.syntax.questions import Diagnose, Inserted, TryEdits, TryInsertions, reply_to

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_LINES = 3
"""Most lines that are tried for one error region."""
_ROUNDS = 8
"""Most error regions that are fixed in one request."""
_CHECK_MS = 3000.0
"""Time to check the proposals of one way for one error region."""
_CHECK_ALL_MS = 12_000.0
"""Time to check all proposals of a request."""
_SLICE, _SLICE_MS = 64, 300.0
"""Texts in one check, and its time; other requests get a turn between checks."""
_READ = 24
"""Most texts that the encoder scores to choose among them."""
_READ_CHARS, _LINE = 24_000, 80
"""Most characters of all these texts, and of a place."""
_READS = 1.0
"""Weight of a nat of the model's score relative to the cost of an insertion."""
_WRITTEN = 2
"""Lines that a coder writes from one place."""
_LEAST = 1e-300
"""Least probability, so that it has a logarithm."""
_WORD, _WORD_END = re.compile(r"\w+"), re.compile(r"\w*$")
_SHARE = 0.75
"""Share of a canvas's room that the line takes."""
_TOUCHED = 1.0
"""Nats that each added or removed character costs: the text was whole but for a little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The place of an error: `text[start:end]`, at most a line."""

    start: int
    end: int
    spots: tuple[int, ...]
    """Offsets into the site's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """A better text, and the new text of a site."""

    text: str
    severity: tuple[int, int]
    """How broken the text still is."""
    new: str
    easier: float
    """By how much it scores higher than the broken text (log-probability), less the cost of its changes."""
    share: float = 1.0
    """Its share of the likelihood of all fixes that were found."""


Way = Callable[[Gap, Site], Work[list[Alternative]]]
"""Texts that a site's could be instead, the likeliest first."""


def by_holes(gap: Gap, site: Site) -> Generator[Step, Logits, list[Alternative]]:
    """Denoise one or two tokens anew."""
    return (yield from alternatives(gap, old_tokens(gap, gap.request.old), site.spots))


def by_strength(strength: float, gap: Gap, site: Site) -> Generator[Step, Logits, list[Alternative]]:
    """Denoise a share of the line anew."""
    gap.request = structs.replace(gap.request, strength=strength)
    found = hypotheses(gap, (yield from rewritten(gap)))
    proposed = [Alternative(text=each.text, likely=sum(map(math.log, each.confidence))) for each in found]
    return sorted(proposed, key=lambda each: -each.likely)


def by_writing(gap: Gap, site: Site) -> Work[list[Alternative]]:
    """Write the line anew, from its spots on and from its beginning; all words of the line must stay."""
    request, found = gap.request, list[Alternative]()
    words = set(_WORD.findall(request.old))
    lead = indentation(request.old)
    for start in sorted({lead, *(max(lead, _word_start(request.old, spot)) for spot in site.spots)}):
        begun = request.old[:start]
        line = yield from opened(
            gap.model,
            structs.replace(request, task="fill", prefix=request.prefix + begun, old="", single_line=True, n=_WRITTEN),
            gap.deadline,
        )
        said = yield from drafted_between(begun, "", causal_fill(line, ()))
        found += [Alternative(text=begun + each.text, likely=math.log(max(each.likely, _LEAST))) for each in said]
        gap.written += line.written
    kept = [each for each in found if words <= set(_WORD.findall(each.text))]
    return sorted(kept, key=lambda each: -each.likely)


def _word_start(line: str, spot: int) -> int:
    """The beginning of the word at or before a spot, else the end of what precedes it."""
    before = line[:spot].rstrip()
    word = _WORD_END.search(before)
    return word.start() if word else len(before)


WAYS: tuple[Way, ...] = (by_holes, *(partial(by_strength, share) for share in (0.3, 0.6, 1.0)))
CODER_WAYS: tuple[Way, ...] = (by_writing,)
"""The ways of models without canvases."""


@in_line_feeds
def syntax_fix(
    model: Model,
    request: FillRequest,
    clock: Callable[[], float] = time.perf_counter,
    ways: Sequence[Way] = (),
) -> Filling:
    """Fix the errors in `request.old` step by step: see engine.fill.executor. No candidate if there is no error, or
    nothing helps. `ways`: instead of the model's own."""
    began = clock()
    ways = ways or (CODER_WAYS if model.fills_causally else WAYS)
    fixing = _Fixing(model, request, ways, Deadline(request.deadline_ms, began, clock))
    fixes = yield from fixing.run()
    candidates = [
        Candidate(
            text=each.text[len(request.prefix) : len(each.text) - len(request.suffix)],
            tokens=len(model.tokenize(each.new)),
            confidence=each.share,
            score=each.easier,
            syntax="repaired",
        )
        for each in fixes
    ]
    return filled_by(
        model,
        candidates,
        width=max((len(each.new) for each in fixes), default=0),
        forwards=fixing.steps,
        ms=Timings(total=(clock() - began) * 1000),
    )


def touched_chars(old: str, new: str) -> int:
    """The number of characters removed and added, without the common beginning and end."""
    return len(old) + len(new) - 2 * sum(common_ends(old, new))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Broken:
    text: str
    language: str
    """`Grammar.name`"""
    regions: tuple[SyntaxErrorRegion, ...]


class _Fixing:
    """One request in progress; its texts have line feeds only."""

    def __init__(self, model: Model, request: FillRequest, ways: Sequence[Way], deadline: Deadline) -> None:
        self._model, self._request, self._ways, self._deadline = model, request, ways, deadline
        self._before, self._after = len(request.prefix), len(request.suffix)
        self._check_ms = 0.0
        """Time left to check the proposals of the current way."""
        self._left_ms = _CHECK_ALL_MS
        self.steps = 0

    def run(self) -> Work[list[Fix]]:
        """Texts with everything fixed that can be, best first: they differ in the last error region."""
        request = self._request
        language = language_of(request.language)
        text = request.prefix + request.old + request.suffix
        now = (yield from self._diagnosed(text, language)) if language else None
        fixes: list[Fix] = []
        hopeless: set[int] = set()
        for _ in range(_ROUNDS):
            region = self._next(now, hopeless) if now else None
            if now is None or region is None or self._deadline.step_is_done():
                break
            found = yield from self._fixes(now, region)
            if found:
                fixes = found
                now = yield from self._diagnosed(found[0].text, now.language)
            else:
                # Counted from the end, which fixing an earlier one does not move.
                hopeless.add(len(now.text) - region.end)
        return fixes[: request.n]

    def _diagnosed(self, text: str, language: str) -> Work[_Broken | None]:
        question = Diagnose(text=text, language=language)
        found = yield from reply_to(question, _CHECK_MS, self._deadline.left_ms())
        return found and _Broken(text=text, language=language, regions=found.errors)

    def _next(self, now: _Broken, hopeless: set[int]) -> SyntaxErrorRegion | None:
        """The first error region of the requested text that was not tried."""
        size = len(now.text)
        inside = (each for each in now.regions if each.end >= self._before and each.start <= size - self._after)
        return next((each for each in inside if size - each.end not in hopeless), None)

    def _fixes(self, now: _Broken, region: SyntaxErrorRegion) -> Work[list[Fix]]:
        """Fixes of one error region by the first way that has any, best first."""
        if inserted := (yield from self._inserted(now, region)):
            return _best_first(inserted)
        sites = self._sites(now, region)
        for way in self._ways:
            self._check_ms = min(_CHECK_MS, self._left_ms)
            if self._check_ms <= 0:
                break
            fixes: list[Fix] = []
            for site in sites:
                if self._deadline.step_is_done():
                    return _best_first(fixes)
                fixes += yield from self._tried(now, site, way)
            if fixes:
                return _best_first(fixes)
        return []

    def _inserted(self, now: _Broken, region: SyntaxErrorRegion) -> Work[list[Fix]]:
        """Fixes by one more token, with their scores."""
        found = yield from self._insertions(now, region)
        least = min((each.severity for each in found), default=None)
        near = _near_each_other([each for each in found if each.severity == least])
        if not near:
            return []
        start = max(now.text.rfind("\n", 0, min(each.at for each in near)) + 1, self._before)
        stop = now.text.find("\n", max(each.at + each.removed for each in near))
        end = min(stop if stop >= 0 else len(now.text), len(now.text) - self._after)
        before, old, after = now.text[:start], now.text[start:end], now.text[end:]
        texts = [old[: each.at - start] + each.new + old[each.at + each.removed - start :] for each in near]
        easier = [0.0] * len(near)
        if len(near) > 1:
            request = structs.replace(self._request, task="rewrite", prefix=before, old=old, suffix=after)
            gap = yield from opened(self._model, request, self._deadline)
            easier = yield from _easier(gap, texts)
        return [
            Fix(text=before + text + after, severity=each.severity, new=text, easier=_READS * value - each.cost)
            for each, text, value in zip(near, texts, easier, strict=True)
        ]

    def _insertions(self, now: _Broken, region: SyntaxErrorRegion) -> Work[list[Inserted]]:
        found: list[Inserted] = []
        tried, left_ms = 0, min(_CHECK_MS, self._left_ms)
        while left_ms > 0 and not self._deadline.passed():
            question = TryInsertions(
                text=now.text,
                language=now.language,
                region=region,
                start=self._before,
                end=len(now.text) - self._after,
                skip=tried,
                limit=min((each.cost for each in found), default=math.inf) + WORTH,
            )
            said = yield from reply_to(question, _SLICE_MS, self._deadline.left_ms())
            if said is None:
                break
            found += said.found
            tried += said.count
            left_ms -= said.spent_ms
            self._left_ms -= said.spent_ms
            if said.done:
                break
        return found

    def _sites(self, now: _Broken, region: SyntaxErrorRegion) -> list[Site]:
        """The lines of the likeliest spots in the requested text."""
        end = len(now.text) - self._after
        inside = [spot for spot in region.spots if self._before <= spot <= end]
        inside = inside or [min(max(region.start, self._before), end)]
        lines: dict[tuple[int, int], list[int]] = {}
        for spot in inside:
            start = max(now.text.rfind("\n", 0, spot) + 1, self._before)
            stop = now.text.find("\n", spot)
            lines.setdefault((start, min(stop if stop >= 0 else len(now.text), end)), []).append(spot)
        return [self._within_canvas(now.text, *line, spots) for line, spots in list(lines.items())[:_LINES]]

    def _within_canvas(self, text: str, start: int, end: int, spots: list[int]) -> Site:
        """A line, or as much of it around the first spot as fits on a canvas."""
        room = int(self._model.info.canvas_length // 2 * _SHARE)
        bounds = [start + at for at in token_bounds(self._model, self._model.tokenize(text[start:end]))]
        if len(bounds) > room:
            at = min(range(len(bounds)), key=lambda index: abs(bounds[index] - spots[0]))
            first = max(0, min(at - room // 2, len(bounds) - 1 - room))
            start, end = bounds[first], bounds[min(first + room, len(bounds) - 1)]
        inside = [spot - start for spot in spots if start <= spot <= end]
        return Site(start=start, end=end, spots=tuple(inside) or (0,))

    def _tried(self, now: _Broken, site: Site, way: Way) -> Work[list[Fix]]:
        """Texts of a site that make the whole better."""
        before, after = now.text[: site.start], now.text[site.end :]
        old = now.text[site.start : site.end]
        request = structs.replace(self._request, task="rewrite", prefix=before, old=old, suffix=after)
        gap = yield from opened(self._model, request, self._deadline)
        work = drafted_between(before[self._before :], after[: len(after) - self._after], way(gap, site))
        proposed = yield from work
        self.steps += gap.steps + gap.written
        # Half a character is none; one that stood there may stay.
        texts = [each.text for each in proposed if each.text.count(_REPLACEMENT) <= old.count(_REPLACEMENT)]
        better = yield from self._better(now, site, texts)
        easier = yield from _easier(gap, list(better))
        return [
            Fix(text=before + text + after, severity=severity, new=text, easier=value)
            for (text, severity), value in zip(better.items(), easier, strict=True)
        ]

    def _better(self, now: _Broken, site: Site, texts: Sequence[str]) -> Work[dict[str, tuple[int, int]]]:
        """The first few texts that make the whole better, with how broken it is then."""
        found: dict[str, tuple[int, int]] = {}
        done = 0
        while done < len(texts) and len(found) < _READ and self._check_ms > 0 and self._deadline.left_ms() > 0:
            left = tuple(texts[done : done + _SLICE])
            most = _READ - len(found)
            question = TryEdits(
                text=now.text, language=now.language, start=site.start, end=site.end, texts=left, most=most
            )
            tried = yield from reply_to(question, _SLICE_MS, self._deadline.left_ms())
            if tried is None:
                break
            found |= {text: severity for text, severity in zip(left, tried.severities, strict=False) if severity}
            done += len(tried.severities)
            self._check_ms -= tried.spent_ms
            self._left_ms -= tried.spent_ms
        return found


def _near_each_other(found: Sequence[Inserted]) -> list[Inserted]:
    """The likeliest ones, as many as a model scores in a moment."""
    kept: list[Inserted] = []
    for each in sorted(found, key=lambda each: each.cost)[:_READ]:
        places = [each.at, *(other.at for other in kept)]
        if (max(places) - min(places) + _LINE) * len(places) <= _READ_CHARS:
            kept.append(each)
    return kept


def _best_first(fixes: Sequence[Fix]) -> list[Fix]:
    """Fixes that leave least broken, each text once, with their shares."""
    least = min((each.severity for each in fixes), default=None)
    distinct = list({each.text: each for each in fixes if each.severity == least}.values())
    best = max((each.easier for each in distinct), default=0.0)
    total = sum(math.exp(each.easier - best) for each in distinct)
    weighed = [replace(each, share=math.exp(each.easier - best) / total) for each in distinct]
    return sorted(weighed, key=lambda each: -each.share)


def _easier(gap: Gap, texts: Sequence[str]) -> Generator[Step, Logits, list[float]]:
    """`Fix.easier` of each text in the place of the old one."""
    if not texts:
        return []
    said = [gap.model.tokenize(gap.prompt.head + text) for text in (gap.request.old, *texts)]
    old, *new = [sum(values) for values in (yield from gap.score(said))]
    touched = [touched_chars(gap.request.old, text) for text in texts]
    return [value - old - _TOUCHED * count for value, count in zip(new, touched, strict=True)]
