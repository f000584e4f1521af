"""Brackets that the text after the cursor closes and nothing opens: an answer has to open them.

A model that writes from left to right ends a line before it sees why it should not. Where it would open such a bracket
is asked of it in one pass over what it said.
"""

from __future__ import annotations

from bisect import bisect_left

from engine.fill.draft_tree import ROOT
from engine.fill.gap import Gap
from engine.fill.greedy import Said
from engine.fill.tokens import token_bounds
from engine.models.base import CausalHead, DraftTree
from engine.syntax.brackets import brackets_near
from engine.syntax.languages import language_of


def opened(gap: Gap, head: CausalHead, said: Said) -> list[Said]:
    """Beginnings of an answer that end with a bracket that has to be opened, as likely as the model opens one there;
    none if no bracket has to be."""
    language = language_of(gap.request.language)
    openers = brackets_near(gap.request.prefix, gap.request.suffix, language).openers if language else ""
    tokens = _opening_tokens(gap, openers) if openers else {}
    if not tokens:
        return []
    gap.deadline.step_begins()
    tree = DraftTree(ids=tuple(said.ids), parents=tuple(range(ROOT, len(said.ids) + ROOT)))
    logs = head.check(head.begin(gap.context, gap.suffix), tree).log_softmax(dim=-1)
    gap.written += 1
    gap.deadline.step_is_done()
    first = bisect_left(token_bounds(gap.model, said.ids), len(gap.prompt.head))
    return [
        Said(ids=[*said.ids[:at], token], logs=[*said.logs[:at], likely])
        for token, alike in tokens.items()
        for at, likely in enumerate(logs[:, alike].logsumexp(dim=-1).tolist())
        if at >= first
    ]


def _opening_tokens(gap: Gap, openers: str) -> dict[int, list[int]]:
    """Each token that is one of these brackets, or one after a blank, with all tokens that begin like it."""
    spelled = gap.model.vocabulary.bytes
    begins: dict[bytes, list[int]] = {blank + opener.encode(): [] for opener in openers for blank in (b"", b" ")}
    for token, each in enumerate(spelled):
        if (alike := begins.get(each[:1], begins.get(each[:2]))) is not None and gap.is_text(token):
            alike.append(token)
    return {token: alike for each, alike in begins.items() for token in alike if spelled[token] == each}
