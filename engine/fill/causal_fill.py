"""A gap filled by a causal model: drafts checked by it, its answers checked by the grammar."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.common.request import Cell, Draft, Syntax
from engine.fill.causal_decoding import Reach, decode
from engine.fill.draft_sources import DraftSources
from engine.fill.draft_tree import likeliest
from engine.fill.ends import Ends, is_told
from engine.fill.executor import Work
from engine.fill.gap import Gap
from engine.fill.greedy import Said, likeliest_other
from engine.fill.hypotheses import NO_ROW, Hypothesis, shortened
from engine.fill.missing_openers import openers_missing, with_opener
from engine.fill.next_line import NextLine
from engine.fill.tokens import token_bounds
from engine.fill.validation import checked, valid_fills, validated_fills
from engine.models.base import CausalHead
from engine.syntax.brackets import indentation
from engine.syntax.questions import ValidatedFill

UNMET = math.log(0.3)
"""Log-probability of the end of a text after which neither the model nor the text after the cursor says that the gap
ends."""
MET = math.log(0.01)
"""Log-probability from which the line after the cursor ends the gap although another token is likelier: the one stands
there, the other is one of many. In 100 development gaps coder-0.5b is right in 34 instead of 32, in 0.81 of the
passes."""
UNLIKELY = math.log(0.1)
"""Log-probability of what a text goes on with after its first statement below which that statement is the answer. In
75 development gaps coder-0.5b is right as often as without it, in 0.94 of the time."""
OPENS = math.log(0.01)
"""Log-probability of a bracket that has to be opened from which it is worth more than further answers."""
_FOLLOWS = 40
"""Characters after the cursor that drafts end with."""
_NEAR = 400
"""Characters before the cursor in which lines may show its indentation."""
_UNIT = "    "
REDONE = 2
"""Further answers that are written if the grammar refuses all so far."""
IDLE = 2
"""Further answers that are written if the model only repeats what follows the cursor, as if nothing were missing."""


def causal_fill(gap: Gap, known: Sequence[Hypothesis], *, canvases: bool = False) -> Work[list[Hypothesis]]:
    """The requested number of answers by the causal model, and others if the grammar refuses all of these. `known`:
    answers from other sources, which are also drafts; `canvases`: see `Reach`."""
    head = gap.model.causal
    assert head is not None
    ends = Ends(gap.request)
    # Cut into tokens together with what follows, as the last one may hold a line break.
    follows = gap.request.suffix[:_FOLLOWS]
    texts = [gap.request.guess] if gap.request.guess else []
    texts += [each.text for each in known]
    texts = [gap.model.tokenize(gap.prompt.head + text + follows) for text in texts]
    texts += [gap.model.tokenize(text)[:-1] for text in _beginnings(gap, ends)]
    next_line = _next_line(gap, ends)
    drafts = DraftSources(
        gap.prompt.context,
        gap.prompt.suffix,
        texts,
        next_line=next_line,
        stops=head.ends,
        pad=gap.model.info.pad_id,
    )
    reach = Reach(
        most=gap.budget,
        reached=lambda said: _is_reached(gap, ends, said),
        # Who asks where nothing seems to be missing wants what else would be likely.
        not_first=[*head.ends],
        next_line=next_line,
        canvases=canvases,
    )
    begun: Said | None = Said()
    found = list[Said]()
    answers = _Answers(gap, ends)
    while begun is not None:
        found.append(begun)
        for _ in decode(gap, head, begun, drafts, reach):
            yield _draft(gap, begun, ends, drafts, first=len(found) == 1)
        idle = sum(ends.adds_nothing(_answer(gap, ends, each)) for each in found)
        wanted = gap.request.n + min(idle, IDLE)
        if len(found) >= wanted:
            yield from answers.check(found)
            if len(found) == wanted and answers.refused and not answers.offered and not gap.should_stop():
                yield from answers.open(head)
            if answers.offered or not answers.refused or len(found) >= wanted + REDONE:
                break
        begun = None if gap.should_stop() else _other(gap, ends, found, answers.wrong_at)
    yield from answers.check(found)
    offered = yield from answers.with_heads()
    if len(offered) + len(known) == 1:
        # Nothing to hold it against: that it is read once more, with what follows, would tell nobody anything.
        return [replace(each, score=(*each.logs, math.log(each.likely) - sum(each.logs))) for each in offered]
    return offered


def _beginnings(gap: Gap, ends: Ends) -> list[str]:
    """How the gap's text may begin, but for each one's last token: as the prompt's head was cut before, of which only
    the last token may go on after the cursor; at the beginning of a line as lines beside it, or one level deeper."""
    head, before = gap.prompt.head, gap.request.prefix
    if head and not head.isspace():
        return [head]
    blanks = {""}
    if before.endswith("\n"):
        near = [line for line in ("\n" + before)[-_NEAR:].split("\n")[1:] if line.strip()]
        blanks = {line[: indentation(line)] for line in (*near, ends.next_lines)}
        blanks |= {near[-1][: indentation(near[-1])] + min(blanks - {""}, key=len, default=_UNIT)} if near else set()
    # The last blank goes with a word.
    return [head + each + "a" for each in sorted(blanks)]


def _is_reached(gap: Gap, ends: Ends, said: Said) -> bool:
    """Whether a text reaches the gap's end, or goes on after its first statement in a way that is not likely enough."""
    found = ends.found(gap.text(said.ids))
    if found.end is not None or found.further is None:
        return found.end is not None
    first = bisect_left(token_bounds(gap.model, said.ids), len(gap.prompt.head) + found.further)
    return sum(said.logs[first:]) < UNLIKELY


