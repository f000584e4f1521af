"""A test model that knows the answers: `--model oracle:PATH.json`. It tests editors, protocol and loop without weights.

The file holds cases, each a text with its answer between markers: `{"cases": [{"text": "a = ▮1▮\\n"}]}`. A request
matches a case where the text around its gap occurs in the case's text, and is answered with what stands between. So a
gap that starts or ends elsewhere, as while typing along, gets the rest, and a whole file between markers answers any
gap in it. Tokens are the frequent words of the cases and the bytes of UTF-8; any text survives them.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, takewhile
from pathlib import Path
from typing import Literal

import torch
from cattrs import Converter, transform_error
from torch import Tensor

from engine.errors import BadInput, ModelError
from engine.marked import gap_at_markers
from engine.models.base import Context, Facts, Noise, Prompt, Rows, Sampling
from engine.request import FillRequest

PAD, INSTRUCTION, LANGUAGE, SUFFIX, PREFIX, END = range(256, 262)
_FIRST_WORD = 262
_VOCAB_SIZE = 512
_NEAR_CHARS = 256
"""Characters on either side of the gap that the oracle looks at; more would cost time and tell no cases apart."""
_PIECE = re.compile(r"\w+|[^\S\r\n]+|\s|[^\w\s]")
_BRACKET = re.compile(r"[()\[\]{}]")
_UNFINISHED = re.compile(r"[^\w\s)\]}\"'`;.!?]\s*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slip:
    """A token that the oracle gets wrong until it is re-noised."""

    at: int
    """Index in the answer's tokens."""
    text: str
    """Stands there instead; one ASCII character."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One text and how its gap is answered."""

    text: str
    alternatives: tuple[str, ...] = ()
    """Other answers, for further rows of a request."""
    instruction: str | None = None
    """Only requests with this instruction match; None: any."""
    language: str | None = None
    """Only requests in this language match; None: any."""
    confidence: float = 0.9999
    """Probability of a revealed token."""
    reveal: int = 4096
    """Tokens revealed by step, from the left."""
    reach: int = 4096
    """Tokens of an answer at most; a longer one ends with a line that may end a statement, if there is one."""
    delay_ms: float = 0.0
    """Time a step takes."""
    slip: Slip | None = None
    fault: Literal["out_of_memory", "defect"] | None = None
    """Every step fails."""

    @cached_property
    def parts(self) -> tuple[str, str, str]:
        """Before the gap, the answer, behind it."""
        gap = gap_at_markers(self.text)
        return gap.prefix, gap.old, gap.suffix


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleFile:
    """What the JSON file holds."""

    cases: tuple[Case, ...]


@dataclass(slots=True, kw_only=True, eq=False)
class OracleContext:
    """A gap with the answers known for it."""

    length: int
    case: Case
    answers: Sequence[Sequence[int]]
    suffix: Sequence[int]
    slipped: bool = False
    """Whether the slip stood on a canvas already."""
    mended: bool = False
    """Whether it has been taken off again."""


