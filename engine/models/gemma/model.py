"""Family `diffusion_gemma`: Google's released checkpoints and the bundled model, one code path."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor

from engine.models.adapters.metadata import fingerprint_of
from engine.models.base import SCORED_SUFFIX, Context, DraftTree, ModelInfo, Noise, Rows, Sampling, Text, linear_cost
from engine.models.canvas_model import CanvasModel
from engine.models.checkpoints.directory import Checkpoint
from engine.models.checkpoints.placement import Placement, memory_plan
from engine.models.checkpoints.working import PASS
from engine.models.gemma.config import GemmaConfig, our_name, read_config, stand_in
from engine.models.gemma.gap_batch import GapBatch, GapText, ScoredBatch
from engine.models.gemma.network import GemmaModule, GemmaNetwork
from engine.models.kv_cache import EncodedContext, Part, Reuse, uploaded, wanted_of, window_mask
from engine.models.logits import Logits, log_probabilities
from engine.models.network import Attend
from engine.models.piecewise_prefill import PiecewisePrefill
from engine.models.products import LEAST_ROWS
from engine.models.prompts.chat_prompt import ChatPrompt
from engine.models.prompts.layout import END, MASK, PAD, RESERVED, WIDTHS
from engine.models.prompts.tokens import TokenPrompt
from engine.models.tokenizer import read_tokenizer
from engine.models.vocabulary import Vocabulary, read_vocabulary
from engine.models.weights import OnPercent, load_weights

Keep = Callable[[int, Tensor, Tensor], tuple[Tensor, Tensor]]
"""(layer, new keys, new values) -> keys and values from the context's first token on."""
_ON_PROCESSOR = 256
"""Tokens that are computed at once: later ones don't see them, and larger tensors are given back to the system
each time."""
REUSE = Reuse(steps=8, near=4, share=0.75, shared=False)
RELEASED = Sampling(
    max_steps=48, t_min=0.4, t_max=0.8, entropy_bound=0.1, stability_threshold=1, confidence_threshold=0.005
)
"""Defaults of transformers' DiffusionGemmaGenerationConfig."""
_DISCOVER_WIDTHS = (24, 96)