def _next_line(gap: Gap, ends: Ends) -> NextLine:
    """The line at which the gap ends, up to what tells it from others."""
    ids = gap.model.tokenize(ends.next_lines)
    told = (count for count in range(1, len(ids)) if is_told(gap.model.detokenize(ids[:count])))
    return NextLine(
        ids=ids[: next(told, len(ids))],
        least=MET if ends.next_is_statement else 0.0,
        spelled=gap.model.vocabulary.bytes.__getitem__,
    )


def _answer(gap: Gap, ends: Ends, said: Said) -> str:
    text = gap.text(said.ids)
    return text[: ends.cut(text)]


def _draft(gap: Gap, said: Said, ends: Ends, drafts: DraftSources, *, first: bool) -> Draft:
    """The state of the answer after a pass, for display: the text so far, then the next draft as noise. `first`:
    whether no other answer was written before it."""
    text = gap.text(said.ids)
    coming = likeliest(drafts.after(said.ids))
    cells = [Cell(text=gap.model.detokenize([token]), state="accepted") for token in said.ids]
    cells += [Cell(text=gap.model.detokenize([token]), state="noise") for token in coming]
    settled = 0 if gap.request.workspace_matches or gap.request.n > 1 or not first else ends.settled(text)
    return Draft(step=gap.written, text=text[: ends.cut(text)], settled=settled, cells=gap.after_head(cells))


def _hypothesis(gap: Gap, ends: Ends, said: Said, *, broken: bool = False) -> Hypothesis | None:
    """None if the answer is no text. `broken`: with the line break after it; None if there is none."""
    head, spelled = gap.prompt.head, gap.model.detokenize(said.ids)
    text = spelled.removeprefix(head)
    if not spelled.startswith(head):
        return None
    size = ends.cut(text)
    if broken and not text.startswith("\n", size):
        return None
    cut = text[: size + broken]
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
        end = max(UNMET, sum(said.logs[count:]) if ends.met(text) else UNMET)
    return Hypothesis(
        row=NO_ROW,
        text=cut,
        ids=tuple(ids),
        confidence=tuple(map(math.exp, logs)),
        likely=math.exp(sum(said.logs[:count]) + end),
    )