class Oracle:
    """A `Model` without weights; deterministic."""

    def __init__(self, name: str, cases: Sequence[Case]) -> None:
        self._cases = cases
        words = Counter(piece for case in cases for piece in _PIECE.findall("".join(case.parts)) if len(piece) > 1)
        frequent = [word for word, _ in words.most_common(_VOCAB_SIZE - _FIRST_WORD)]
        self._ids = {word: _FIRST_WORD + index for index, word in enumerate(frequent)}
        controls = [b""] * (_FIRST_WORD - PAD)
        self._bytes = [bytes([value]) for value in range(256)] + controls + [word.encode() for word in frequent]
        self.facts = Facts(
            name=name,
            family="oracle",
            parameters=0,
            device="cpu",
            dtype="float32",
            length="slack",
            noise=Noise(mask_id=None, vocab_size=len(self._bytes)),
            sampling=Sampling(
                max_steps=48,
                t_min=0.4,
                t_max=0.8,
                entropy_bound=0.1,
                stability_threshold=1,
                confidence_threshold=0.005,
            ),
            pad_id=PAD,
            forbidden_ids=(INSTRUCTION, LANGUAGE, SUFFIX, PREFIX, END),
            canvas_length=512,
            widths=(128,),
            context_limit=4096,
            instructions=True,
        )

    @property
    def line_breaks(self) -> Sequence[int]:
        """Tokens that hold a line break."""
        return [token for token, spelled in enumerate(self._bytes) if b"\n" in spelled or b"\r" in spelled]

    def agreeing(self, head: bytes) -> Sequence[int]:
        """Tokens that begin with `head`, and those that `head` begins with."""
        spelled = enumerate(self._bytes)
        return [token for token, own in spelled if own and (own.startswith(head) or head.startswith(own))]

    def spelling(self, token: int) -> bytes:
        """The bytes of one token; none for control tokens."""
        return self._bytes[token]

    def tokenize(self, text: str) -> list[int]:
        """Words that are tokens, bytes otherwise."""
        ids: list[int] = []
        for piece in _PIECE.findall(text):
            word = self._ids.get(piece)
            ids.extend((word,) if word is not None else piece.encode())
        return ids

    def detokenize(self, ids: Sequence[int]) -> str:
        """The inverse of `tokenize`; bytes that are no UTF-8, as noise is, become replacement characters."""
        return b"".join(self._bytes[token] for token in ids).decode(errors="replace")

    def prompt(self, request: FillRequest) -> Prompt:
        """Instruction, language, suffix, prefix, as far as the oracle looks."""
        near = self.tokenize(request.suffix[:_NEAR_CHARS])
        context = [INSTRUCTION, *self.tokenize(request.instruction), LANGUAGE, *self.tokenize(request.language)]
        context += [SUFFIX, *near, PREFIX, *self.tokenize(request.prefix[-_NEAR_CHARS:])]
        return Prompt(context=tuple(context), suffix=tuple(near))

    def encode(self, ids: Sequence[int]) -> OracleContext:
        """Read the gap's surroundings back from the context and look up what is known about them."""
        language_at, suffix_at, prefix_at = ids.index(LANGUAGE), ids.index(SUFFIX), ids.index(PREFIX)
        case, answers = self._look_up(
            prefix=self.detokenize(ids[prefix_at + 1 :]),
            suffix=self.detokenize(ids[suffix_at + 1 : prefix_at]),
            instruction=self.detokenize(ids[1:language_at]),
            language=self.detokenize(ids[language_at + 1 : suffix_at]),
        )
        return OracleContext(
            length=len(ids),
            case=case,
            answers=[self._within_reach(answer, case.reach) for answer in answers],
            suffix=ids[suffix_at + 1 : prefix_at],
        )

    def step(self, rows: Rows) -> Tensor:
        """Peaked logits at what is revealed of each row's answer."""
        contexts = [_own(context) for context in rows.contexts]
        delay_ms = max(context.case.delay_ms for context in contexts)
        if delay_ms:
            time.sleep(delay_ms / 1000)
        logits = torch.zeros(int(rows.open.sum()), len(self._bytes))
        turns: Counter[int] = Counter()
        done = 0
        for row, context in enumerate(contexts):
            canvas, open_ = rows.canvas[row, : rows.lengths[row]].tolist(), rows.open[row].tolist()
            target = self._target(context, canvas, turns[id(context)], open_)
            turns[id(context)] += 1
            count = sum(open_)
            self._reveal(logits[done : done + count], context.case, canvas, target, open_)
            done += count
        return logits

    def score(self, context: Context, rows: Sequence[Sequence[int]]) -> list[list[float]]:
        """High where a row is an answer followed by the suffix."""
        known_context = _own(context)
        likely = math.log(known_context.case.confidence)
        unlikely = math.log((1 - known_context.case.confidence) / len(self._bytes))
        known = [[*answer, *known_context.suffix] for answer in known_context.answers]

        def score(row: Sequence[int]) -> list[float]:
            rank, nearest = max(enumerate(known), key=lambda entry: _agreement(entry[1], row))
            # Alternatives are a little less likely, one after the other, so that they rank in their order.
            return [likely - rank / 100 if nearest[at : at + 1] == [id] else unlikely for at, id in enumerate(row)]

        return [score(row) for row in rows]

    def _look_up(self, *, prefix: str, suffix: str, instruction: str, language: str) -> tuple[Case, tuple[str, ...]]:
        for case in self._cases:
            if case.instruction not in (None, instruction) or case.language not in (None, language):
                continue
            answer = _between(case, prefix, suffix)
            if answer is not None:
                whole = answer == case.parts[1]
                return case, (answer, *(case.alternatives if whole else ()))
        return Case(text="▮▮"), ("",)

    def _within_reach(self, answer: str, reach: int) -> list[int]:
        ids: list[int] = []
        said, whole = "", 0
        for line in answer.splitlines(keepends=True):
            more = self.tokenize(line)
            ends = len(ids) + len(more) - (line[-1:] == "\n")
            if ends > reach:
                return ids[:whole] if whole else [*ids, *more][:reach]
            said += line
            ids += more
            if said.strip() and not _is_unfinished(said):
                whole = ends
        return ids

    def _target(self, context: OracleContext, canvas: list[int], turn: int, open_: list[bool]) -> list[int]:
        """What the oracle wants on the canvas: the answer that it resembles most, on a tie one by turns."""
        order = [context.answers[(turn + offset) % len(context.answers)] for offset in range(len(context.answers))]
        answer = max(order, key=lambda ids: _agreement(ids, canvas))
        target = _around_fixed(answer, canvas, open_)
        slip = context.case.slip
        if slip and slip.at < len(answer) and slip.at < len(canvas):
            wrong = self.tokenize(slip.text)[0]
            stands = canvas[slip.at] == wrong
            context.mended |= context.slipped and not stands
            context.slipped |= stands
            if not context.mended:
                target[slip.at] = wrong
        return target

    def _reveal(self, logits: Tensor, case: Case, canvas: list[int], target: list[int], open_: list[bool]) -> None:
        if case.fault == "out_of_memory":
            torch.empty(2**60)
        if case.fault == "defect":
            raise RuntimeError("The oracle was told to fail.")
        done = next(
            (at for at, (here, wanted) in enumerate(zip(canvas, target, strict=True)) if here != wanted), len(target)
        )
        # What is not revealed yet looks like an unused slot, faintly, so that a draft is the head of the answer.
        told = [at < done + case.reveal for at in range(len(target)) if open_[at]]
        ids = [wanted for at, wanted in enumerate(target) if open_[at]]
        sure = math.log(case.confidence / (1 - case.confidence) * (len(self._bytes) - 1))
        places = torch.tensor([id if known else PAD for id, known in zip(ids, told, strict=True)], dtype=torch.int64)
        peaks = torch.tensor([sure if known else 1.0 for known in told])
        logits.scatter_(1, places[:, None], peaks[:, None])


