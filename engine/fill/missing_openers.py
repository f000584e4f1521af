"""Brackets that the text after the cursor closes and nothing opens: an answer has to open one.

A model that writes from left to right ends a line before it sees why it should not. One pass over a refused answer
tells where it would open such a bracket.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import torch

from engine.fill.draft_tree import ROOT
from engine.fill.gap import Gap
from engine.fill.greedy import Said
from engine.fill.tokens import token_bounds
from engine.models.base import CausalHead, DraftTree
from engine.syntax.brackets import brackets_near
from engine.syntax.languages import language_of
from engine.syntax.lexing import PARTNER

_MOST = 32
"""Tokens of an answer among which a bracket is looked for: each is a row of all logits."""
_OFFERED = 8
"""Answers that are returned: each is parsed."""


def openers_missing(gap: Gap) -> str:
    """The brackets that have to be opened."""
    language = language_of(gap.request.language)
    return brackets_near(gap.request.prefix, gap.request.suffix, language).openers if language else ""


def with_opener(gap: Gap, head: CausalHead, refused: Sequence[int], openers: str) -> list[Said]:
    """Beginnings of a refused answer (its tokens) that go on with one of these brackets and end there, likeliest
    first."""
    ids = list(refused[:_MOST])
    gap.deadline.step_begins()
    tree = DraftTree(ids=tuple(ids), parents=tuple(range(ROOT, len(ids) + ROOT)))
    logs = head.check(head.begin(gap.context, gap.suffix), tree).log_softmax(dim=-1)
    gap.written += 1
    gap.deadline.step_is_done(usual=False)
    own = logs[:-1].gather(1, torch.tensor(ids, device=logs.device)[:, None])[:, 0].tolist()
    first = bisect_left(token_bounds(gap.model, ids), len(gap.prompt.head))
    found = [
        Said(ids=[*ids[:at], token], logs=[*own[:at], likely])
        for token, alike in _opening_tokens(gap, openers).items()
        for at, likely in enumerate(logs[:, alike].logsumexp(dim=-1).tolist())
        if at >= first
    ]
    return sorted(found, key=lambda said: -sum(said.logs))[:_OFFERED]


def _opening_tokens(gap: Gap, openers: str) -> dict[int, list[int]]:
    """Tokens that are one of these brackets, alone or after a blank, each with all that begin like it and leave it
    open."""
    vocabulary = gap.model.vocabulary
    found: dict[int, list[int]] = {}
    for opener in set(openers):
        for spelled in (opener.encode(), b" " + opener.encode()):
            token = vocabulary.token(spelled)
            if token is not None and gap.is_text(token):
                closer = PARTNER[opener].encode()
                found[token] = [each for each in vocabulary.beginning(spelled) if closer not in vocabulary.bytes[each]]
    return found
