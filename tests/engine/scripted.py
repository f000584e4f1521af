"""A coder that says what it is told to, token after token, and counts its passes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.common.request import FillRequest
from engine.models.base import (
    Capabilities,
    CausalHead,
    Context,
    DraftTree,
    ModelInfo,
    Noise,
    Prompt,
    Sampling,
    Text,
    linear_cost,
)
from engine.models.vocabulary import Vocabulary

WORDS = (b"return", b"self", b"    ", b"\n    ", b")\n", b" =", b"value", b"depth", b" +")
END = 256 + len(WORDS)
_GREEDY = Sampling(max_steps=1, t_min=0, t_max=0, entropy_bound=0, stability_threshold=0, confidence_threshold=0)


@dataclass(frozen=True, eq=False)
class ScriptedContext:
    ids: tuple[int, ...]

    @property
    def length(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class ScriptedText:
    written: tuple[int, ...] = ()
    is_read: bool = False
    unread: int = 0


@dataclass
class Scripted(Capabilities):
    """`says`: after the context; then it ends. `instead`: what it would nearly say at a place of it, as (characters
    before, text). It is as `sure` of each token."""

    says: str
    instead: tuple[int, str] = (0, "")
    sure: float = 0.8
    trees: list[DraftTree] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.vocabulary = Vocabulary([*(bytes([value]) for value in range(256)), *WORDS, b""])
        self.ends = frozenset((END,))
        self.info = ModelInfo(
            name="scripted",
            family="causal",
            parameters=0,
            device="cpu",
            dtype="float32",
            length="causal",
            noise=Noise(mask_id=END, vocab_size=END + 1),
            sampling=_GREEDY,
            pad_id=END,
            forbidden_ids=(END,),
            canvas_length=512,
            widths=(512,),
            context_limit=4096,
            instructions=False,
        )

    @property
    def causal(self) -> CausalHead:
        return self

    @property
    def fills_causally(self) -> bool:
        return True

    def tokenize(self, text: str) -> list[int]:
        return self._tokens(text.encode())

    def _tokens(self, data: bytes) -> list[int]:
        ids = list[int]()
        while data:
            word = max((word for word in (*WORDS, data[:1]) if data.startswith(word)), key=len)
            ids.append(self.vocabulary.bytes.index(word))
            data = data[len(word) :]
        return ids

    def detokenize(self, ids: Sequence[int]) -> str:
        return self.vocabulary.text(ids)

    def prompt(self, request: FillRequest, limit: int | None = None) -> Prompt:
        """The last token is taken back."""
        ids = self.tokenize(request.prefix)
        head = self.detokenize(ids[-1:])
        suffix = self.tokenize(request.suffix)
        return Prompt(context=(*suffix, END, *ids[:-1]), suffix=tuple(suffix[:48]), head=head)

    def encode(self, ids: Sequence[int]) -> ScriptedContext:
        return ScriptedContext(tuple(ids))

    def begin(self, context: Context, suffix: Sequence[int] = (), written: Sequence[int] = ()) -> Text:
        return ScriptedText(tuple(written))

    slots = 0

    def guessed(self, text: Text) -> None:
        return None

    def check(self, text: Text, tree: DraftTree, canvas: int | None = None) -> Tensor:
        self.trees.append(tree)
        before: list[tuple[int, ...]] = [text.written]
        for token, parent in zip(tree.ids, tree.parents, strict=True):
            before.append((*before[parent + 1], token))
        return torch.stack([self._logits(ids) for ids in before])

    def cost(self, rows: int) -> float:
        return linear_cost(rows)

    def accept(self, text: Text, path: Sequence[int]) -> Text:
        return ScriptedText((*text.written, *(self.trees[-1].ids[at] for at in path)))

    def score(self, context: Context, gaps: Sequence[Sequence[int]], suffix: Sequence[int]) -> list[list[float]]:
        found: list[list[float]] = []
        for gap in gaps:
            ids = [*gap, *suffix[:16]]
            rows = [self._logits(ids[:at]).log_softmax(0) for at in range(len(ids))]
            found.append([float(row[token]) for row, token in zip(rows, ids, strict=True)])
        return found

    def _logits(self, written: Sequence[int]) -> Tensor:
        """Of what comes next: its script, else what nearly came, else the end."""
        said, (at, other) = b"".join(self.vocabulary.bytes[token] for token in written), self.instead
        logits = torch.full((END + 1,), -20.0)
        ways = [way.encode() for way in (self.says, *([self.says[:at] + other] if other else []))]
        following = [self._next(way, said) for way in ways if way.startswith(said)] or [END]
        for token, likely in zip(dict.fromkeys(following), (self.sure, 1 - self.sure), strict=False):
            logits[token] = math.log(likely)
        return logits

    def _next(self, way: bytes, said: bytes) -> int:
        return (self._tokens(way[len(said) :]) or [END])[0]
