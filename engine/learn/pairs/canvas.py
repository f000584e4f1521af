"""Passes over canvases in training: by the base, which is the frozen coder, and by the base with the pairs that learn.

Slot 0 of a canvas repeats the last token of its context, and slot k predicts the gap's token k, as a causal model does:
so the first slots are nearly right from the start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.learn.learn import parameters_of
from engine.learn.pairs.batches import CanvasStep
from engine.learn.pairs.recipe import PairsRecipe
from engine.models.adapters.applied import twin
from engine.models.adapters.low_rank import ADAPTED, LowRankLinear
from engine.models.causal.opening import Coder
from engine.models.masked.network import MaskedNetwork

NOTHING = -100
"""The target where no loss is taken."""
KeysAndValues = list[tuple[Tensor, Tensor]]
"""Keys and values of each layer, [B, K, N, D] each."""


class PairedLinear(LowRankLinear):
    """A pair that is multiplied in the number format of the layer beside it."""

    def forward(self, hidden: Tensor) -> Tensor:
        a, b = self.lora_A.to(hidden.dtype), self.lora_B.to(hidden.dtype)
        return self.base(hidden) + self.scale * F.linear(F.linear(hidden, a), b)


class Pairs(nn.Module):
    """What is trained: LoRA pairs beside the layers of a frozen base, and the embedding of an unknown token."""

    def __init__(self, base: MaskedNetwork, recipe: PairsRecipe, mask: Tensor, seed: int) -> None:
        """`mask` [E]: the embedding of an unknown token before training."""
        super().__init__()
        module = twin(base.module)
        draw = torch.Generator().manual_seed(seed)
        self.layers: dict[str, PairedLinear] = {}
        for path, part in list(module.named_modules()):
            owner, _, name = path.rpartition(".")
            if not ADAPTED.search(path):
                continue
            outputs, inputs = part.weight.shape
            a = torch.randn(recipe.rank, inputs, generator=draw) / math.sqrt(inputs)
            pair = PairedLinear(part, a, torch.zeros(outputs, recipe.rank), recipe.alpha / recipe.rank)
            setattr(module.get_submodule(owner), name, pair)
            self.layers[path] = pair
        self.mask = nn.Parameter(mask.clone().float())
        self.network = [base.over(module)]
        """In a list, so that torch does not count the base's weights as this module's."""

    def trained(self) -> dict[str, nn.Parameter]:
        """The parameters by their names in a checkpoint."""
        return {"mask": self.mask, **parameters_of(self.layers)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefilled:
    """Contexts that the base has prefilled, ready for passes over canvases: B contexts with G canvases each."""

    step: CanvasStep
    keys: KeysAndValues

    @property
    def last(self) -> Tensor:
        """Tokens [B, G]: the last one of the context before each canvas."""
        return self.step.ids.gather(1, self.step.cut - 1)


@torch.no_grad()
def prefill(base: MaskedNetwork, step: CanvasStep) -> Prefilled:
    """Prefill the contexts of a step with the base."""
    kept: KeysAndValues = []

    def attend(index: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        kept.append((key, value))
        return F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)

    base.run(step.ids, _counted(step.ids), attend)
    return Prefilled(step=step, keys=kept)


def _counted(ids: Tensor) -> Tensor:
    return torch.arange(ids.shape[1], device=ids.device).expand(ids.shape)


def greedy(base: MaskedNetwork, of: Prefilled, width: int) -> Tensor:
    """Tokens [B, G, W] that the base writes after each context by greedy decoding."""
    return written(base, of, width)[0]


@torch.no_grad()
def written(base: MaskedNetwork, of: Prefilled, width: int) -> tuple[Tensor, KeysAndValues]:
    """`greedy` with keys and values [B, K, W * G, D] of what it read: the last token of each context, then all written
    tokens but the last."""
    count = of.step.cut.shape[1]
    token, position = of.last, of.step.cut - 1
    kept: KeysAndValues = []
    own = torch.eye(count, dtype=torch.bool, device=token.device).expand(len(token), count, count)
    before = _before(of)
    tokens: list[Tensor] = []

    for turn in range(width):
        mask = torch.cat((before, own.repeat(1, 1, turn + 1)), dim=2)[:, None]

        def attend(index: int, query: Tensor, key: Tensor, value: Tensor, mask: Tensor = mask) -> Tensor:
            if index == len(kept):
                kept.append((key, value))
            else:
                held = kept[index]
                kept[index] = torch.cat((held[0], key), dim=2), torch.cat((held[1], value), dim=2)
            return _attended(base, of.keys[index], kept[index], query, mask)

        hidden = base.run(token, position, attend)
        token, position = base.logits(hidden).argmax(dim=-1), position + 1
        tokens.append(token)
    return torch.stack(tokens, dim=2), kept


@torch.no_grad()
def checked(base: MaskedNetwork, of: Prefilled, drafts: Tensor) -> Tensor:
    """The base's likeliest tokens [B, G, W] at each place of drafts [B, G, W], after the draft's tokens before it."""
    shown = torch.cat((of.last[..., None], drafts[..., :-1]), dim=2)
    hidden = _rows(base, of, base.embeddings(shown), causal=True)
    return torch.cat([base.logits(part).argmax(dim=-1) for part in hidden.split(8)])


def said(pairs: Pairs, of: Prefilled, shown: Tensor) -> Tensor:
    """Hidden states [B, G, W, E], by base and pairs, of canvases that show tokens [B, G, W]; below 0: unknown."""
    network = pairs.network[0]
    embedded = network.embeddings(shown.clamp_min(0))
    unknown = torch.where((shown < 0)[..., None], pairs.mask.to(embedded.dtype), embedded)
    rows = torch.cat((network.embeddings(of.last)[..., None, :], unknown[..., :-1, :]), dim=2)
    return _rows(network, of, rows, causal=False)


def _rows(network: MaskedNetwork, of: Prefilled, embedded: Tensor, *, causal: bool) -> Tensor:
    """Hidden states [B, G, R, E] of embeddings [B, G, R, E]: a slot attends to its context and its own canvas."""
    batch, count, rows = embedded.shape[:3]
    device = embedded.device
    owner = torch.arange(count, device=device).repeat_interleave(rows)
    place = torch.arange(rows, device=device).repeat(count)
    own = owner[:, None] == owner[None, :]
    if causal:
        own &= place[None, :] <= place[:, None]
    before = _before(of).repeat_interleave(rows, dim=1)
    mask = torch.cat((before, own.expand(batch, -1, -1)), dim=2)[:, None]
    positions = (of.step.cut[..., None] - 1 + place[:rows]).flatten(1)

    def attend(index: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return _attended(network, of.keys[index], (key, value), query, mask)

    return network.run_embedded(embedded.flatten(1, 2), positions, attend).unflatten(1, (count, rows))


def _before(of: Prefilled) -> Tensor:
    """Mask [B, G, N] of the context's tokens that a canvas attends to: all but the last, which slot 0 repeats."""
    slots = torch.arange(of.step.ids.shape[1], device=of.step.ids.device)
    return slots < (of.step.cut - 1)[..., None]


