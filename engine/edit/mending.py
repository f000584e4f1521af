"""Mending broken syntax: only what is damaged becomes noise, and only what parses comes back.

Damage after damage, the ways are tried in turn: small holes at the likeliest lines, then those lines with more and
more of them re-noised.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from engine.analysis.questions import Diagnose, TryEdits, asked
from engine.core.findings import Damage
from engine.core.request import Candidate, Filled, FillRequest, Timings
from engine.core.sequences import common_head, common_tail
from engine.decoding.deadline import Deadline
from engine.decoding.executor import Filling, Step, Work
from engine.edit.drafts import drafted_between
from engine.edit.holes import Proposal, proposed
from engine.infill.answers import answers
from engine.infill.gap import Gap
from engine.infill.rewritten import rewritten
from engine.infill.tokens import old_tokens, token_bounds
from engine.models.base import Model
from engine.syntax.languages import language_of
from engine.text.newlines import dominant_line_end, with_line_feeds, with_old_line_ends

_LINES = 3
"""Lines that are looked at for one damage, at the most."""
_ROUNDS = 8
"""Damages that are mended in one go, at the most."""
_CHECK_MS = 3000.0
"""For checking what was proposed for one damage."""
_SLICE, _SLICE_MS = 64, 300.0
"""Texts that one question is about, and what it may take."""
_READ = 24
"""Texts that the encoder reads to choose among them."""
_SHARE = 0.75
"""Of a canvas's room that the line takes."""
_TOUCHED = 1.0
"""Nats that each character added or taken away counts against a text: what is broken was whole but for a little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where a damage is worked on: `text[start:end]`, at most a line."""

    start: int
    end: int
    spots: tuple[int, ...]
    """Offsets into the site's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cure:
    """A better text, and what was put in the place of a site."""

    text: str
    severity: tuple[int, int]
    """How broken it is."""
    site: Site
    new: str
    easier: float
    """How much easier than the broken one it reads (log-probability), less what it costs to touch text."""
    share: float = 1.0
    """Of the likelihood of all cures that were found."""


Proposing = Generator[Step, Tensor, list[Proposal]]
Way = Callable[[Gap, Site], Proposing]
"""What a site's text could be instead, likeliest first."""


def by_holes(gap: Gap, site: Site) -> Proposing:
    """One or two tokens anew."""
    return (yield from proposed(gap, old_tokens(gap, gap.request.old), site.spots))


def by_strength(strength: float) -> Way:
    """A share of the line anew."""

    def way(gap: Gap, site: Site) -> Proposing:
        gap.request = replace(gap.request, strength=strength)
        fitted = yield from rewritten(gap)
        return sorted(
            (Proposal(text=each.text, likely=sum(map(math.log, each.confidence))) for each in answers(gap, fitted)),
            key=lambda each: -each.likely,
        )

    return way


