"""The interface between the denoise loop and a family of models. The loop deals in token ids and logits; tokenizers,
prompts, caches and weights stay behind `Model`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol, Self

import torch
from torch import Tensor

from engine.common.errors import ModelError
from engine.common.messages import MemoryPlan
from engine.common.request import FillRequest
from engine.models.checkpoints.directory import LengthStrategy
from engine.models.length_prior import LengthPrior
from engine.models.logits import Head, Logits
from engine.models.vocabulary import Vocabulary

PIECE = 256
"""Tokens of context that are encoded between two looks at what else there is to do."""
SCORED_SUFFIX = 16
"""Suffix tokens that are scored together with a gap."""
_ROW = 0.03
"""The cost of one more row, as a share of a pass: 57 ms instead of 46 for eight rows, 71 for sixteen (1.5 billion
parameters in 8 bits, two cores); 22 and 27 of half a billion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What an unknown position holds: one mask token, or any token of the vocabulary."""

    mask_id: int | None
    """None: uniform noise over the vocabulary."""
    vocab_size: int

    def draw(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """Fresh noise, int64 of `shape`, on the generator's device."""
        if self.mask_id is not None:
            return torch.full(shape, self.mask_id, dtype=torch.int64, device=generator.device)
        return torch.randint(0, self.vocab_size, shape, generator=generator, device=generator.device)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """The published sampler settings of a checkpoint, and when a fill stops earlier."""

    max_steps: int
    t_min: float
    t_max: float
    entropy_bound: float
    """Nats. A larger bound accepts more positions in one step."""
    stability_threshold: int
    """Steps in a row without a change after which a canvas is done."""
    confidence_threshold: float
    """Nats per free position, below which a canvas is done."""
    top_p: float = 1.0
    """Tokens are drawn from the likeliest ones that have this probability together."""
    sure: float = 2.0
    """A canvas is done when each open token's first choice has this probability; above 1: never."""
    from_left: bool = False
    """Whether positions are accepted in their order; else the surest first."""
    mend_from: float = 0.0
    """Mean confidence from which a fill that does not parse is denoised again; nobody would be shown one below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """A checkpoint's description, for the loop and the tools."""

    name: str
    family: str
    parameters: int
    device: str
    dtype: str
    length: LengthStrategy
    noise: Noise
    sampling: Sampling
    pad_id: int
    """Fills the unused slots of a gap under `slack`, gives up a slot under `expand`; never part of an answer."""
    forbidden_ids: tuple[int, ...]
    """Tokens that may not enter a gap: end of text, control and image tokens, the mask."""
    canvas_length: int
    """Widest canvas, gap and pinned suffix together."""
    widths: tuple[int, ...]
    """Gap widths that the length strategy tries, narrow first."""
    context_limit: int
    """Tokens of context the model can use."""
    instructions: bool
    """Whether the model follows `FillRequest.instruction`."""
    expand_id: int | None = None
    """Asks for two slots in place of its own, under `expand`."""
    requests_first: bool = False
    """Whether a gap takes text only once no slot asks for another width, under `expand`."""
    runs_on: bool = False
    """Whether `slack` also tries a row without unused slots, which ends where it repeats the suffix."""
    end_id: int | None = None
    """The token after a gap's text where the model reads it left to right; None: it has not learnt where a gap ends."""
    threshold: float | None = None
    """Least confidence of what is shown without being requested; None: not fitted."""
    match_nats: float = 1.8
    """Nats added to a workspace match's score for each token that its surroundings share with the gap's: the worse a
    model, the more. Chosen for the bundled one on development holes."""
    fingerprint: str = ""
    """Identifies the weights; empty: the model has none of its own."""
    adapter: str = ""
    """The folder of its adapter; empty: it has none."""
    memory: MemoryPlan | None = None
    """The planned memory; None: it has no weights on a device."""
    prior: LengthPrior | None = None
    """The usual first confidence for a gap of each width, under `calibrated`; None: as published."""