def _attended(
    network: MaskedNetwork, context: tuple[Tensor, Tensor], own: tuple[Tensor, Tensor], query: Tensor, mask: Tensor
) -> Tensor:
    key, value = (torch.cat(each, dim=2) for each in zip(context, own, strict=True))
    return network.attention(query, key, value, mask)


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaks:
    """Line breaks in the tokens [V] of a vocabulary."""

    inside: Tensor
    """Bool [V]: the token has a line break in it."""
    head: Tensor
    """Ids [V] of the token for its text before the break: padding for no text, NOTHING for text of several tokens."""

    @classmethod
    def of(cls, coder: Coder, device: torch.device) -> Breaks:
        """The line breaks of a coder's vocabulary."""
        size = coder.network.config.vocab
        inside, head = torch.zeros(size, dtype=torch.bool), torch.full((size,), NOTHING)
        for token in range(coder.tokenizer.get_vocab_size()):
            text, broken, _ = coder.tokenizer.decode([token]).partition("\n")
            if broken:
                ids = coder.encode(text)
                inside[token] = True
                head[token] = coder.fim.pad if not ids else ids[0] if len(ids) == 1 else NOTHING
        return cls(inside=inside.to(device), head=head.to(device))


def targets(step: CanvasStep) -> Tensor:
    """The target [B, G, W] of each slot: a token, or NOTHING."""
    return step.text.masked_fill((step.gap == 0)[..., None], NOTHING)


def lines(answers: Tensor, breaks: Breaks, pad: int) -> Tensor:
    """Answers [B, G, W] up to the end of their line, then padding; NOTHING from a token on whose text before the break
    takes several tokens."""
    broken = breaks.inside[answers]
    ended = broken.cumsum(dim=2)
    first = broken & (ended == 1)
    line = torch.where(first, breaks.head[answers], torch.where(ended > 0, pad, answers))
    # Text that takes several tokens is no target, nor is what follows it.
    split = (line == NOTHING).cumsum(dim=2) > 0
    return line.masked_fill(split, NOTHING)


def loss(
    pairs: Pairs, of: Prefilled, target: Tensor, recipe: PairsRecipe, head: Tensor, pad: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The weighted mean cross-entropy of the unknown slots in nats, their number, and the share of them that is
    right."""
    shown_too = of.step.draw < of.step.known[..., None]
    shown = torch.where(shown_too & (target != NOTHING), target, -1)
    unused = (target == pad) & (target.roll(1, dims=2) == pad)
    unused[..., 0] = False
    weight = torch.where(unused, recipe.unused, 1.0)
    # A few of the unused slots are enough: they are easy.
    far = unused & unused.roll(3, dims=2)
    far[..., :3] = False
    counted = (shown < 0) & (target != NOTHING) & ~far
    hidden = said(pairs, of, shown)[counted]
    truth, weight = target[counted], weight[counted]
    logits = F.linear(hidden, head).float()
    each = F.cross_entropy(logits, truth, reduction="none")
    right = (logits.detach().argmax(dim=-1) == truth).float().mean()
    return (each * weight).sum() / weight.sum(), counted.sum(), right