WAYS: tuple[Way, ...] = (by_holes, by_strength(0.3), by_strength(0.6), by_strength(1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Broken:
    """A text and what is wrong with it."""

    text: str
    language: str
    """`Grammar.name`"""
    damages: tuple[Damage, ...]


@dataclass(slots=True, kw_only=True)
class _Mending:
    """One request under way."""

    model: Model
    request: FillRequest
    """With line feeds only."""
    ways: Sequence[Way]
    deadline: Deadline
    gaps: list[Gap] = field(default_factory=list[Gap])
    steps: int = 0
    forwards: int = 0

    @property
    def before(self) -> int:
        """Where the text to be mended begins."""
        return len(self.request.prefix)

    @property
    def after(self) -> int:
        """How much text follows it."""
        return len(self.request.suffix)


def mending(
    model: Model,
    request: FillRequest,
    clock: Callable[[], float] = time.perf_counter,
    ways: Sequence[Way] = WAYS,
) -> Filling:
    """Mend the damages in `request.old` step by step: see engine.decoding.executor. No candidate where there is none,
    or nothing helps."""
    began = clock()
    plain = replace(
        request,
        prefix=with_line_feeds(request.prefix),
        old=with_line_feeds(request.old),
        suffix=with_line_feeds(request.suffix),
    )
    work = _Mending(model=model, request=plain, ways=ways, deadline=Deadline(request.deadline_ms, began, clock))
    cured = yield from _mended(work)
    return Filled(
        model=model.info.name,
        device=model.info.device,
        candidates=tuple(_candidate(work, request, cure) for cure in cured),
        width=max((len(cure.new) for cure in cured), default=0),
        steps=work.steps,
        forwards=work.forwards,
        ms=Timings(total=(clock() - began) * 1000),
    )


def _mended(work: _Mending) -> Work[list[Cure]]:
    """The ways to mend everything that can be mended, best first: they differ in the last damage."""
    request = work.request
    language = language_of(request.language)
    text = request.prefix + request.old + request.suffix
    now = (yield from _diagnosed(work, text, language)) if language else None
    cures: list[Cure] = []
    hopeless: set[int] = set()
    for _ in range(_ROUNDS):
        damage = _next(work, now, hopeless) if now else None
        if now is None or damage is None or work.deadline.passed():
            break
        found = yield from _cures(work, now, damage)
        if found:
            cures = found
            now = yield from _diagnosed(work, found[0].text, now.language)
        else:
            # Counted from the end, which mending an earlier one does not move.
            hopeless.add(len(now.text) - damage.end)
    return cures[: request.n]


def _diagnosed(work: _Mending, text: str, language: str) -> Work[_Broken | None]:
    question = Diagnose(text=text, language=language)
    found = yield from asked(question, _CHECK_MS, work.deadline.left_ms())
    return found and _Broken(text=text, language=language, damages=found.damages)


def _next(work: _Mending, now: _Broken, hopeless: set[int]) -> Damage | None:
    """The first damage in the text that is asked for and has not been tried."""
    end = len(now.text) - work.after
    inside = [each for each in now.damages if each.end >= work.before and each.start <= end]
    return next((each for each in inside if len(now.text) - each.end not in hopeless), None)


def _cures(work: _Mending, now: _Broken, damage: Damage) -> Work[list[Cure]]:
    """What mends one damage, best first; of the first way that mends it."""
    sites = list(_sites(work, now, damage))
    for way in work.ways:
        spent_ms = 0.0
        cures: list[Cure] = []
        for site in sites:
            if work.deadline.passed():
                return cures
            found, ms = yield from _tried(work, now, site, way, _CHECK_MS - spent_ms)
            cures += found
            spent_ms += ms
        if cures:
            least = min(cure.severity for cure in cures)
            return _weighed([cure for cure in cures if cure.severity == least])
    return []


def _weighed(cures: Sequence[Cure]) -> list[Cure]:
    """Best first, no text twice, with their shares."""
    distinct = list({cure.text: cure for cure in cures}.values())
    best = max(cure.easier for cure in distinct)
    total = sum(math.exp(cure.easier - best) for cure in distinct)
    weighed = [replace(cure, share=math.exp(cure.easier - best) / total) for cure in distinct]
    return sorted(weighed, key=lambda cure: -cure.share)


def _sites(work: _Mending, now: _Broken, damage: Damage) -> Iterator[Site]:
    """The lines of the likeliest spots in the text that is asked for."""
    end = len(now.text) - work.after
    inside = [spot for spot in damage.spots if work.before <= spot <= end] or [min(damage.start, end)]
    lines: dict[tuple[int, int], list[int]] = {}
    for spot in inside:
        start = max(now.text.rfind("\n", 0, spot) + 1, work.before)
        stop = now.text.find("\n", spot)
        lines.setdefault((start, min(stop if stop >= 0 else len(now.text), end)), []).append(spot)
    for (start, stop), spots in list(lines.items())[:_LINES]:
        yield _within_canvas(work, now, start, stop, spots)


def _within_canvas(work: _Mending, now: _Broken, start: int, end: int, spots: list[int]) -> Site:
    """A line, or as much of it around the first spot as fits on a canvas."""
    room = int(work.model.info.canvas_length // 2 * _SHARE)
    bounds = [start + at for at in token_bounds(work.model, work.model.tokenize(now.text[start:end]))]
    if len(bounds) > room:
        at = min(range(len(bounds)), key=lambda index: abs(bounds[index] - spots[0]))
        first = max(0, min(at - room // 2, len(bounds) - 1 - room))
        start, end = bounds[first], bounds[min(first + room, len(bounds) - 1)]
    inside = [spot - start for spot in spots if start <= spot <= end]
    return Site(start=start, end=end, spots=tuple(inside) or (0,))


def _tried(work: _Mending, now: _Broken, site: Site, way: Way, budget_ms: float) -> Work[tuple[list[Cure], float]]:
    """What makes the text better at a site, and how many milliseconds it took to find out."""
    gap = _gap(work, now, site)
    before, after = now.text[work.before : site.start], now.text[site.end : len(now.text) - work.after]
    proposals = yield from drafted_between(before, after, way(gap, site))
    work.steps += gap.steps
    work.forwards += gap.forwards
    texts = [each.text for each in proposals if "\N{REPLACEMENT CHARACTER}" not in each.text]
    better, spent_ms = yield from _better(work, now, site, texts, budget_ms)
    easier = _easier(gap, [text for text, _ in better])
    cures = [
        Cure(
            text=now.text[: site.start] + text + now.text[site.end :],
            severity=severity,
            site=site,
            new=text,
            easier=value,
        )
        for (text, severity), value in zip(better, easier, strict=True)
    ]
    return cures, spent_ms


def _better(
    work: _Mending, now: _Broken, site: Site, texts: Sequence[str], budget_ms: float
) -> Work[tuple[list[tuple[str, tuple[int, int]]], float]]:
    """The first few texts that make the whole better, with how broken it is then; asked a slice at a time, so that
    others get a turn."""
    found: list[tuple[str, tuple[int, int]]] = []
    done, spent_ms = 0, 0.0
    while done < len(texts) and len(found) < _READ and spent_ms < budget_ms and work.deadline.left_ms() > 0:
        left = tuple(texts[done : done + _SLICE])
        question = TryEdits(
            text=now.text, language=now.language, start=site.start, end=site.end, texts=left, most=_READ - len(found)
        )
        tried = yield from asked(question, _SLICE_MS, work.deadline.left_ms())
        if tried is None:
            break
        found += [(left[each.index], each.severity) for each in tried.better]
        done += tried.count
        spent_ms += tried.spent_ms
    return found, spent_ms


def _gap(work: _Mending, now: _Broken, site: Site) -> Gap:
    request = replace(
        work.request,
        task="rewrite",
        prefix=now.text[: site.start],
        old=now.text[site.start : site.end],
        suffix=now.text[site.end :],
    )
    prompt = work.model.prompt(request)
    return Gap(
        model=work.model,
        request=request,
        prompt=prompt,
        context=work.model.encode(prompt.context),
        generator=torch.Generator(device=work.model.info.device).manual_seed(request.seed),
        deadline=work.deadline,
    )


def _easier(gap: Gap, texts: Sequence[str]) -> list[float]:
    """`Cure.easier` of each text in the place of the old one."""
    if not texts:
        return []
    said = [gap.model.tokenize(gap.prompt.head + text) for text in (gap.request.old, *texts)]
    old, *new = [sum(values) for values in gap.model.score(gap.context, said, gap.suffix)]
    touched = [touched_chars(gap.request.old, text) for text in texts]
    return [value - old - _TOUCHED * count for value, count in zip(new, touched, strict=True)]


def touched_chars(old: str, new: str) -> int:
    """Characters taken away and added, beside what both texts begin and end with."""
    head = common_head(old, new)
    tail = common_tail(old[head:], new[head:])
    return len(old) + len(new) - 2 * (head + tail)


def _candidate(work: _Mending, request: FillRequest, cure: Cure) -> Candidate:
    text = cure.text[work.before : len(cure.text) - work.after]
    line_end = dominant_line_end(request.prefix + request.old + request.suffix)
    return Candidate(
        text=with_old_line_ends(request.old, text, line_end),
        tokens=len(work.model.tokenize(cure.new)),
        confidence=cure.share,
        score=cure.easier,
        syntax="repaired",
    )
