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
from itertools import groupby, takewhile
from pathlib import Path

import torch
from torch import Tensor

from engine.common.errors import BadInput, ModelError
from engine.common.frames import structured
from engine.common.request import FillRequest
from engine.common.sequences import common_head
from engine.models.base import SCORED_SUFFIX, Capabilities, Context, ModelInfo, Noise, Prompt, Rows, Sampling
from engine.models.logits import Head, Logits, columns
from engine.models.oracle.cases import NEAR_CHARS, Case, OracleFile, Slip, first_line, is_unfinished, look_up
from engine.models.vocabulary import Vocabulary

__all__ = ["END", "PAD", "PREFIX", "Case", "Oracle", "Slip", "read_oracle"]

PAD, INSTRUCTION, LANGUAGE, SUFFIX, PREFIX, LINE, END = range(256, 263)
_FIRST_WORD = 263
_VOCAB_SIZE = 1024
_PIECE = re.compile(r"\w+|[^\S\r\n]+|\s|[^\w\s]")


@dataclass(slots=True, kw_only=True, eq=False)
class OracleContext:
    """A gap with the answers known for it."""

    length: int
    case: Case
    answers: Sequence[Sequence[int]]
    suffix: Sequence[int]
    slipped: bool = False
    """Whether the slip was on a canvas already."""
    mended: bool = False
    """Whether the slip was removed."""


class Oracle(Capabilities):
    """A `Model` without weights; deterministic."""

    def __init__(self, name: str, cases: Sequence[Case]) -> None:
        self._cases = cases
        words = Counter(piece for case in cases for piece in _PIECE.findall("".join(case.parts)) if len(piece) > 1)
        frequent = [word for word, _ in words.most_common(_VOCAB_SIZE - _FIRST_WORD)]
        self._ids = {word: _FIRST_WORD + index for index, word in enumerate(frequent)}
        controls = [b""] * (_FIRST_WORD - PAD)
        spelled = [bytes([value]) for value in range(256)] + controls + [word.encode() for word in frequent]
        self.vocabulary = Vocabulary(spelled)
        self.head = Head(columns, self.vocabulary.size)
        self.info = ModelInfo(
            name=name,
            family="oracle",
            parameters=0,
            device="cpu",
            dtype="float32",
            length="slack",
            noise=Noise(mask_id=None, vocab_size=self.vocabulary.size),
            sampling=Sampling(
                max_steps=48,
                t_min=0.4,
                t_max=0.8,
                entropy_bound=0.1,
                # It says the same however often it is asked, unless it slips, which it has to see.
                stability_threshold=int(any(case.slip for case in cases)),
                confidence_threshold=0.005,
            ),
            pad_id=PAD,
            forbidden_ids=(INSTRUCTION, LANGUAGE, SUFFIX, PREFIX, LINE, END),
            canvas_length=512,
            widths=(128,),
            context_limit=4096,
            instructions=True,
        )

    def tokenize(self, text: str) -> list[int]:
        """Words that are tokens, bytes otherwise."""
        ids: list[int] = []
        for piece in _PIECE.findall(text):
            word = self._ids.get(piece)
            ids.extend((word,) if word is not None else piece.encode())
        return ids

    def prompt(self, request: FillRequest, limit: int | None = None) -> Prompt:
        """Instruction, language, suffix, whether one line is wanted, and prefix, as far as the oracle looks, whatever
        the limit."""
        near = self.tokenize(request.suffix[:NEAR_CHARS])
        context = [INSTRUCTION, *self.tokenize(request.instruction), LANGUAGE, *self.tokenize(request.language)]
        context += [
            SUFFIX,
            *near,
            *([LINE] if request.single_line else []),
            PREFIX,
            *self.tokenize(request.prefix[-NEAR_CHARS:]),
        ]
        return Prompt(context=tuple(context), suffix=tuple(near))

    def encode(self, ids: Sequence[int]) -> OracleContext:
        """Read the gap's surroundings from the context and look up its answers."""
        language_at, suffix_at, prefix_at = ids.index(LANGUAGE), ids.index(SUFFIX), ids.index(PREFIX)
        one_line = ids[prefix_at - 1] == LINE
        case, answers, in_string = look_up(
            self._cases,
            prefix=self.detokenize(ids[prefix_at + 1 :]),
            suffix=self.detokenize(ids[suffix_at + 1 : prefix_at]),
            instruction=self.detokenize(ids[1:language_at]),
            language=self.detokenize(ids[language_at + 1 : suffix_at]),
        )
        return OracleContext(
            length=len(ids),
            case=case,
            answers=[
                self._within_reach(first_line(answer) if one_line else answer, case.reach, in_string)
                for answer in answers
            ],
            suffix=ids[suffix_at + 1 : prefix_at - one_line],
        )

    def step(self, rows: Rows) -> Logits:
        """Peaked logits at what is revealed of each row's answer."""
        contexts = [_own(context) for context in rows.contexts]
        delay_ms = max(context.case.delay_ms for context in contexts)
        if delay_ms:
            time.sleep(delay_ms / 1000)
        logits = torch.zeros(int(rows.open.sum()), self.vocabulary.size)
        turns: Counter[int] = Counter()
        done = 0
        for row, context in enumerate(contexts):
            canvas, open_ = rows.canvas[row, : rows.lengths[row]].tolist(), rows.open[row].tolist()
            target = self._target(context, canvas, turns[id(context)], open_)
            turns[id(context)] += 1
            count = sum(open_)
            self._reveal(logits[done : done + count], context.case, canvas, target, open_)
            done += count
        return Logits(hidden=logits, head=self.head)

    def score(self, context: Context, gaps: Sequence[Sequence[int]], suffix: Sequence[int]) -> list[list[float]]:
        """High where a gap is an answer and the suffix follows it."""
        known_context = _own(context)
        likely = math.log(known_context.case.confidence)
        unlikely = math.log((1 - known_context.case.confidence) / self.vocabulary.size)
        known = [[*answer, *known_context.suffix] for answer in known_context.answers]

        def score(row: Sequence[int]) -> list[float]:
            rank, nearest = max(enumerate(known), key=lambda entry: _agreement(entry[1], row))
            # Alternatives are a little less likely, one after the other, so that they rank in their order, whatever
            # their length.
            right = (likely - rank / 100) / len(row)
            return [right if nearest[at : at + 1] == [id] else unlikely for at, id in enumerate(row)]

        return [score([*gap, *suffix[:SCORED_SUFFIX]]) for gap in gaps]

    def _within_reach(self, answer: str, reach: int, in_string: bool) -> list[int]:
        ids: list[int] = []
        said, whole = "", 0
        for line in answer.splitlines(keepends=True):
            more = self.tokenize(line)
            ends = len(ids) + len(more) - (line[-1:] == "\n")
            if ends > reach:
                return ids[:whole] if whole else [*ids, *more][:reach]
            said += line
            ids += more
            if said.strip() and not is_unfinished(said, in_string):
                whole = ends
        return ids

    def _target(self, context: OracleContext, canvas: list[int], turn: int, open_: list[bool]) -> list[int]:
        """The tokens that the oracle wants on a canvas: of the answer that resembles it most, on a tie by turns."""
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
            raise RuntimeError(f"The oracle was told to fail at {case.text!r}.")
        done = common_head(canvas, target)
        # What is not revealed yet looks like an unused slot, faintly, so that a draft is the head of the answer.
        revealed = [at < done + case.reveal for at in range(len(target)) if open_[at]]
        ids = [wanted for at, wanted in enumerate(target) if open_[at]]
        sure = math.log(case.confidence / (1 - case.confidence) * (self.vocabulary.size - 1))
        places = torch.tensor(
            [id if known else PAD for id, known in zip(ids, revealed, strict=True)], dtype=torch.int64
        )
        peaks = torch.tensor([sure if known else 1.0 for known in revealed])
        logits.scatter_(1, places[:, None], peaks[:, None])


