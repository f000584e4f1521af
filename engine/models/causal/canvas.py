"""A coder's canvas as a model: the coder with its LoRA pairs denoises a whole gap over the coder's cached context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from engine.common.request import FillRequest
from engine.models.base import Capabilities, Context, Noise, Prompt, Rows, Sampling
from engine.models.causal.pairs import PairedNetwork
from engine.models.causal.text import CausalContext, CoderContexts
from engine.models.logits import Logits, dense

WIDTHS = (16, 32)
"""Slots of the canvases that the pairs were trained on."""
_SAMPLING = Sampling(
    max_steps=4,
    t_min=1.0,
    t_max=1.0,
    entropy_bound=0.1,
    stability_threshold=0,
    confidence_threshold=0.0,
    # The likeliest token alone.
    top_p=0.01,
    from_left=True,
)


class CoderCanvas(Capabilities):
    """Denoises canvases with a coder. Slot 0 repeats the context's last token in its position, and the logits of slot k
    are those of the gap's token k, as a causal model's are."""

    def __init__(self, coder: CoderContexts, network: PairedNetwork, unknown: int) -> None:
        """`unknown`: the token that stands for an unknown one on a canvas; no gap holds it."""
        self._coder, self._network = coder, network
        self.info = replace(
            coder.info,
            name=f"{coder.info.name}, canvas",
            length="slack",
            noise=Noise(mask_id=unknown, vocab_size=coder.info.noise.vocab_size),
            sampling=_SAMPLING,
            canvas_length=WIDTHS[-1],
            widths=WIDTHS,
            instructions=False,
        )
        self.vocabulary, self.tokenize = coder.vocabulary, coder.tokenize
        self.encode, self.head = coder.encode, coder.head

    def prompt(self, request: FillRequest, limit: int | None = None) -> Prompt:
        """The coder's prompt with nothing pinned: its context holds the suffix."""
        return replace(self._coder.prompt(request, limit), suffix=())

    def score(self, context: Context, gaps: Sequence[Sequence[int]], suffix: Sequence[int]) -> list[list[float]]:
        """The scores of the coder itself, without pairs."""
        return self._coder.score(context, gaps, suffix)

    @torch.inference_mode()
    def step(self, rows: Rows) -> Logits:
        """Logits of the open positions, row by row."""
        said: list[Tensor] = []
        for row, (context, length) in enumerate(zip(rows.contexts, rows.lengths, strict=True)):
            assert isinstance(context, CausalContext)
            own = self._denoised(context, rows.canvas[row, :length].tolist())
            logits = self._network.logits(own[rows.open[row, :length]])
            # Slots after the gap's end say nothing of their own: each is as sure as the slot that ends it.
            ended = (logits.argmax(dim=-1) == self.info.pad_id).nonzero()[:1, 0].tolist()
            for end in ended:
                logits[end:] = logits[end].clone()
            said.append(logits)
        return dense(torch.cat(said))

    def _denoised(self, context: CausalContext, ids: Sequence[int]) -> Tensor:
        """Hidden states [L, E] of a canvas."""
        network, device = self._network, self._network.device
        self._coder.read(context)
        before, count = context.length - 1, len(ids)
        shown = torch.tensor([[context.ids[-1], *ids[:-1]]], device=device)
        unknown = shown[0] == self.info.noise.mask_id
        unknown[0] = False

        def attend(index: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            keys, values = context.store.read(index, before)
            return network.attention(query, torch.cat((keys, key), dim=2), torch.cat((values, value), dim=2))

        places = torch.arange(before, before + count, device=device)[None]
        return network.run_canvas(shown, places, attend, torch.arange(count, device=device), count, unknown)[0]
