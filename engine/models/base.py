"""The seam between the denoise loop and a family of models.

The engine deals in token ids and logits only; tokenizers, prompts, caches and weights stay in `Model`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from engine.common.errors import ModelError
from engine.common.memory_plan import MemoryPlan
from engine.common.request import FillRequest
from engine.models.checkpoints.directory import LengthStrategy
from engine.models.length_prior import LengthPrior
from engine.models.logits import Head, Logits
from engine.models.vocabulary import Vocabulary

PIECE = 256
"""Tokens of context that are encoded without a look at what else there is to do."""
SCORED_SUFFIX = 16
"""Suffix tokens that are read together with a gap when it is scored."""


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
    """The published sampler settings of a checkpoint, and when we stop earlier."""

    max_steps: int
    t_min: float
    t_max: float
    entropy_bound: float
    """Nats. The larger, the more positions are accepted in one step."""
    stability_threshold: int
    """Steps in a row that do not change the answer."""
    confidence_threshold: float
    """Nats per free position."""
    top_p: float = 1.0
    """Tokens are drawn from the likeliest ones that have this probability together."""
    sure: float = 2.0
    """Probability of each open token's first choice at which a canvas is done, whatever steps are left; above 1: none
    is."""
    from_left: bool = False
    """Whether positions are accepted in the order that they stand in; else the surest first."""
    mend_from: float = 0.0
    """Mean confidence that a fill which does not parse needs to be denoised again: what nobody would be shown is not
    worth it."""


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
    """Asks for two slots instead of its own, under `expand`."""
    requests_first: bool = False
    """Whether text waits until no slot asks for another width, under `expand`."""
    runs_on: bool = False
    """Whether `slack` also tries a row without unused slots, which ends where it says the suffix again."""
    end_id: int | None = None
    """Follows a gap's text where the model reads it left to right; None: it never learnt where a gap ends."""
    threshold: float | None = None
    """How sure these weights have to be of what is shown unasked; None: nobody fitted it."""
    fingerprint: str = ""
    """Tells its weights from any others; empty: it has none of its own."""
    adapter: str = ""
    """The folder that an adapter has taught it; empty: none has."""
    memory: MemoryPlan | None = None
    """What it was planned to take; None: it has no weights on a device."""
    prior: LengthPrior | None = None
    """How sure the model is at first sight of a gap of each width, under `calibrated`; None: as published."""


def check_prompt(model: Model) -> None:
    """Lay out a small request: what is wrong with a tokenizer or a chat template may show only when they are used."""
    model.prompt(FillRequest(prefix="def f(x):\n    return ", suffix="\n", language="python"))


def check_info(info: ModelInfo) -> None:
    """Raises ModelError for numbers that no gap can be filled with: files may hold anything."""
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
    """The encoded fixed context of one gap (for instance its keys and values)."""

    @property
    def length(self) -> int:
        """Tokens of context."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A request in tokens: the context ends at the gap, the canvas is [gap | suffix]."""

    context: tuple[int, ...]
    suffix: tuple[int, ...]
    """Pinned on the canvas right after the gap."""
    head: str = ""
    """Characters before the cursor that were taken out of `context`, so that no token straddles the cursor; the
    gap must begin with them and they are not part of the answer."""


