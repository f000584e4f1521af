"""Family `diffusion_gemma`: Google's released checkpoints and the bundled model, one code path."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from engine.checkpoints.directory import Checkpoint, read_files
from engine.checkpoints.placement import Placement
from engine.checkpoints.working import logits_nbytes
from engine.models.base import READ_ON, Context, Facts, Rows
from engine.models.gemma.canvases import CanvasMemory, attend_to, own
from engine.models.gemma.checkpoint import read_module, read_tokenizer
from engine.models.gemma.facts import read_facts
from engine.models.gemma.network import Network, attention
from engine.models.gemma.reading import next_tokens
from engine.models.kv_cache import ContextCache, EncodedContext, window_mask
from engine.models.prompts.chat import ChatPrompt
from engine.models.prompts.layout import RESERVED, WIDTH, WIDTHS
from engine.models.prompts.tokens import TokenPrompt
from engine.models.tokenizer import Texts
from engine.models.vocabulary import Vocabulary

Keep = Callable[[int, Tensor, Tensor], tuple[Tensor, Tensor]]
"""(layer, new keys, new values) -> keys and values from the context's first token on."""
_CHUNK = 2048
"""Context tokens encoded at once; more would need more scratch memory."""
_CACHE_SHARE = 0.5
"""Of the device's memory that is free and not needed for logits, for keys and values of contexts."""
_CACHE_NBYTES = 512 << 20
"""For keys and values in main memory."""


