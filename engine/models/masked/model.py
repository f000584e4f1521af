"""Family `masked`: full bidirectional attention over [prefix | gap of mask tokens | suffix]."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Self

import torch
from msgspec import convert
from torch import Tensor

from engine.common.runtime_paths import data_dir
from engine.models.adapters.metadata import fingerprint_of
from engine.models.base import SCORED_SUFFIX, Context, ModelInfo, Noise, Rows, Sampling, TextContext
from engine.models.canvas_model import CanvasModel
from engine.models.checkpoints.directory import Checkpoint, LengthStrategy
from engine.models.checkpoints.placement import Placement, memory_plan
from engine.models.kv_cache import Part, Reuse
from engine.models.length_prior import LengthPrior, prior_file, read_prior
from engine.models.logits import Logits, log_probabilities
from engine.models.masked.config import our_name
from engine.models.masked.description import Described, described
from engine.models.masked.network import MaskedModule, MaskedNetwork
from engine.models.masked.prompt import MaskedPrompt
from engine.models.masked.published import Published
from engine.models.masked.tokenizer import read_tokenizer
from engine.models.network import Attend
from engine.models.vocabulary import Vocabulary, read_vocabulary
from engine.models.weights import OnPercent, load_weights

REUSE = Reuse(steps=4, near=8, share=0.5, shared=True)
ENDS = 4
"""Tokens at either end of a gap that are predicted to score it: a wrong width shows there."""
SUFFIX = 8
"""Suffix tokens after the gap that are predicted."""
TURNS = 2
"""Passes to score one gap: each hides every second of the tokens to predict, so that all of them have neighbours."""
_MAX_STEPS = 128
"""Most steps of a canvas; a wider gap takes several tokens a step."""
_EXPAND_FROM = 64
"""Slots of a gap at first under `expand`."""
_CALIBRATED_WIDTHS = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Widths that are tried first under `calibrated`."""


class Masked(CanvasModel[MaskedNetwork]):
    def __init__(self, network: MaskedNetwork, info: ModelInfo, prompt: MaskedPrompt, *, shifted: bool) -> None:
        super().__init__(network, info, prompt, REUSE)
        self.shift = int(shifted)
        """How far before a token the position is that predicts it."""

    @classmethod
    def open(cls, checkpoint: Checkpoint, placement: Placement, on_percent: OnPercent | None = None) -> Masked:
        """Load weights and tokenizer. Raises ModelError."""
        found = described(checkpoint)
        tokenizer = read_tokenizer(checkpoint)
        # The weights first: they vouch for the number of tokens that config.json says.
        with torch.device("meta"):
            module = MaskedModule(found.architecture)
        load_weights(module, checkpoint, placement, our_name, on_percent)
        vocabulary = read_vocabulary(tokenizer, found.architecture.vocab, checkpoint.name)
        prompt = MaskedPrompt(tokenizer, vocabulary, found, cut_anywhere=checkpoint.metadata.get("cut_anywhere", False))
        info = _info(checkpoint, placement, found, vocabulary)
        return cls(MaskedNetwork(module, found.architecture), info, prompt, shifted=found.published.shifted)

    @property
    def adaptable(self) -> Self:
        return self

    @property
    def reads(self) -> int:
        """Tokens of context and canvas that it was trained on."""
        return self.info.context_limit

    def encode(self, ids: Sequence[int]) -> TextContext:
        return TextContext(ids=tuple(ids))

    def parts(self, rows: Rows) -> list[Part]:
        # In one copy, where they lie on a device.
        canvases, opens = torch.stack((rows.canvas, rows.open)).tolist()
        parts: list[Part] = []
        for row, (context, length) in enumerate(zip(rows.contexts, rows.lengths, strict=True)):
            before = _own(context).ids
            open_ = [len(before) + at for at in range(length) if opens[row][at]]
            parts.append(self._part(_own(context), (*before, *canvases[row][:length]), open_, open_))
        return parts

    def hidden(
        self, ids: Tensor, positions: Tensor, attend: Attend, signal: Tensor | None, wanted: Tensor | None
    ) -> Tensor:
        # Self-conditioning means nothing here.
        return self.network.run(ids, positions, attend, wanted)

    @torch.inference_mode()
    def score(self, context: Context, gaps: Sequence[Sequence[int]], suffix: Sequence[int]) -> list[list[float]]:
        """Pseudo-likelihood of each gap's ends and of the first suffix tokens, each predicted from its surroundings."""
        known, mask = _own(context), self.info.noise.mask_id
        assert mask is not None
        guesses: list[tuple[list[float], Part, list[int]]] = []
        found: list[list[float]] = [[] for _ in gaps]
        for row, gap in zip(found, gaps, strict=True):
            text = [*known.ids, *gap, *suffix]
            start, end = known.length, known.length + len(gap)
            ends = [at for at in range(start, end) if at < start + ENDS or at >= end - ENDS]
            guessed = [*ends, *range(end, end + min(len(suffix), SUFFIX))]
            open_ = range(start, min(end + SCORED_SUFFIX, len(text)))
            for turn in range(TURNS):
                hidden = guessed[turn::TURNS]
                ids = [mask if at in hidden else token for at, token in enumerate(text)]
                guesses += [(row, self._part(known, ids, open_, hidden), [text[at] for at in hidden])] if hidden else []
        parts = [part for _, part, _ in guesses]
        if self.remembers:
            self.cache.recall(parts)
        if parts:
            hidden = torch.cat(list(self.states(parts)))
            tokens = torch.tensor([token for *_, truth in guesses for token in truth], device=hidden.device)
            said = iter(log_probabilities(Logits(hidden=hidden, head=self.head), tokens).tolist())
            for row, _, truth in guesses:
                row.extend(islice(said, len(truth)))
        return found

    def _part(self, context: TextContext, ids: Sequence[int], open_: Sequence[int], guessed: Sequence[int]) -> Part:
        return Part(context=context, ids=ids, open=open_, wanted=[max(at - self.shift, 0) for at in guessed])


