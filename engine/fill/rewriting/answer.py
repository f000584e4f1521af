"""An answer to a conversation, token by token: drafts are checked, what the model says is accepted."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence

from engine.common.request import Candidate, Syntax
from engine.fill.draft_tree import accepted, tree_of
from engine.fill.greedy import Greedy, Said
from engine.fill.ngrams import NGrams
from engine.fill.rewriting.old_text import OldText
from engine.models.base import PIECE, Model

LONGEST = 4
"""Most tokens of a conversation with its answer, as a multiple of the context of fills."""


def candidate_of(said: Said, text: str, syntax: Syntax = "unchecked", token_ends: Sequence[int] = ()) -> Candidate:
    """A candidate with `text`, which comes from an answer."""
    count = max(1, len(said.logs))
    return Candidate(
        text=text,
        tokens=len(said.ids),
        confidence=min(1.0, math.exp(sum(said.logs) / count)),
        score=sum(said.logs),
        syntax=syntax,
        token_confidence=tuple(math.exp(min(0.0, log)) for log in said.logs),
        token_ends=tuple(token_ends),
    )


def follows_instructions(model: Model) -> bool:
    """Whether a model is causal and was trained to answer messages."""
    return model.chat is not None and model.causal is not None


def read_context(model: Model, ids: Sequence[int]) -> Generator[None]:
    """Encode a context piece by piece, so that newer requests and cancels need not wait for all of it."""
    for end in range(PIECE, len(ids), PIECE):
        if model.prefill is not None and model.prefill.unread(ids[:end]):
            model.prefill.read_ahead(ids[:end])
            yield None


def write_answer(
    model: Model, context: Sequence[int], answer: Said, old: OldText, is_done: Callable[[Said], bool]
) -> Generator[None]:
    """Continue `answer` after `context` until it ends or `is_done`, which is called after each token; yields after each
    pass. `old`: the source of drafts, which follows the answer."""
    assert model.causal is not None
    head = model.causal
    greedy = Greedy(head, answer, is_done)
    text, known = head.begin(model.encode(context), written=answer.ids), list[int]()
    old.write(answer.ids)
    seen = NGrams([*context, *answer.ids])
    while not greedy.done:
        tree, _ = tree_of(old.following(seen, head.ends), known, old.rows, head.cost, old.sure)
        greedy.logits, followed = head.check(text, tree), len(answer.ids)
        path, token = accepted(tree, len(known), greedy.next)
        text, known = head.accept(text, path), [] if token is None else [token]
        old.write(answer.ids[followed:])
        seen.add(answer.ids[followed:])
        yield