@dataclass(slots=True, kw_only=True)
class Rows:
    """A batch of canvases, ragged: row b uses its first `lengths[b]` positions. F counts the open positions."""

    contexts: Sequence[Context]
    """One a row; rows may share one object."""
    canvas: Tensor
    """int64 [B, L]"""
    lengths: Sequence[int]
    open: Tensor
    """bool [B, L]: positions still in question, whose logits are wanted. The others hold what they will hold."""
    self_conditioning: Tensor | None
    """Embeddings [F, E] averaged by what the previous step said of the open positions, row by row, in float32; None
    where no row has any."""
    conditioned: Sequence[bool]
    """Which rows `self_conditioning` speaks for; the others get a zero signal, as at a first step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftTree:
    """Drafts with shared beginnings, as one tree of tokens."""

    ids: tuple[int, ...]
    parents: tuple[int, ...]
    """Index of the token before each, which comes before it here, too; -1: the last token of the text."""


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


class CausalHead(Protocol):
    """A model that predicts the next token of a text."""

    @property
    def ends(self) -> frozenset[int]:
        """Tokens that end an answer where the model writes them."""
        ...

    def begin(self, context: Context, suffix: Sequence[int] = (), written: Sequence[int] = ()) -> Text:
        """A text that has `written` after the context, in a gap before a pinned `suffix`."""
        ...

    @property
    def slots(self) -> int:
        """Unknown tokens of a canvas that may stand in the pass that checks; 0: it has no canvas."""
        ...

    def check(self, text: Text, tree: DraftTree, canvas: int | None = None) -> Tensor:
        """Logits [1 + N, V] in float32 of what follows the text, and of what follows each of the N tokens of the tree:
        one causal pass over what of the text was not read yet, and the tree. `canvas`: a token of the tree, or -1, that
        a canvas follows in the same pass, where the model has any."""
        ...

    def guessed(self, text: Text) -> tuple[int, Tensor] | None:
        """The canvas of the last check: the token that it follows, and logits [slots, V] of what comes after the next
        token."""
        ...

    def cost(self, rows: int) -> float:
        """The time of a pass over so many rows, as a multiple of that over one row."""
        ...

    def accept(self, text: Text, path: Sequence[int]) -> Text:
        """The text with the tokens at `path` added: indices into the tree that it was last checked with, from a root
        on. Their keys and values are kept from the check, nothing is computed again."""
        ...


class Chat(Protocol):
    """The chat template of a model that was taught to answer."""

    def ids(self, messages: Sequence[Mapping[str, str]], opening: str = "") -> list[int]:
        """Messages (`role`, `content`), and how the answer to them begins, in tokens; no content becomes a control
        token. Raises ModelError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CanvasOrder:
    """One canvas for a `CanvasDenoiser`."""

    context: Context
    ids: tuple[int, ...]
    """What stands on it: tokens that stay, tokens to start from, noise."""
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
        """Denoise canvases side by side, in `max_steps` steps or fewer; None for one that is not done within
        `within_ms` milliseconds, which may be infinite. Each reply has `choices` tokens a position, or none.

        The future fails with EngineError; to cancel it ends the work."""
        ...


class Prefill(Protocol):
    """Reads contexts into a cache piece by piece, and finds them there again."""

    later: Sequence[int]
    """A context to be read when there is nothing else to do; empty: none."""

    def unread(self, ids: Sequence[int]) -> int:
        """Tokens at the end of the context `ids` that the cache does not hold."""
        ...

    def read_piece(self) -> None:
        """Read the next PIECE tokens of `later`."""
        ...


class WidthHead(Protocol):
    """Predicts the width of a gap."""

    def widths(self, context: Context, suffix: Sequence[int]) -> dict[int, float]:
        """The probability of each width in tokens, for a gap between `context` and a pinned `suffix`."""
        ...


class Capabilities(Protocol):
    """What only some models can do. A family inherits this class and overrides what it can do; the rest is None."""

    @property
    def prefill(self) -> Prefill | None:
        """Contexts are read piece by piece; None: `encode` reads the whole of one, or has nothing to read."""
        return None

    @property
    def width_head(self) -> WidthHead | None:
        """What the length strategy `predicted` needs."""
        return None

    @property
    def causal(self) -> CausalHead | None:
        """The causal head; None: the model has canvases alone."""
        return None

    @property
    def chat(self) -> Chat | None:
        """What turns messages into a context; None: the model was not taught to answer any."""
        return None

    @property
    def canvas(self) -> Model | None:
        """The same model as one that fills gaps by canvases alone; None where it was not taught to."""
        return None

    @property
    def drafter(self) -> Model | None:
        """A smaller model whose canvases are drafts for this one; None: there is none."""
        return None

    def draft_with(self, drafter: Model) -> None:
        """Take drafts from a smaller model from now on. Ignored by models that check no drafts."""

    @property
    def denoiser(self) -> CanvasDenoiser | None:
        """Denoises whole canvases; then `step`, `head` and `score` must not be used."""
        return None

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

    @property
    def vocabulary(self) -> Vocabulary: ...

    def tokenize(self, text: str) -> list[int]:
        """Ids of `text`, without special tokens."""
        ...

    def detokenize(self, ids: Sequence[int]) -> str:
        """Text of `ids`; the inverse of `tokenize`."""
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
        """What makes logits of hidden states, and signals of what they say."""
        ...

    def step(self, rows: Rows) -> Logits:
        """One forward pass over the canvases, up to the logits of the open positions, row by row."""
        ...

    def score(self, context: Context, gaps: Sequence[Sequence[int]], suffix: Sequence[int]) -> list[list[float]]:
        """How well each gap goes on from `context` and with `suffix`, all that is pinned after it: log-probabilities,
        of the gap and the first SCORED_SUFFIX of the suffix where tokens are read one after the other, of some of these
        where each is guessed from what is around it."""
        ...


@runtime_checkable
class LeftToRight(Model, Protocol):
    """A diffusion model whose encoder predicts next tokens: the same weights are an autoregressive model, too."""

    def next_tokens(self, ids: Sequence[int], choose: Callable[[Tensor], Tensor] = torch.argmax) -> Iterator[int]:
        """Next tokens after `ids`, as `choose` takes them from logits [1, V], with a cache of keys and values, without
        end."""
        ...