def check_prompt(model: Model) -> None:
    """Lay out a small request: some faults of a tokenizer or a chat template show only in use."""
    model.prompt(FillRequest(prefix="def f(x):\n    return ", suffix="\n", language="python"))


def check_info(info: ModelInfo) -> None:
    """Check numbers that come from files. Raises ModelError where no gap can be filled with them."""
    sampling = info.sampling
    whole = {
        "canvas_length": (info.canvas_length, 1, 1 << 16),
        "context": (info.context_limit, 1, 1 << 24),
        "max_steps": (sampling.max_steps, 1, 10_000),
        "stability_threshold": (sampling.stability_threshold, 0, 10_000),
        **{f"widths[{index}]": (width, 1, 1 << 16) for index, width in enumerate(info.widths)},
        "widths of a gap": (len(info.widths), 1, 1_000),
    }
    rest = {
        "t_min": (sampling.t_min, 0, 100),
        "t_max": (sampling.t_max, 0, 100),
        "entropy_bound": (sampling.entropy_bound, 0, 1e6),
        "confidence_threshold": (sampling.confidence_threshold, 0, 1e6),
        "top_p": (sampling.top_p, 0, 1),
        "sure": (sampling.sure, 0, 2),
        "mend_from": (sampling.mend_from, 0, 1),
        "threshold": (0 if info.threshold is None else info.threshold, 0, 1),
    }
    for numbers, kinds in ((whole, (int,)), (rest, (int, float))):
        for name, (value, least, most) in numbers.items():
            if type(value) not in kinds or not least <= value <= most:
                raise ModelError(
                    f"{info.name} says its {name} is {value!r}, not a number from {least} to {most:g}: "
                    "pull or copy the model again."
                )