def read_oracle(path: Path) -> Oracle:
    """The oracle of a JSON file. Raises ModelError."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        cases = structured(held, OracleFile).cases
        # Tensors as small as these cost more to share among threads than to compute.
        torch.set_num_threads(1)
        return Oracle(f"oracle:{path}", cases)
    except OSError as error:
        raise ModelError(f"The oracle file {path} can't be read ({error.strerror}).") from None
    except (ValueError, BadInput) as error:
        raise ModelError(f"The oracle file {path} is not valid: {error}") from None


def _around_fixed(answer: Sequence[int], canvas: Sequence[int], open_: Sequence[bool]) -> list[int]:
    """The answer around the fixed positions of a canvas; slots that it does not fill stay unused."""
    front = next((at for at, is_open in enumerate(open_) if not is_open), len(open_))
    if not any(open_[front:]):
        return [*[*answer, *[PAD] * front][:front], *canvas[front:]]
    target: list[int] = []
    said = 0
    for is_open, group in groupby(zip(open_, canvas, strict=False), key=lambda pair: pair[0]):
        stretch = [token for _, token in group]
        if not is_open:
            target += stretch
            said += len(stretch)
            continue
        after = list(takewhile(lambda at: not open_[at], range(len(target) + len(stretch), len(canvas))))
        last = not after or after[-1] == len(canvas) - 1
        end = len(answer) if last else _index_of([canvas[at] for at in after], answer, said)
        target += [*answer[said:end], *[PAD] * len(stretch)][: len(stretch)]
        said = end
    return target


def _index_of(part: Sequence[int], ids: Sequence[int], start: int) -> int:
    """The index of a part of some tokens; their length where it does not occur."""
    places = range(start, len(ids) - len(part) + 1)
    return next((at for at in places if list(ids[at : at + len(part)]) == list(part)), len(ids))


def _own(context: Context) -> OracleContext:
    assert isinstance(context, OracleContext), "a context of another model"
    return context


def _agreement(ids: Sequence[int], row: Sequence[int]) -> int:
    return sum(a == b for a, b in zip(ids, row, strict=False))
