"""Brackets that the text after the cursor closes and nothing opens: an answer has to open them.

A model that writes from left to right ends a line before it sees why it should not. Where it would open such a bracket
is asked of it in one pass over what it said.
"""

from __future__ import annotations

import math
from bisect import bisect_left

from engine.common.request import FillRequest
from engine.fill.draft_tree import ROOT
from engine.fill.gap import Gap
from engine.fill.greedy import Said
from engine.fill.tokens import token_bounds
from engine.models.base import CausalHead, DraftTree
from engine.syntax.brackets import brackets_near
from engine.syntax.languages import language_of


def missing_openers(request: FillRequest) -> str:
    """The openers that an answer has to have."""
    language = language_of(request.language)
    return brackets_near(request.prefix, request.suffix, language).openers if language else ""


def opened(gap: Gap, head: CausalHead, said: Said, openers: str) -> list[Said]:
    """Beginnings of an answer that end with one of these brackets, as likely as the model opens one there."""
    ids, logs = said.ids, said.logs
    gap.deadline.step_begins()
    tree = DraftTree(ids=tuple(ids), parents=tuple(range(ROOT, len(ids) + ROOT)))
    said_there = head.check(head.begin(gap.context, gap.suffix), tree).log_softmax(dim=-1)
    gap.written += 1
    gap.deadline.step_is_done()
    first = bisect_left(token_bounds(gap.model, ids), len(gap.prompt.head))
    others = [*zip(logs, ids, strict=True), (-math.inf, -1)]
    return [
        Said(ids=[*ids[:at], token], logs=[*logs[:at], likely], others=[*said.others[:at], others[at]])
        for token, alike in _opening_tokens(gap, openers).items()
        for at, likely in enumerate(said_there[:, alike].logsumexp(dim=-1).tolist())
        if at >= first
    ]


def _opening_tokens(gap: Gap, openers: str) -> dict[int, list[int]]:
    """Each token that is one of these brackets, with blanks before it or without, and the tokens that begin like it."""
    spelled = gap.model.vocabulary.bytes
    begins: dict[bytes, list[int]] = {blank + opener.encode(): [] for opener in openers for blank in (b"", b" ")}
    for token, each in enumerate(spelled):
        if (alike := begins.get(each[:1], begins.get(each[:2]))) is not None and gap.is_text(token):
            alike.append(token)
    return {token: alike for each, alike in begins.items() for token in alike if spelled[token] == each}