def read_oracle(path: Path) -> Oracle:
    """The oracle of a JSON file. Raises ModelError."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        cases = Converter(forbid_extra_keys=True).structure(held, OracleFile).cases
        # Tensors as small as these cost more to share among threads than to compute.
        torch.set_num_threads(1)
        return Oracle(f"oracle:{path}", cases)
    except OSError as error:
        raise ModelError(f"The oracle file {path} can't be read ({error.strerror}).") from None
    except (ValueError, BadInput) as error:
        raise ModelError(f"The oracle file {path} is not valid: {error}") from None
    except Exception as error:  # noqa: BLE001 cattrs raises groups of whatever went wrong
        raise ModelError(f"The oracle file {path} is not valid: {'; '.join(transform_error(error))}.") from None


def _between(case: Case, prefix: str, suffix: str) -> str | None:
    """What stands between the two in the case's text, where both occur there; nearest to the marked gap."""
    before, answer, after = case.parts
    text = before + answer + after
    whole = len(prefix) < _NEAR_CHARS
    starts = [len(prefix)] if whole and text.startswith(prefix) else _ends(text, prefix) if prefix else []
    for start in sorted(starts, key=lambda at: abs(at - len(before))):
        end = _start_of(text, suffix, start)
        if end >= 0:
            return text[start:end]
    return None


def _start_of(text: str, suffix: str, start: int) -> int:
    if len(suffix) < _NEAR_CHARS and text.endswith(suffix) and start <= len(text) - len(suffix):
        return len(text) - len(suffix)
    return text.find(suffix, start) if suffix else -1


def _ends(text: str, part: str) -> list[int]:
    ends: list[int] = []
    at = text.find(part)
    while at >= 0:
        ends.append(at + len(part))
        at = text.find(part, at + 1)
    return ends


def _around_fixed(answer: Sequence[int], canvas: Sequence[int], open_: Sequence[bool]) -> list[int]:
    """The answer laid around what is fixed on a canvas: what does not fill an open stretch leaves slots unused."""
    target: list[int] = []
    said = 0
    for is_open, group in groupby(zip(open_, canvas, strict=False), key=lambda pair: pair[0]):
        stretch = [token for _, token in group]
        if not is_open:
            target += stretch
            said += len(stretch)
            continue
        behind = list(takewhile(lambda at: not open_[at], range(len(target) + len(stretch), len(canvas))))
        last = not behind or behind[-1] == len(canvas) - 1
        end = len(answer) if last else _index_of([canvas[at] for at in behind], answer, said)
        target += [*answer[said:end], *[PAD] * len(stretch)][: len(stretch)]
        said = end
    return target


def _index_of(part: Sequence[int], ids: Sequence[int], start: int) -> int:
    """Where a part of some tokens begins; their end where it does not occur."""
    places = range(start, len(ids) - len(part) + 1)
    return next((at for at in places if list(ids[at : at + len(part)]) == list(part)), len(ids))


def _is_unfinished(text: str) -> bool:
    """Whether a bracket or a long string is open, or the last line asks for more, as `if x:` and `y = (a) =>` do."""
    depth = 0
    for bracket in _BRACKET.findall(text):
        depth = max(0, depth + (1 if bracket in "([{" else -1))
    return depth > 0 or text.count('"""') % 2 == 1 or _UNFINISHED.search(text) is not None


def _own(context: Context) -> OracleContext:
    assert isinstance(context, OracleContext), "a context of another model"
    return context


def _agreement(ids: Sequence[int], row: Sequence[int]) -> int:
    return sum(a == b for a, b in zip(ids, row, strict=False))
