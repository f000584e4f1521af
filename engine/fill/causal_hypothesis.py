"""An answer that the model writes from left to right, offered if it is likelier than those of its canvases.

A canvas predicts all of its tokens at once, at a guessed width. The causal encoder has the same weights, reads the same
context and suffix, and writes token after token until it predicts the end of the gap. Decoding starts after the tokens
of a canvas's answer that its score is sure of, and stops once it can't win. Repetition in the file and the canvases'
answers are its drafts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from engine.fill.causal_decoding import Reach, decode
from engine.fill.draft_sources import DraftSources
from engine.fill.executor import Work
from engine.fill.gap import Gap
from engine.fill.greedy import Said
from engine.fill.hypotheses import NO_ROW, Hypothesis
from engine.fill.ranking import fitting, standing, worthwhile
from engine.fill.validation import checked, valid_fills

HANDICAP = 1.5
"""Nats by which it must be likelier: greedy text scores high with the weights that wrote it, right or wrong. On
development gaps 0.5 to 2 do equally well."""
LONGEST = 32
"""Most tokens of it."""
_ROWS = 8
"""Tokens of a pass: oneDNN multiplies at least so many rows."""
_SURE = math.log(0.5)
"""Log-probability above which a scored token is the likeliest in its place."""


def causal_hypothesis(gap: Gap, known: Sequence[Hypothesis]) -> Work[list[Hypothesis]]:
    """One more hypothesis, or none. `known`: the hypotheses so far, with their scores."""
    head, end = gap.model.causal, gap.model.info.end_id
    if not gap.predicted_widths or gap.committed or head is None or end is None:
        return []
    surest = max(known, key=_sure_tokens, default=None)
    if surest is not None and _sure_tokens(surest) > len(surest.ids):
        return []  # it would be the very same
    said = _begun(surest)
    least = max((standing(gap, each, each.score) for each in known), default=-math.inf) + HANDICAP
    reach = Reach(
        most=min(LONGEST, gap.budget) + 1,
        reached=lambda said: _bound(gap, said) < least or gap.should_stop(),
        banned=[*({*gap.model.info.forbidden_ids, gap.model.info.pad_id, *gap.line_breaks} - {end})],
        rows=_ROWS,
    )
    drafts = DraftSources([*gap.suffix, *gap.prompt.context], texts=[each.ids for each in known])
    yield from decode(gap, head, said, drafts, reach)
    if said.end is None:
        return []
    made = _hypothesis(gap, said, said.end)
    is_other = made.text not in {each.text for each in known}
    return (yield from _offered(gap, made)) if is_other and standing(gap, made, made.score) >= least else []


def _offered(gap: Gap, made: Hypothesis) -> Work[list[Hypothesis]]:
    if not gap.model.vocabulary.is_text(made.ids) or not worthwhile(gap, [made]):
        return []
    found = yield from valid_fills(gap.request, [made.text], gap.deadline)
    return [replace(checked(made, found[made.text]), handicap=HANDICAP)] if made.text in found else []


def _sure_tokens(known: Hypothesis) -> int:
    """Tokens of which the model is sure, from the first one on; the end of the gap counts as one."""
    return sum(1 for _ in takewhile(_SURE.__lt__, known.score))


def _begun(surest: Hypothesis | None) -> Said:
    """The tokens of a canvas's answer up to the first of which the model is not sure: it would write the same ones."""
    sure = _sure_tokens(surest) if surest else 0
    if surest is None or not sure:
        return Said()
    return Said(ids=[*surest.ids[:sure]], logs=[*surest.score[:sure]], others=[(-math.inf, -1)] * sure)


def _bound(gap: Gap, said: Said) -> float:
    """The highest value that it can still be ranked by."""
    odds = [likely for width, likely in gap.predicted_widths.items() if width >= len(said.ids)]
    return sum(said.logs) + (fitting(max(odds)) if odds else -math.inf)


def _hypothesis(gap: Gap, said: Said, end: float) -> Hypothesis:
    confidence = tuple(map(math.exp, said.logs))
    text, score = gap.model.detokenize(said.ids), (*said.logs, end)
    return Hypothesis(row=NO_ROW, text=text, ids=tuple(said.ids), confidence=confidence, score=score)