class Context(Protocol):
    """The encoded context of one gap, such as its keys and values."""

    @property
    def length(self) -> int:
        """Its tokens."""
        ...


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, kw_only=True)
class TextContext:
    """A context of which nothing is computed in advance."""

    ids: tuple[int, ...]

    @property
    def length(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A request in tokens: the context ends at the gap, the canvas is [gap | suffix]."""

    context: tuple[int, ...]
    suffix: tuple[int, ...]
    """Pinned on the canvas right after the gap."""
    head: str = ""
    """Characters before the cursor that were taken out of `context`, so that no token straddles the cursor. The gap
    must begin with them; they are not part of the answer."""


@dataclass(slots=True, kw_only=True)
class Rows:
    """A batch of canvases of different lengths: row b uses its first `lengths[b]` positions. F counts the open
    positions."""

    contexts: Sequence[Context]
    """One for each row; rows may share one."""
    canvas: Tensor
    """int64 [B, L]"""
    lengths: Sequence[int]
    open: Tensor
    """bool [B, L]: positions whose logits are wanted. The tokens of the others are final."""
    self_conditioning: Tensor | None
    """Embeddings [F, E] of the open positions, averaged by the previous step's predictions, row by row, in float32;
    None: no row has any."""
    conditioned: Sequence[bool]
    """Which rows `self_conditioning` is for; the others get zeros, as at a first step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftTree:
    """Drafts with shared beginnings, as one tree of tokens."""

    ids: tuple[int, ...]
    parents: tuple[int, ...]
    """For each token the index of the one before it, which is smaller; -1: the last token of the text."""

    def depths(self) -> list[int]:
        """The distance of each token from the text's last token: 1 at a root. Raises ValueError for a token whose
        parent does not come before it."""
        found: list[int] = []
        for at, parent in enumerate(self.parents):
            if not -1 <= parent < at:
                raise ValueError(f"Token {at} of a draft follows {parent}.")
            found.append(1 if parent < 0 else found[parent] + 1)
        return found

    def check_path(self, path: Sequence[int]) -> None:
        """Check that indices are a path from a root on. Raises ValueError."""
        before = -1
        for at in path:
            if not 0 <= at < len(self.ids) or self.parents[at] != before:
                raise ValueError(f"Token {at} of a draft does not follow {before}.")
            before = at


def linear_cost(rows: int) -> float:
    """The time of a pass over so many rows, as a multiple of one over a single row, where it was not measured."""
    return 1 + _ROW * (rows - 1)


class Text(Protocol):
    """A context with tokens written after it, and the model's state for them. Immutable for its holder."""

    @property
    def written(self) -> tuple[int, ...]:
        """Tokens after the context."""
        ...

    @property
    def is_read(self) -> bool:
        """Whether the next token is known without a pass."""
        ...

    @property
    def unread(self) -> int:
        """Tokens that the next pass reads before the drafts."""
        ...


class CausalHead(Protocol):
    """A model that predicts the next token of a text."""

    @property
    def ends(self) -> frozenset[int]:
        """Tokens that end an answer."""
        ...

    def begin(self, context: Context, suffix: Sequence[int] = (), written: Sequence[int] = ()) -> Text:
        """A text that has `written` after the context, in a gap before a pinned `suffix`."""
        ...

    @property
    def slots(self) -> int:
        """Unknown tokens of a canvas that may join the checking pass; 0: the model has no canvas."""
        ...

    def check(self, text: Text, tree: DraftTree, canvas: int | None = None) -> Tensor:
        """Logits [1 + N, V] in float32: what follows the text, and what follows each of the N tokens of the tree. One
        causal pass reads the tree and what was not read yet of the text. `canvas`: the token of the tree, or -1, that a
        canvas follows in the same pass, where the model has canvases."""
        ...

    def guessed(self, text: Text) -> tuple[int, Tensor] | None:
        """The canvas of the last check: the token that it follows, and logits [slots, V] of what comes after the next
        token."""
        ...

    def cost(self, rows: int) -> float:
        """The time of a pass over so many rows, as a multiple of that over one row."""
        ...

    def accept(self, text: Text, path: Sequence[int]) -> Text:
        """The text with the tokens at `path` added. `path`: indices into the tree of the last check, from a root on.
        Their keys and values are kept, nothing is computed again."""
        ...


class Chat(Protocol):
    """The chat template of a model that was trained to answer."""

    def ids(self, messages: Sequence[Mapping[str, str]], opening: str = "") -> list[int]:
        """Messages (`role`, `content`) and the beginning of the answer to them, in tokens; text in a content never
        becomes a control token. Raises ModelError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CanvasOrder:
    """One canvas for a `CanvasDenoiser`."""

    context: Context
    ids: tuple[int, ...]
    """The tokens on the canvas: those that stay, those to start from, noise."""
    pinned: tuple[int, ...]
    """Positions whose tokens stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CanvasReply:
    """A canvas after its last step; L positions, the pinned ones as the model predicts them."""

    ids: tuple[int, ...]
    log_probabilities: tuple[float, ...]
    """Of `ids`."""
    choices: tuple[Mapping[int, float], ...] = ()
    """The likeliest tokens of each position with their log-probabilities, where they were requested."""


class CanvasDenoiser(Protocol):
    """Runs canvases through all their steps by itself."""

    def denoise(
        self, orders: Sequence[CanvasOrder], *, max_steps: int, choices: int, within_ms: float
    ) -> Future[list[CanvasReply | None]]:
        """Denoise canvases side by side in `max_steps` steps or fewer. Each reply has `choices` tokens a position, or
        none; None stands for a canvas that is not done within `within_ms` milliseconds, which may be infinite.

        The future fails with EngineError; cancelling it ends the work.
        """
        ...


class Prefill(Protocol):
    """Encodes contexts into a cache piece by piece."""

    later: Sequence[int]
    """A context to encode when there is nothing else to do; empty: none."""
    token_ms: float
    """Milliseconds that a token of a context took of late; 0: not measured."""
    limit: int
    """Tokens of the last context that was cut for a deadline; 0: none was."""

    def unread(self, ids: Sequence[int]) -> int:
        """Tokens at the end of the context `ids` that the cache does not hold."""
        ...

    def read_ahead(self, ids: Sequence[int]) -> None:
        """Encode all of a context, before a request needs it."""
        ...

    def read_piece(self) -> None:
        """Encode the next PIECE tokens of `later`."""
        ...


class WidthHead(Protocol):
    """Predicts the width of a gap."""

    def widths(self, context: Context, suffix: Sequence[int]) -> dict[int, float]:
        """The probability of each width in tokens, for a gap between `context` and a pinned `suffix`."""
        ...


class Capabilities(Protocol):
    """What only some models can do. A family inherits this class and overrides what it can do; the rest is None."""

    vocabulary: Vocabulary

    def detokenize(self, ids: Sequence[int]) -> str:
        """Text of `ids`; the inverse of `tokenize`."""
        return self.vocabulary.text(ids)

    @property
    def prefill(self) -> Prefill | None:
        """Encodes contexts piece by piece; None: `encode` takes the whole of one, or has nothing to do."""
        return None

    @property
    def width_head(self) -> WidthHead | None:
        """For the length strategy that predicts widths."""
        return None

    @property
    def causal(self) -> CausalHead | None:
        """The causal head; None: the model has canvases alone."""
        return None

    @property
    def chat(self) -> Chat | None:
        """Turns messages into a context; None: the model was not trained to answer."""
        return None

    @property
    def canvas(self) -> Model | None:
        """The same model as one that fills gaps by canvases alone; None: it was not trained to."""
        return None

    @property
    def denoiser(self) -> CanvasDenoiser | None:
        """Denoises whole canvases; then `step`, `head` and `score` must not be used."""
        return None

    @property
    def left_to_right(self) -> LeftToRight | None:
        """Writes on after a text alone, for a model of canvases; None: it has learnt to fill gaps only."""
        return None

    @property
    def adaptable(self) -> Adaptable | None:
        """The same model as one that takes adapters; None: it can't be tuned."""
        return None

    @property
    def fills_causally(self) -> bool:
        """Whether its causal head fills gaps; else canvases do."""
        return False

    @property
    def context_tokens(self) -> tuple[int, int]:
        """Tokens of context that were requested so far, and how many of them were in the cache."""
        return 0, 0

    def shrink_caches(self) -> None:
        """Empty the caches, and halve their size from now on."""


class Model(Capabilities, Protocol):
    """A resident model: what every model can do, and what some can (`Capabilities`). Not thread-safe: one thread owns
    it."""

    @property
    def info(self) -> ModelInfo:
        """Constant."""
        ...

    def tokenize(self, text: str) -> list[int]:
        """Ids of `text`, without special tokens."""
        ...

    def prompt(self, request: FillRequest, limit: int | None = None) -> Prompt:
        """Lay out a request: stable parts first, the prefix last. `limit`: tokens of context at the most; None: as many
        as the model can use."""
        ...

    def encode(self, ids: Sequence[int]) -> Context:
        """Encode the fixed context, reusing what is cached of it."""
        ...

    @property
    def head(self) -> Head:
        """Turns hidden states into logits, and predictions into signals."""
        ...

    def step(self, rows: Rows) -> Logits:
        """One forward pass over the canvases: the logits of the open positions, row by row."""
        ...

    def score(self, context: Context, gaps: Sequence[Sequence[int]], suffix: Sequence[int]) -> list[list[float]]:
        """How well each gap fits between `context` and a pinned `suffix`: log-probabilities of its tokens and of the
        first SCORED_SUFFIX of the suffix where the model reads left to right, else of some of these, each predicted
        from its surroundings."""
        ...


class Adaptable(Model, Protocol):
    """A model whose layers take LoRA pairs."""

    network: Any
    """Its `module` has the layers."""

    def over(self, module: Any, info: ModelInfo) -> Self:
        """The same model with other weights."""
        ...


class LeftToRight(Protocol):
    """A diffusion model whose encoder predicts next tokens, so that its weights are an autoregressive model as well."""

    def next_tokens(self, ids: Sequence[int], choose: Callable[[Tensor], Tensor] = torch.argmax) -> Iterator[int]:
        """Next tokens after `ids`, without end. `choose` takes one from logits [1, V]; keys and values are cached."""
        ...