class DiffusionGemma(PiecewisePrefill, CanvasModel[GemmaNetwork]):
    slots = 0
    _latest: ScoredBatch | None = None
    """The last scored batch, which decoding goes on from."""

    def __init__(self, network: GemmaNetwork, info: ModelInfo, prompt: TokenPrompt | ChatPrompt) -> None:
        super().__init__(network, info, prompt, REUSE)
        self._window: int = network.config.sliding_window

    @classmethod
    def open(cls, checkpoint: Checkpoint, placement: Placement, on_percent: OnPercent | None = None) -> DiffusionGemma:
        """Load weights and tokenizer. Raises ModelError."""
        info, prompt = laid_out(checkpoint, placement)
        with torch.device("meta"):
            module = GemmaModule(read_config(checkpoint.config, checkpoint.name))
        load_weights(module, checkpoint, placement, our_name, on_percent, stand_in=stand_in)
        return cls(GemmaNetwork(module), info, prompt)

    def over(self, module: Any, info: ModelInfo) -> Self:
        twin = super().over(module, info)
        twin.later, twin._latest = (), None
        return twin

    def forget(self) -> None:
        super().forget()
        self._latest = None

    @property
    def reads(self) -> None:
        """None: positions are rotations, which have no end."""
        return None

    @property
    def width_head(self) -> Self:
        return self

    @property
    def adaptable(self) -> Self:
        return self

    @property
    def left_to_right(self) -> Self:
        return self

    def encode(self, ids: Sequence[int]) -> EncodedContext:
        """Encode what the cache does not hold of the context [T]."""
        return self._read(ids)[0]

    def parts(self, rows: Rows) -> list[Part]:
        # In one copy, where they lie on a device.
        canvases, opens = torch.stack((rows.canvas, rows.open)).tolist()
        parts: list[Part] = []
        signals = rows.self_conditioning
        for row, (context, length) in enumerate(zip(rows.contexts, rows.lengths, strict=True)):
            known, open_ = own(context), [at for at in range(length) if opens[row][at]]
            part = Part(
                context=known,
                ids=canvases[row][:length],
                open=open_,
                wanted=open_,
                start=known.length,
                store=known.store,
                # A first step has no signal at all, and what it computes is of no use to those that have one.
                reusable=rows.conditioned[row],
            )
            if signals is not None:
                part.signal, signals = (signals[: len(open_)] if part.reusable else None), signals[len(open_) :]
            parts.append(part)
        return parts

    def hidden(
        self, ids: Tensor, positions: Tensor, attend: Attend, signal: Tensor | None, wanted: Tensor | None
    ) -> Tensor:
        return self.network.decode(ids, positions, attend, signal, wanted)

    def signal(self, parts: Sequence[Part], ids: Tensor) -> Tensor | None:
        """Soft embeddings of open positions, the token's own embedding of others, zeros for a canvas without
        predictions."""
        signals = [part.signal for part in parts if part.signal is not None]
        if not signals:
            return None
        table = self.network.embeddings.weight
        given = [part.signal is not None for part in parts]
        wanted = zip(wanted_of(parts), _each(given, [part.wanted for part in parts]), strict=True)
        of_open = [at for at, is_given in wanted if is_given]
        of_none = [at for at, is_given in enumerate(_each(given, [part.places for part in parts])) if not is_given]
        at_open, at_none = uploaded([of_open, of_none], ids.device)
        said = signals[0] if len(signals) == 1 else torch.cat(signals)
        signal = self.network.embed(ids)
        signal[0].index_copy_(0, at_open, self.network.scaled(said.to(table.device, table.dtype)))
        return signal.index_fill_(1, at_none, 0.0)

    @torch.inference_mode()
    def score(self, context: Context, gaps: Sequence[Sequence[int]], suffix: Sequence[int]) -> list[list[float]]:
        """Log-probabilities by the causal encoder: of each gap, and of what tells whether it fits. That is the token
        that ends a gap, if the model has one, else the suffix."""
        known, end = own(context), self.info.end_id
        tail = tuple(suffix[:SCORED_SUFFIX]) if end is None else (end,)
        rows = [(*gap, *tail) for gap in gaps]
        if sum(map(len, rows)) > PASS and len(rows) > 1:
            half = len(gaps) // 2
            return [*self.score(context, gaps[:half], suffix), *self.score(context, gaps[half:], suffix)]
        texts = [row[:-1] for row in rows if row]
        if not texts:
            return [[] for _ in rows]
        batch = GapBatch.of(known, None if end is None else suffix, texts)
        kept: list[tuple[Tensor, Tensor]] = []

        def keep(index: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
            kept.append((key, value))
            return known.store.followed(known.length, index, key, value)

        hidden = self._followed(batch, keep, batch.question + 1)
        if end is not None:
            self._latest = ScoredBatch(context=known.store.ids[: known.length], batch=batch, kept=kept, hidden=hidden)
        tokens = torch.tensor([token for row in rows for token in row], device=hidden.device)
        said = log_probabilities(Logits(hidden=hidden[0], head=self.head), tokens)
        return [each.tolist() for each in said.split([len(row) for row in rows])]

    @torch.inference_mode()
    def widths(self, context: Context, suffix: Sequence[int]) -> dict[int, float]:
        """The probability of each width of a gap between `context` and a pinned `suffix`, in one forward pass."""
        known = own(context)
        query = GapBatch.of(known, suffix, ())
        hidden = self._followed(query, partial(known.store.followed, known.length), query.question)
        answers = self.network.logits(hidden[0, 0])[RESERVED : RESERVED + len(WIDTHS)]
        return dict(zip(WIDTHS, answers.softmax(dim=-1).tolist(), strict=True))

    @property
    def causal(self) -> Self:
        """The encoder with the head."""
        return self

    @property
    def ends(self) -> frozenset[int]:
        """The token that ends a gap; none for a model without one."""
        return frozenset(() if self.info.end_id is None else (self.info.end_id,))

    def begin(self, context: Context, suffix: Sequence[int] = (), written: Sequence[int] = ()) -> GapText:
        """The text of a gap. What was scored just now, with others, is not read again."""
        known, latest = own(context), self._latest
        batch = GapBatch.of(known, None if self.info.end_id is None else suffix, [written])
        text = GapText(batch=batch, store=known.store.copy(known.length))
        places = latest.places(text.store.ids, batch) if latest is not None else None
        if latest is not None and places:
            for index, (key, value) in enumerate(latest.kept):
                text.store.update(known.length, index, key[:, :, places], value[:, :, places])
            text.read, text.last = len(places), latest.hidden[0, places[-1] - latest.batch.question - 1][None]
        return text

    @torch.inference_mode()
    def check(self, text: Text, tree: DraftTree, canvas: int | None = None) -> Tensor:
        """Logits of what follows the text in its gap, and each token of the tree."""
        assert isinstance(text, GapText)
        batch, last = text.batch.with_tree(tree), text.last
        hidden = text.last if last is not None and not tree.ids else self._drafts_read(text, batch)
        assert hidden is not None
        text.read, text.last, text.checked = len(text.batch.ids), hidden[:1], (tree, hidden[1:])
        return self.network.logits(hidden)

    def _drafts_read(self, text: GapText, batch: GapBatch) -> Tensor:
        """States [1 + N, E] of a text's last token and of the drafts after it."""
        first = len(text.batch.ids) - (text.last is None)
        keep = partial(text.store.update, batch.length + text.read)
        hidden = self._followed(batch, keep, first, text.read)[0]
        return hidden if text.last is None else torch.cat((text.last, hidden))

    def guessed(self, text: Text) -> None:
        return None

    def cost(self, rows: int) -> float:
        """oneDNN multiplies at least so many rows."""
        return linear_cost(max(rows, LEAST_ROWS))

    @torch.inference_mode()
    def accept(self, text: Text, path: Sequence[int]) -> GapText:
        """A text goes on in one way: its last check can't be used again."""
        assert isinstance(text, GapText)
        return text.accept(path)

    def next_tokens(self, ids: Sequence[int], choose: Callable[[Tensor], Tensor] = torch.argmax) -> Iterator[int]:
        """Next tokens after `ids`, as `choose` takes them from logits [1, V] of the causal encoder."""
        read = list(ids)
        while True:
            _, last = self._read(read, again=1)
            read.append(int(choose(self.network.logits(last)[0])))
            yield read[-1]

    @torch.inference_mode()
    def _read(self, ids: Sequence[int], again: int = 0) -> tuple[EncodedContext, Tensor]:
        """The encoded context, and the hidden state [1, 1, E] of its last token if that was read now; the last `again`
        tokens are always read."""
        store, known = self.cache.open(ids, self.owner)
        last = torch.empty(0)
        most = _ON_PROCESSOR if self.network.device.type == "cpu" else PASS
        for start in range(min(known, len(ids) - again), len(ids), most):
            part = ids[start : start + most]
            tokens = torch.tensor([list(part)], device=self.network.device)
            last = self._encode(tokens, start, partial(store.update, start))
            store.ids[start : start + len(part)] = part
        context = store.context(len(ids))
        self.cache.trim()
        return context, last

    def _encode(self, tokens: Tensor, start: int, keep: Keep) -> Tensor:
        """Encode tokens [1, T] for their keys and values; returns the hidden state [1, 1, E] of the last one."""
        device, length = tokens.device, tokens.shape[1]
        positions = torch.arange(start, start + length, device=device).expand(tokens.shape)
        dtype = self.network.mask_format
        masks = {
            True: window_mask(start, length, max(0, start - self._window + 1), self._window, device, dtype),
            False: window_mask(start, length, 0, None, device, dtype),
        }
        return self._after_masks(tokens, positions, masks, keep, torch.tensor([length - 1], device=device))

    def _followed(self, batch: GapBatch, keep: Keep, wanted: int, read: int = 0) -> Tensor:
        """Hidden states [1, T - wanted, E] of a batch's tokens from `wanted` on; keys and values of its first `read`
        tokens are there."""
        device = self.network.device
        ids = torch.tensor([batch.ids[read:]], device=device)
        positions = torch.tensor(batch.positions[read:], device=device)
        dtype = self.network.mask_format
        masks = {
            sliding: batch.mask(read, window, device, dtype)
            for sliding, window in ((True, self._window), (False, None))
        }
        places = torch.arange(wanted - read, ids.shape[1], device=device)
        return self._after_masks(ids, positions.expand(ids.shape), masks, keep, places)

    def _after_masks(
        self, ids: Tensor, positions: Tensor, masks: Mapping[bool, Tensor], keep: Keep, wanted: Tensor
    ) -> Tensor:
        """Hidden states [1, W, E] of the places `wanted` [W] of ids [1, T]. `masks`: for sliding layers and for others,
        over the last keys."""

        def attend(index: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            keys, values = keep(index, key, value)
            mask = masks[self.network.sliding(index)]
            if query.shape[2] < ids.shape[1]:
                mask = mask[:, :, wanted]
            unseen = keys.shape[2] - mask.shape[3]
            return self.network.attention(query, keys[:, :, unseen:], values[:, :, unseen:], mask.to(query.device))

        return self.network.encode(ids, positions, attend, wanted)


def laid_out(checkpoint: Checkpoint, placement: Placement) -> tuple[ModelInfo, TokenPrompt | ChatPrompt]:
    """A checkpoint without its weights: its description, and the layout of requests for it. Raises ModelError."""
    tokenizer, config = read_tokenizer(checkpoint), read_config(checkpoint.config, checkpoint.name)
    vocabulary = read_vocabulary(tokenizer, config.vocab_size, checkpoint.name)
    info = _info(checkpoint, placement, config, vocabulary)
    if info.instructions:
        return info, ChatPrompt(tokenizer, vocabulary, info.context_limit, checkpoint)
    learnt = {name: checkpoint.metadata.get(name) for name in ("pinned", "edits")}
    return info, TokenPrompt(tokenizer, vocabulary, info.context_limit, **learnt)


def own(context: Context) -> EncodedContext:
    assert isinstance(context, EncodedContext)
    return context


def _each(flags: Sequence[bool], lists: Sequence[Sequence[int]]) -> list[bool]:
    """A flag for each item of a list."""
    return [flag for flag, items in zip(flags, lists, strict=True) for _ in items]


def _info(checkpoint: Checkpoint, placement: Placement, config: GemmaConfig, vocabulary: Vocabulary) -> ModelInfo:
    metadata = checkpoint.metadata
    return ModelInfo(
        name=checkpoint.name,
        family=checkpoint.family,
        parameters=checkpoint.parameters,
        device=placement.device,
        dtype=str(placement.dtype).removeprefix("torch."),
        length=checkpoint.length,
        noise=Noise(mask_id=MASK if metadata.get("noise") == "absorbing" else None, vocab_size=config.vocab_size),
        sampling=_sampling(checkpoint.small_file("generation_config.json") | metadata),
        pad_id=PAD,
        forbidden_ids=tuple(token for token in vocabulary.empty if token != PAD),
        canvas_length=config.canvas_length,
        widths=tuple(metadata.get("widths", _DISCOVER_WIDTHS)),
        runs_on=metadata.get("runs_on", False),
        end_id=END if checkpoint.length == "predicted" else None,
        context_limit=metadata.get("context", placement.context),
        instructions=metadata.get("layout") != "tokens",
        threshold=metadata.get("threshold"),
        fingerprint=fingerprint_of(checkpoint),
        memory=memory_plan(checkpoint, placement),
    )


def _sampling(published: dict[str, Any]) -> Sampling:
    """The settings in a generation_config.json, and those that dg_lsp.json adds."""
    bound = (published.get("sampler_config") or {}).get("entropy_bound")
    said = {**published, "max_steps": published.get("max_denoising_steps"), "entropy_bound": bound}
    names = ("max_steps", "t_min", "t_max", "entropy_bound", "stability_threshold", "confidence_threshold")
    names += ("sure", "from_left", "mend_from")
    return replace(RELEASED, **{name: said[name] for name in names if said.get(name) is not None})
