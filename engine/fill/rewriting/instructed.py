"""A selection rewritten by a model that follows instructions: it answers with code, and the old text is its draft.

The answer must be code and not prose, add no syntax problem, and keep the names that the file uses elsewhere. If the
first answer fails, or is the old text, the likeliest other answers are written.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator

from msgspec.structs import replace

from engine.common.errors import BadInput
from engine.common.newlines import emptied
from engine.common.request import Candidate, Draft, FillRequest, Syntax, Timings
from engine.fill.deadline import Deadline
from engine.fill.executor import Filling, Work, filled_by
from engine.fill.greedy import Said, likeliest_other
from engine.fill.line_ends import in_line_feeds
from engine.fill.pieces import Clock, check_rewrite
from engine.fill.rewriting.answer import LONGEST, candidate_of, read_context, write_answer
from engine.fill.rewriting.conversation import (
    APART,
    Conversation,
    answered,
    conversation,
    from_selection,
    is_whole,
    says_told,
    shown,
    without_prose,
)
from engine.fill.rewriting.kept import doubts, kept_alone, lost_names, with_kept
from engine.fill.rewriting.old_text import OldText
from engine.fill.rewriting.preview import previewed
from engine.fill.rewriting.removal import removes_all
from engine.fill.validation import validated_fills
from engine.models.base import Model
from engine.syntax.languages import language_of

_TRIES = 4
"""Most answers that are written while some may not be offered."""
_DOUBTFUL_TRIES = 2
"""Most further answers after one with doubts."""
_UNLIKELY = -5.0
"""Log-probability below which no further answer is tried once there is one to offer."""
_GROWTH, _ROOM = 1.5, 256
"""Most tokens of an answer: the old text times _GROWTH, plus _ROOM."""


class _Rewrite:
    """The state that all answers to one request share."""

    def __init__(self, model: Model, request: FillRequest, clock: Clock) -> None:
        assert model.causal is not None
        assert model.chat is not None
        self.model, self.ends, self.began = model, model.causal.ends, clock()
        check_rewrite(request)
        self.request, self.before, self.after = _without_blank_ends(request)
        self.deadline = Deadline(request.deadline_ms, self.began, clock)
        self.talk: Conversation = conversation(self.request)
        self.context = tuple(model.chat.ids(self.talk.messages, self.talk.opening))
        self.old = model.tokenize(self.talk.old + self.talk.closing)
        self.told = model.tokenize(self.talk.told + self.talk.closing) if self.talk.told else []
        self.most = int(len(self.old) * _GROWTH) + _ROOM
        self.forwards = 0

    def draft(self, text: str, settled: int = 0) -> Draft:
        """`text` in the place of `old`; its first `settled` characters are final."""
        settled = len(self.before) + min(settled, len(text)) if settled else 0
        return Draft(step=self.forwards, text=self.before + text + self.after, settled=settled)

    def placed(self, text: str) -> str:
        """`text` between the blank ends of the selection."""
        if not text:
            request, lead = self.request, len(self.request.prefix) - len(self.before)
            return emptied(request.prefix[:lead], self.before + self.after, request.suffix[len(self.after) :])
        return self.before + text + self.after

    def answer(self, said: Said) -> str | None:
        """The text that replaces `old`; None if it is no answer, or an incomplete one."""
        if said.end is None:
            return None
        text = self.model.detokenize(said.ids)
        if says_told(self.talk, text) and APART in text and APART not in self.talk.old:
            return None
        new = answered(self.request, text, self.talk.closing)
        if new == "":
            return kept_alone(self.request)
        return new and with_kept(self.request.old, new, self.request.keep)

    def from_selection(self, said: Said) -> Said | None:
        """The beginning of another answer, which starts like the selection; None if this one did."""
        same = next((at for at, pair in enumerate(zip(said.ids, self.old, strict=False)) if len({*pair}) > 1), None)
        if same is None or not says_told(self.talk, self.model.detokenize(said.ids)):
            return None
        instead = Said(ids=self.old[: same + 1], logs=said.logs[:same], others=said.others[:same])
        instead.logs.append(_UNLIKELY)
        instead.others.append((said.logs[same], said.ids[same]))
        return instead

    def is_done(self, said: Said) -> bool:
        """Whether the answer ends here; one that has become too long is none."""
        if self.talk.closing in self.model.detokenize(said.ids[-4 - len(self.talk.closing) :]) and is_whole(
            self.request, self.model.detokenize(said.ids), self.talk.closing
        ):
            said.end = 0.0
        return said.end is not None or len(said.ids) >= self.most


def _without_blank_ends(request: FillRequest) -> tuple[FillRequest, str, str]:
    """The request without the blank ends of the selection, and these. They stay, with the first line's indentation and
    the last line's end."""
    old = request.old.strip()
    before, _, after = request.old.partition(old)
    keep = tuple((max(start - len(before), 0), max(end - len(before), 0)) for start, end in request.keep)
    bare = replace(request, prefix=request.prefix + before, old=old, suffix=after + request.suffix, keep=keep)
    return bare, before, after


