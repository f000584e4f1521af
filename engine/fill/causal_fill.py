"""A gap filled by a causal model: drafts checked by it, its answers checked by the grammar."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from engine.common.newlines import with_line_feeds
from engine.common.request import Cell, Draft, Syntax
from engine.fill.causal_decoding import Reach, Said, decode
from engine.fill.draft_sources import DraftSources
from engine.fill.draft_tree import likeliest
from engine.fill.ends import Ends
from engine.fill.executor import Work
from engine.fill.gap import Gap
from engine.fill.hypotheses import NO_ROW, Hypothesis, shortened
from engine.fill.tokens import token_bounds
from engine.fill.validation import belonging, checked, validated_fills
from engine.syntax.languages import language_of
from engine.syntax.questions import ValidatedFill

UNMET = math.log(0.3)
"""Log-probability that a gap ends where neither the model nor what follows the cursor says so."""
_FOLLOWS = 40
"""Characters after the cursor that drafts go on with."""
IDLE = 2
"""Ways more that are tried where the model says at once what follows the cursor, as if nothing were missing."""


def causal_fill(gap: Gap, known: Sequence[Hypothesis], drafted: Sequence[str] = ()) -> Work[list[Hypothesis]]:
    """What the model says in the gap, as many ways as are asked for. `known`: answers that others have, which are
    drafts, too; `drafted`: texts that are nothing else."""
    head = gap.model.causal
    assert head is not None
    ends = Ends(gap.request)
    # Cut into tokens together with what follows, as the last one may hold a line break.
    follows = with_line_feeds(gap.request.suffix[:_FOLLOWS])
    texts = [gap.request.guess] if gap.request.guess else []
    texts += [*(each.text for each in known), *drafted]
    texts = [gap.model.tokenize(gap.prompt.head + with_line_feeds(text) + follows) for text in texts]
    drafts = DraftSources(gap.prompt.context, gap.prompt.suffix, texts, stops=head.ends)
    reach = Reach(most=gap.budget, reached=lambda said: ends.reached(gap.text(said.ids)))
    begun: Said | None = Said()
    found: list[Said] = []
    while begun is not None:
        found.append(begun)
        for _ in decode(gap, head, begun, drafts, reach):
            yield _draft(gap, begun, ends, drafts)
        idle = sum(ends.repeats(_answer(gap, ends, each)) for each in found)
        enough = len(found) >= gap.request.n + min(idle, IDLE)
        begun = None if enough or gap.should_stop() else _other(gap, ends, found)
    said = [_hypothesis(gap, ends, each) for each in found if not ends.repeats(_answer(gap, ends, each))]
    offered = yield from _offered(gap, [each for each in said if each is not None])
    if len(offered) + len(known) == 1:
        # Nothing to hold it against: that it is read once more, with what follows, would tell nobody anything.
        return [replace(each, read=(*each.logs, math.log(each.likely) - sum(each.logs))) for each in offered]
    return offered


def _answer(gap: Gap, ends: Ends, said: Said) -> str:
    text = gap.text(said.ids)
    return text[: ends.cut(text)]


def _draft(gap: Gap, said: Said, ends: Ends, drafts: DraftSources) -> Draft:
    """What a person may see after a pass: what is said stands, what will be checked next is noise."""
    text = gap.text(said.ids)
    coming = likeliest(drafts.after(said.ids))
    cells = [Cell(text=gap.model.detokenize([token]), state="accepted") for token in said.ids]
    cells += [Cell(text=gap.model.detokenize([token]), state="noise") for token in coming]
    settled = 0 if gap.request.precedents or gap.request.n > 1 else ends.settled(text)
    return Draft(step=gap.written, text=text[: ends.cut(text)], settled=settled, cells=tuple(cells))


def _hypothesis(gap: Gap, ends: Ends, said: Said) -> Hypothesis | None:
    """None where it says no text."""
    head, spelled = gap.prompt.head, gap.model.detokenize(said.ids)
    text = spelled.removeprefix(head)
    if not spelled.startswith(head):
        return None
    cut = text[: ends.cut(text)]
    size, bounds = len(head) + len(cut), token_bounds(gap.model, said.ids)
    count = sum(start < size for start in bounds[:-1])
    ids, logs = said.ids[:count], said.logs[:count]
    if bounds[count] > size:
        # What ends within a token is spelled by others.
        ids = gap.model.tokenize(head + cut)
        logs = [sum(logs) / max(1, len(ids))] * len(ids)
    if not gap.model.vocabulary.is_text(ids):
        return None
    if said.end is not None and count == len(said.ids):
        end = said.end
    else:
        end = sum(said.logs[count:]) if ends.met(text) else UNMET
    return Hypothesis(
        row=NO_ROW,
        text=cut,
        ids=tuple(ids),
        confidence=tuple(map(math.exp, logs)),
        likely=math.exp(sum(said.logs[:count]) + end),
    )


def _other(gap: Gap, ends: Ends, found: Sequence[Said]) -> Said | None:
    """How the likeliest way begins that was not taken yet: what was said up to a token, and another one there."""
    taken = {tuple(said.ids[: at + 1]) for said in found for at in range(len(said.ids))}
    ways: list[tuple[float, Said]] = []
    for said in found:
        bounds, end = token_bounds(gap.model, said.ids), ends.cut(gap.text(said.ids))
        for at, (log, token) in enumerate(said.others):
            in_gap = 0 <= bounds[at] - len(gap.prompt.head) < end
            if in_gap and gap.is_text(token) and (*said.ids[:at], token) not in taken:
                way = said.until(at)
                way.ids.append(token)
                way.logs.append(log)
                way.others.append((said.logs[at], said.ids[at]))
                ways.append((sum(way.logs), way))
    return max(ways, key=lambda way: way[0])[1] if ways else None


def _offered(gap: Gap, said: Sequence[Hypothesis]) -> Work[list[Hypothesis]]:
    """Those that may stand in the gap as they are; where they are too few, the heads of others that may."""
    language = language_of(gap.request.language)
    if language is None:
        return [_checked(gap, each, belonging(gap.request, each.text)) for each in said]
    whole, broken = list[Hypothesis](), list[Hypothesis]()
    for each, found in zip(said, (yield from _validated(gap, language, said)), strict=True):
        if found and found.verdict and found.verdict.problems:
            broken.append(each)
        elif found:
            whole.append(_checked(gap, each, found))
    if not broken or len(whole) >= gap.request.n:
        return whole
    heads = yield from _validated(gap, language, broken, cut=True)
    cut = [
        _checked(gap, each, found, "cut") for each, found in zip(broken, heads, strict=True) if found and found.verdict
    ]
    return [*whole, *cut]


def _validated(
    gap: Gap, language: str, said: Sequence[Hypothesis], *, cut: bool = False
) -> Work[Sequence[ValidatedFill | None]]:
    texts = [each.text for each in said]
    return (yield from validated_fills(gap.request, language, texts, gap.deadline, cut=cut))


def _checked(gap: Gap, said: Hypothesis, found: ValidatedFill, syntax: Syntax = "ok") -> Hypothesis:
    if found.text != said.text:
        said = shortened(gap, said, found.text)
        said = replace(said, likely=math.exp(sum(said.logs) + UNMET))
    return checked(said, found, syntax)