def _other(gap: Gap, ends: Ends, found: Sequence[Said], wrong_at: Mapping[int, int]) -> Said | None:
    """The beginning of the likeliest answer that was not written yet. `wrong_at`: where the first problem of some
    answers begins; another token after that place would not help."""
    bounds = [token_bounds(gap.model, said.ids) for said in found]
    texts = [gap.text(said.ids) for said in found]
    # Where only what follows the cursor was said, something else may be on the way to it.
    sizes = [ends.cut(text) or len(text) for text in texts]
    sizes = [min(size, wrong_at.get(number, size) + 1) for number, size in enumerate(sizes)]

    def may(number: int, at: int, token: int) -> bool:
        return 0 <= bounds[number][at] - len(gap.prompt.head) < sizes[number] and gap.is_text(token)

    return likeliest_other(found, may)


class _Answers:
    """Answers that the grammar has checked."""

    def __init__(self, gap: Gap, ends: Ends) -> None:
        self._gap, self._ends = gap, ends
        self._count = 0
        """Number of answers that were checked."""
        self.offered: list[Hypothesis] = []
        """Answers that may stand in the gap as they are."""
        self.refused: list[Hypothesis] = []
        self.opened: list[Hypothesis] = []
        """Answers up to a bracket that has to be opened, the likeliest first."""
        self.wrong_at: dict[int, int] = {}
        """Where the first problem of each refused answer begins, by the answer's number."""

    def check(self, found: Sequence[Said]) -> Work[None]:
        """Check the answers that were not checked yet."""
        gap, ends, fresh = self._gap, self._ends, range(self._count, len(found))
        self._count = len(found)
        told = [number for number in fresh if not ends.adds_nothing(_answer(gap, ends, found[number]))]
        said = {number: each for number in told if (each := _hypothesis(gap, ends, found[number]))}
        # What follows the cursor may have to stand in a line of its own, as the model says it.
        further = [number for number in said if ends.goes_on]
        broken = {number: each for number in further if (each := _hypothesis(gap, ends, found[number], broken=True))}
        ways = [*said.items(), *broken.items()]
        answers = yield from validated_fills(gap.request, [each.text for _, each in ways], gap.deadline)
        clean = dict[int, Hypothesis]()
        for (number, each), answer in zip(ways, answers, strict=True):
            if answer and answer.verdict and answer.verdict.problems:
                first = min(problem.start for problem in answer.verdict.problems)
                self.wrong_at[number] = max(first, self.wrong_at.get(number, 0))
            elif answer:
                clean.setdefault(number, _checked(gap, each, answer, "repaired" if self.refused else "ok"))
        self.offered += [clean[number] for number in said if number in clean]
        self.refused += [each for number, each in said.items() if number in self.wrong_at and number not in clean]

    def open(self, head: CausalHead) -> Work[None]:
        """Offer the first refused answer up to a bracket that it has to open, where the model nearly opens one."""
        gap, openers = self._gap, openers_missing(self._gap)
        opened = with_opener(gap, head, self.refused[0].ids, openers) if openers else []
        said = {each.text: each for one in opened if (each := _hypothesis(gap, self._ends, one))}
        found = yield from valid_fills(gap.request, [*said], gap.deadline)
        # What nobody had the time to check is still what was refused.
        valid = [_checked(gap, said[text], each, "repaired") for text, each in found.items() if each.verdict]
        self.opened = sorted(valid, key=lambda each: -each.likely)
        self.offered += [each for each in self.opened if each.logs[-1] >= OPENS][: gap.request.n]

    def with_heads(self) -> Work[list[Hypothesis]]:
        """The offered answers; if these are too few, also the valid heads of refused ones; if there is nothing else, an
        answer that opens a bracket where the model hardly would."""
        if not self.refused or len(self.offered) >= self._gap.request.n:
            return self.offered
        texts, gap = [each.text for each in self.refused], self._gap
        heads = yield from validated_fills(gap.request, texts, gap.deadline, cut=True)
        cut = [
            _checked(gap, each, found, "cut")
            for each, found in zip(self.refused, heads, strict=True)
            if found and found.verdict
        ]
        return [*self.offered, *cut] or self.opened[:1]


def _checked(gap: Gap, said: Hypothesis, found: ValidatedFill, syntax: Syntax = "ok") -> Hypothesis:
    if found.text != said.text:
        said = shortened(gap, said, found.text)
        said = replace(said, likely=math.exp(sum(said.logs) + UNMET))
    return checked(said, found, syntax)