class DiffusionGemma(Texts):
    """A resident checkpoint of the family."""

    def __init__(self, module: Any, facts: Facts, prompt: TokenPrompt | ChatPrompt) -> None:
        """`module`: transformers' DiffusionGemmaForBlockDiffusion, with or without its vision parts."""
        super().__init__(prompt)
        self.facts = facts
        self.network = Network(module)
        self._window: int = self.network.config.sliding_window
        self.reads = None
        """Positions are rotations, which know no end."""
        self.memory = CanvasMemory()
        self.remembers = True
        self.forget()

    @classmethod
    def open(cls, checkpoint: Checkpoint, placement: Placement) -> DiffusionGemma:
        """Load weights and tokenizer. Raises ModelError."""
        tokenizer = read_tokenizer(checkpoint)
        module: Any = read_module(checkpoint, placement)
        vocabulary = Vocabulary(tokenizer, module.config.text_config.vocab_size, checkpoint.name)
        facts = read_facts(checkpoint, placement, module, vocabulary)
        if facts.instructions:
            return cls(module, facts, ChatPrompt(tokenizer, vocabulary, facts.context_limit))
        pinned = read_files(checkpoint.path, checkpoint.name).told.get("pinned")
        return cls(module, facts, TokenPrompt(tokenizer, vocabulary, facts.context_limit, pinned))

    @torch.inference_mode()
    def encode(self, ids: Sequence[int]) -> EncodedContext:
        """Encode what the cache does not hold of the context [T]."""
        store, known = self.contexts.open(ids)
        for start in range(known, len(ids), _CHUNK):
            part = ids[start : start + _CHUNK]
            # What is wanted are keys and values.
            self._encode(part, start, partial(store.update, start), wanted=len(part) - 1)
            store.ids.extend(part)
        context = store.context(len(ids))
        self.contexts.trim()
        return context

    @torch.inference_mode()
    def step(self, rows: Rows) -> Tensor:
        """Raw float32 logits [F, V] of the open positions, row by row."""
        parts = self.memory.parts(rows, self.remembers)
        device, width = self.network.device, rows.canvas.shape[1]
        flat = torch.tensor([part.row * width + at for part in parts for at in part.places], device=device)
        positions = [[part.context.length + at for part in parts for at in part.places]]
        canvas, open_ = (each.to(device).flatten()[flat] for each in (rows.canvas, rows.open))
        sizes = [len(part.places) for part in parts]
        hidden = self.network.decode(
            canvas[None],
            torch.tensor(positions, device=device),
            attend_to(self.network, parts),
            self._signal(rows, canvas, open_, sizes),
            open_.nonzero()[:, 0],
        )
        self.memory.keep(parts)
        return self.network.logits(hidden[0])

    @torch.inference_mode()
    def score(self, context: Context, gaps: Sequence[Sequence[int]], suffix: Sequence[int]) -> list[list[float]]:
        """Log-probabilities of each gap under the causal encoder, and of what tells whether it fits: that it ends there
        where the context holds the suffix, else what of the suffix is read with it."""
        known = own(context)
        behind = suffix[:READ_ON] if self.facts.end_id is None else [self.facts.end_id]
        rows = [[*gap, *behind] for gap in gaps]
        width = max(map(len, rows), default=0)
        if width == 0:
            return [[] for _ in rows]
        device = self.network.device
        # The last token of the context is read again: its hidden state predicts the first token of a row.
        start = known.length - 1
        last = known.store.ids[start]
        ids = torch.tensor([[last, *row, *[0] * (width - len(row))] for row in rows], device=device)
        hidden = self._encode(ids, start, partial(_behind, known, start))
        flat = self.network.logits(hidden[:, :-1]).log_softmax(-1).gather(2, ids[:, 1:, None])[..., 0].tolist()
        return [values[: len(row)] for values, row in zip(flat, rows, strict=True)]

    @torch.inference_mode()
    def widths(self, context: Context) -> dict[int, float]:
        """Probability of each width that the model tells apart of a gap behind `context`, in one forward pass."""
        known = own(context)
        ids = torch.tensor([[WIDTH]], device=self.network.device)
        hidden = self._encode(ids, known.length, partial(_behind, known, known.length))
        answers = self.network.logits(hidden[0, 0])[RESERVED : RESERVED + len(WIDTHS)]
        return dict(zip(WIDTHS, answers.softmax(dim=-1).tolist(), strict=True))

    def next_tokens(self, ids: Sequence[int]) -> Iterator[int]:
        """Greedy next tokens behind `ids`, by the causal encoder."""
        return next_tokens(self.network, self.encode(ids))

    def forget(self) -> None:
        """Let go of all contexts."""
        budget = _cache_budget(self.network.device, self.facts.noise.vocab_size)
        self.contexts = ContextCache(len(self.network.decoder.layers), budget)

    def shrink_caches(self) -> None:
        """Let go of all contexts that are not in use, and keep half as many from now on."""
        self.contexts.shrink()

    def _encode(self, ids: Sequence[int] | Tensor, start: int, keep: Keep, wanted: int | None = None) -> Tensor:
        """Hidden states [B, T, E], or [B, 1, E] of the token `wanted`."""
        device = self.network.device
        tokens = ids if isinstance(ids, Tensor) else torch.tensor([list(ids)], device=device)
        length = tokens.shape[1]
        positions = torch.arange(start, start + length, device=device).expand(tokens.shape)
        near_from = max(0, start - self._window + 1)
        near = window_mask(start, length, near_from, self._window, device)
        full = window_mask(start, length, 0, None, device)

        def attend(index: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            keys, values = keep(index, key, value)
            if self.network.sliding(index):
                return attention(query, keys[:, :, near_from:], values[:, :, near_from:], near.to(query.device))
            return attention(query, keys, values, full.to(query.device))

        place = None if wanted is None else torch.tensor([wanted], device=device)
        return self.network.encode(tokens, positions, attend, place)

    def _signal(self, rows: Rows, canvas: Tensor, open_: Tensor, sizes: Sequence[int]) -> Tensor | None:
        """Self-conditioning [1, T, E]: soft embeddings where it is open, the token's own embedding elsewhere.

        canvas and open_ [T] hold `sizes` positions of each row.
        """
        if rows.self_conditioning is None:
            return None
        signal = self.network.decoder.embed_tokens(canvas)
        table = self.network.decoder.embed_tokens.weight
        signal[open_] = self.network.soft_embeddings(rows.self_conditioning.to(table.device, table.dtype))
        if not all(rows.conditioned):
            told = torch.tensor(list(rows.conditioned), device=signal.device)
            signal *= told.repeat_interleave(torch.tensor(sizes, device=signal.device))[:, None]
        return signal[None]


def _behind(known: EncodedContext, start: int, index: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    keys, values = known.store.read(index, start)
    rows = key.shape[0]
    return (
        torch.cat((keys.expand(rows, -1, -1, -1), key), dim=2),
        torch.cat((values.expand(rows, -1, -1, -1), value), dim=2),
    )


def _cache_budget(device: torch.device, vocabulary: int) -> int:
    if device.type == "cuda":
        return int(max(torch.cuda.mem_get_info(device)[0] - logits_nbytes(vocabulary), 0) * _CACHE_SHARE)
    return _CACHE_NBYTES