def sampling_of(published: Published) -> Sampling:
    """The sampler, with our bound on the steps of a canvas."""
    return Sampling(
        max_steps=_MAX_STEPS,
        t_min=published.temperature,
        t_max=published.temperature,
        entropy_bound=published.entropy_bound,
        # The canvas is done when no mask is left.
        stability_threshold=0,
        confidence_threshold=0.0,
        top_p=published.top_p,
    )


def widths_of(length: LengthStrategy) -> tuple[int, ...]:
    return (_EXPAND_FROM,) if length == "expand" else _CALIBRATED_WIDTHS


def _own(context: Context) -> TextContext:
    assert isinstance(context, TextContext)
    return context


def _info(checkpoint: Checkpoint, placement: Placement, found: Described, vocabulary: Vocabulary) -> ModelInfo:
    published, metadata = found.published, checkpoint.metadata
    own_prior = convert(metadata["prior"], LengthPrior) if "prior" in metadata else None
    return ModelInfo(
        name=checkpoint.name,
        family=checkpoint.family,
        parameters=checkpoint.parameters,
        device=placement.device,
        dtype=str(placement.dtype).removeprefix("torch."),
        length=checkpoint.length,
        noise=Noise(mask_id=found.mask, vocab_size=found.architecture.vocab),
        sampling=sampling_of(published),
        pad_id=found.end,
        forbidden_ids=tuple(token for token in vocabulary.empty if token != found.end),
        canvas_length=published.context // 2,
        widths=tuple(metadata.get("widths", widths_of(checkpoint.length))),
        context_limit=published.context,
        instructions=False,
        expand_id=found.expand,
        requests_first=published.requests_first,
        threshold=metadata.get("threshold"),
        fingerprint=fingerprint_of(checkpoint),
        memory=memory_plan(checkpoint, placement),
        prior=read_prior(prior_file(data_dir(), checkpoint.name)) or own_prior,
    )
