"""Answers to messages, as OpenAI's clients send them. The messages are drafts: most answers about code repeat them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import accumulate

from engine.common.errors import BadInput
from engine.common.request import Draft, FillRequest, Timings
from engine.fill.deadline import Deadline
from engine.fill.executor import Filling, filled_by
from engine.fill.greedy import Said
from engine.fill.pieces import Clock
from engine.fill.rewriting.answer import LONGEST, candidate_of, follows_instructions, read_context, write_answer
from engine.fill.rewriting.old_text import OldText
from engine.models.base import Model
from engine.models.checkpoints.coders import CODERS

_TOKEN_CHARS = 16
"""Most characters of a token in a sensible message; longer messages are refused before they are tokenized."""


def chat(model: Model, request: FillRequest, clock: Clock = time.perf_counter) -> Filling:
    """Answer `request.messages` step by step: see engine.fill.executor. Raises BadInput at the first step."""
    began = clock()
    limit = LONGEST * model.info.context_limit
    context = _context(model, request, limit)
    most = min(request.max_tokens, limit - len(context))
    yield from read_context(model, context)
    encoded = clock()
    answer, deadline = Said(), Deadline(request.deadline_ms, began, clock)
    deadline.step_begins()
    forwards = 0
    is_done = _until(model, request.stop, most)
    for _ in write_answer(model, context, answer, OldText(context), is_done):
        forwards += 1
        # The first pass reads the end of the context.
        if deadline.step_is_done(usual=forwards > 1):
            break
        text = model.detokenize(answer.ids)
        # Bytes that are no character yet.
        yield Draft(step=forwards, text=text, settled=len(text.rstrip("\N{REPLACEMENT CHARACTER}")))
    text = model.detokenize(answer.ids)
    return filled_by(
        model,
        [candidate_of(answer, text, token_ends=_ends(model, answer.ids))],
        forwards=forwards,
        context_tokens=len(context),
        ms=Timings(encode=(encoded - began) * 1000, denoise=(clock() - encoded) * 1000, total=(clock() - began) * 1000),
    )


def _context(model: Model, request: FillRequest, limit: int) -> tuple[int, ...]:
    """Raises BadInput for a model that answers no messages, and for too few or too many."""
    if not follows_instructions(model) or model.chat is None:
        coder = next(iter(CODERS))
        raise BadInput(
            f"The model {model.info.name} answers no messages; {coder} does: `dg-lsp pull {coder}`, then start the "
            f"engine with `--model {coder}`."
        )
    if not request.messages:
        raise BadInput("There is nothing to answer: send at least one message.")
    if sum(len(each.content) for each in request.messages) <= limit * _TOKEN_CHARS:
        said = [{"role": each.role, "content": each.content} for each in request.messages]
        context = tuple(model.chat.ids(said))
        if len(context) < limit:
            return context
    raise BadInput(f"The messages have more than the {limit:,} tokens that {model.info.name} reads: send less.")


def _until(model: Model, stop: Sequence[str], most: int) -> Callable[[Said], bool]:
    """A function: whether an answer has `most` tokens, or one of these texts in it."""
    # A character may be several tokens, and what ends a text may belong to the next one.
    tail = 4 * max(map(len, stop), default=0) + 4

    def is_done(said: Said) -> bool:
        if len(said.ids) >= most:
            return True
        text = model.detokenize(said.ids[-tail:]) if stop else ""
        return any(word in text for word in stop)

    return is_done


def _ends(model: Model, ids: Sequence[int]) -> list[int]:
    """Where each token ends in the text; a token that ends within a character ends where that does."""
    data = [model.vocabulary.bytes[token] for token in ids]
    whole = b"".join(data)
    return [len(whole[:end].decode(errors="ignore")) for end in accumulate(map(len, data))]