@in_line_feeds
def instructed(model: Model, request: FillRequest, clock: Clock = time.perf_counter) -> Filling:
    """Rewrite `request.old` step by step: see engine.fill.executor. Raises BadInput at the first step."""
    work = _Rewrite(model, request, clock)
    if len(work.context) + work.most > LONGEST * model.info.context_limit:
        raise BadInput(
            f"The selection has {len(work.old):,} tokens, more than {model.info.name} rewrites: select less."
        )
    found = yield from _removed(work)
    if not found:
        yield from read_context(model, work.context)
    encoded = clock()
    if not found:
        work.deadline.step_begins()
        yield from _preview(work)
        found = yield from _candidates(work)
    return filled_by(
        model,
        [replace(each, text=work.placed(each.text)) for each in found],
        forwards=work.forwards,
        context_tokens=len(work.context),
        ms=Timings(
            encode=(encoded - work.began) * 1000,
            denoise=(clock() - encoded) * 1000,
            total=(clock() - work.began) * 1000,
        ),
    )


def _removed(work: _Rewrite) -> Work[list[Candidate]]:
    """The kept spans alone, if the instruction requests no more than removal and the file allows it."""
    if not removes_all(work.request.instruction):
        return []
    text = kept_alone(work.request)
    syntax = None if text is None else (yield from _syntax(work, text))
    return [candidate_of(Said(), text or "", syntax)] if syntax else []


def _preview(work: _Rewrite) -> Generator[Draft]:
    """A preview of the likeliest first change, which then is a draft."""
    talk = work.talk
    passes = previewed(work.model, work.context, talk.old, talk.closing, work.request.instruction)
    for number, (text, met) in enumerate(passes):
        work.forwards += 1
        if text != talk.old:
            yield work.draft(shown(work.request, text))
        if met:
            work.old = work.model.tokenize(text + talk.closing)
        # The first pass reads the end of the context.
        if work.deadline.step_is_done(usual=number > 0):
            return


def _candidates(work: _Rewrite) -> Work[list[Candidate]]:
    """Answers that may be offered, best first: without doubts, then by likelihood. The old text alone if the model
    writes nothing else."""
    found, refused, said = dict[str, tuple[int, Candidate]](), set[str](), list[Said]()
    begun: Said | None = Said()
    tries = max(_TRIES, 2 * work.request.n)
    while begun is not None and len(said) < tries:
        said.append(begun)
        yield from _write(work, begun)
        text = work.answer(said[-1])
        if text == "" and len(said) > 1:
            # What the model would not say first is no reason to delete anything.
            text = None
        if text is not None and text not in refused and text not in found:
            syntax = yield from _syntax(work, text)
            if syntax and text != work.request.old and not lost_names(work.request, text):
                doubtful = len(doubts(work.request, text))
                found[text] = doubtful, candidate_of(said[-1], text, syntax)
                if doubtful:
                    tries = min(tries, len(said) + _DOUBTFUL_TRIES)
            else:
                refused.add(text)
        sure = sum(not doubtful for doubtful, _ in found.values())
        begun = work.from_selection(said[0]) if len(said) == 1 and not found else None
        begun = begun or likeliest_other(said, lambda _, at, token: token not in work.ends)
        likely = sum(begun.logs) if begun else -math.inf
        # Where one may stand, others are worth their time only if they are nearly as likely.
        if sure >= work.request.n or work.deadline.passed() or (sure and likely < _UNLIKELY):
            break
    ranked = sorted(found.values(), key=lambda each: (each[0], -each[1].score))
    if not ranked and work.request.old in refused:
        return [candidate_of(said[0], work.request.old, "ok")]
    return [candidate for _, candidate in ranked[: work.request.n]]


def _syntax(work: _Rewrite, text: str) -> Work[Syntax | None]:
    """Whether it adds no problem; None if it adds one, or if time ran out."""
    if language_of(work.request.language) is None:
        return "unchecked"
    (found,) = yield from validated_fills(work.request, [text], work.deadline)
    if not (found and found.verdict and found.verdict.is_clean):
        return None
    if text or found.verdict.whole:
        return "ok"
    # An empty text has no problems of its own; it breaks what was whole before.
    (before,) = yield from validated_fills(work.request, [work.request.old], work.deadline)
    return None if before and before.verdict and before.verdict.whole else "ok"


def _write(work: _Rewrite, said: Said) -> Generator[Draft]:
    """Continue `said` up to the end of the answer; yields the text after each pass."""
    old = OldText(work.old, work.told)
    work.deadline.step_begins()
    for number, _ in enumerate(write_answer(work.model, work.context, said, old, work.is_done)):
        work.forwards += 1
        if work.deadline.step_is_done(usual=number > 0):
            return
        yield _draft(work, said, old)


def _draft(work: _Rewrite, said: Said, old: OldText) -> Draft:
    """The text so far, and the rest of the old text as far as it is known."""
    code = without_prose(work.request, work.model.detokenize(said.ids))
    written = from_selection(work.talk, code.partition(work.talk.closing)[0])
    if not written:
        return work.draft(shown(work.request, work.model.detokenize(work.old).partition(work.talk.closing)[0]))
    left = work.model.detokenize(work.old[old.at :]).partition(work.talk.closing)[0] if old.together else ""
    return work.draft(shown(work.request, written + left), len(shown(work.request, written)))
