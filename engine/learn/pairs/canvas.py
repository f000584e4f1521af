"""Passes over canvases that follow contexts: what the base says, what the pairs make of it, and what they learn.

A canvas's first place holds the last token of its context once more, and place k says token k + 1, as the base does:
so the first places begin nearly right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.learn.pairs.batches import CanvasStep
from engine.learn.pairs.recipe import PairsRecipe
from engine.models.adapters.applied import twin
from engine.models.adapters.low_rank import ADAPTED, LowRankLinear
from engine.models.causal.opening import Coder
from engine.models.masked.network import MaskedNetwork

NOTHING = -100
"""The target where no loss is taken."""
KeysAndValues = list[tuple[Tensor, Tensor]]
"""Of each layer, [B, K, N, D] each."""
_WRITING = ("o_proj", "down_proj")
"""What writes to the residual stream."""


class PairedLinear(LowRankLinear):
    """Multiplied in the format of the layer that it stands beside."""

    def forward(self, hidden: Tensor) -> Tensor:
        a, b = self.lora_A.to(hidden.dtype), self.lora_B.to(hidden.dtype)
        return self.base(hidden) + self.scale * F.linear(F.linear(hidden, a), b)


class Pairs(nn.Module):
    """What is trained: pairs beside the layers of a frozen base, and the embedding of an unknown token."""

    def __init__(self, base: MaskedNetwork, recipe: PairsRecipe, mask: Tensor, seed: int) -> None:
        """`mask` [E]: the embedding to begin with."""
        super().__init__()
        module = twin(base.module)
        draw = torch.Generator().manual_seed(seed)
        self.layers: dict[str, PairedLinear] = {}
        for path, part in list(module.named_modules()):
            owner, _, name = path.rpartition(".")
            if not ADAPTED.search(path) or (recipe.targets == "output" and name not in _WRITING):
                continue
            outputs, inputs = part.weight.shape
            a = torch.randn(recipe.rank, inputs, generator=draw) / math.sqrt(inputs)
            pair = PairedLinear(part, a, torch.zeros(outputs, recipe.rank), recipe.alpha / recipe.rank)
            setattr(module.get_submodule(owner), name, pair)
            self.layers[path] = pair
        self.mask = nn.Parameter(mask.clone().float())
        self.network = [base.over(module)]
        """In a list, as the base's weights are not those of this module."""

    def trained(self) -> dict[str, nn.Parameter]:
        """By their names in a checkpoint."""
        pairs = {
            f"{path}.lora_{side}": getattr(of, f"lora_{side}") for path, of in self.layers.items() for side in "AB"
        }
        return {"mask": self.mask, **pairs}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefilled:
    """G canvases of W free slots after each of B contexts, ready for passes."""

    step: CanvasStep
    keys: KeysAndValues

    @property
    def last(self) -> Tensor:
        """[B, G] the token of the context before each canvas."""
        return self.step.ids.gather(1, self.step.cut - 1)


@torch.no_grad()
def prefill(base: MaskedNetwork, step: CanvasStep) -> Prefilled:
    """Let the base read the contexts."""
    kept: KeysAndValues = []

    def attend(index: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        kept.append((key, value))
        return F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)

    base.run(step.ids, _counted(step.ids), attend)
    return Prefilled(step=step, keys=kept)


def _counted(ids: Tensor) -> Tensor:
    return torch.arange(ids.shape[1], device=ids.device).expand(ids.shape)


def greedy(base: MaskedNetwork, of: Prefilled, width: int) -> Tensor:
    """[B, G, W] what the base writes after each context, its likeliest token at a time."""
    return written(base, of, width)[0]


@torch.no_grad()
def written(base: MaskedNetwork, of: Prefilled, width: int) -> tuple[Tensor, KeysAndValues]:
    """The same, with keys and values [B, K, W * G, D] of what was read for it: the last token of each context, then
    all but the last of those written."""
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
    """[B, G, W] what the base says at each place of drafts [B, G, W], having read what stands before it there."""
    shown = torch.cat((of.last[..., None], drafts[..., :-1]), dim=2)
    hidden = _rows(base, of, base.embeddings(shown), causal=True)
    return torch.cat([base.logits(part).argmax(dim=-1) for part in hidden.split(8)])


def said(pairs: Pairs, of: Prefilled, shown: Tensor, recipe: PairsRecipe) -> Tensor:
    """Hidden states [B, G, W, E] of canvases on which tokens [B, G, W] are shown; below 0: one is unknown."""
    network = pairs.network[0]
    embedded = network.embeddings(shown.clamp_min(0))
    unknown = torch.where((shown < 0)[..., None], pairs.mask.to(embedded.dtype), embedded)
    rows = [network.embeddings(of.last)[..., None, :], unknown[..., :-1, :]]
    if recipe.pinned:
        pinned = network.embeddings(of.step.pinned)[:, None]
        rows.append(pinned.expand(-1, shown.shape[1], -1, -1))
    hidden = _rows(network, of, torch.cat(rows, dim=2), causal=not recipe.bidirectional)
    return hidden[:, :, : shown.shape[2]]


def _rows(network: MaskedNetwork, of: Prefilled, embedded: Tensor, *, causal: bool) -> Tensor:
    """Hidden states [B, G, R, E] of rows [B, G, R, E]: each sees its context and its own canvas."""
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
    """[B, G, N] which tokens of its context a canvas sees: all but the last, which it has once more."""
    slots = torch.arange(of.step.ids.shape[1], device=of.step.ids.device)
    return slots < (of.step.cut - 1)[..., None]


def _attended(
    network: MaskedNetwork, context: tuple[Tensor, Tensor], own: tuple[Tensor, Tensor], query: Tensor, mask: Tensor
) -> Tensor:
    key, value = (torch.cat(each, dim=2) for each in zip(context, own, strict=True))
    return network.attention(query, key, value, mask)


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaks:
    """What tokens [V] say of line ends."""

    inside: Tensor
    """Whether a line break is in the token."""
    head: Tensor
    """The token for what it has before the break: padding where that is nothing, NOTHING where it takes several."""

    @classmethod
    def of(cls, coder: Coder, device: torch.device) -> Breaks:
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
    """[B, G, W] what each slot is to say, or NOTHING."""
    return step.text.masked_fill((step.gap == 0)[..., None], NOTHING)


def lines(answers: Tensor, breaks: Breaks, pad: int) -> Tensor:
    """[B, G, W] what the base writes [B, G, W] up to the line's end, then padding; NOTHING from where the token that
    holds the break says several before it."""
    broken = breaks.inside[answers]
    ended = broken.cumsum(dim=2)
    first = broken & (ended == 1)
    line = torch.where(first, breaks.head[answers], torch.where(ended > 0, pad, answers))
    # What its head stands for in several tokens is no target, nor is what follows it.
    split = (line == NOTHING).cumsum(dim=2) > 0
    return line.masked_fill(split, NOTHING)


def loss(
    pairs: Pairs, of: Prefilled, target: Tensor, recipe: PairsRecipe, head: Tensor, pad: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Mean cross-entropy in nats of the slots that are not shown, weighted; the number of these slots; and the share of
    them that is right."""
    shown_too = of.step.draw < of.step.known[..., None]
    shown = torch.where(shown_too & (target != NOTHING), target, -1)
    unused = (target == pad) & (target.roll(1, dims=2) == pad)
    unused[..., 0] = False
    weight = torch.where(unused, recipe.unused, 1.0)
    if recipe.near:
        place = torch.arange(target.shape[2], device=target.device)
        weight = weight * torch.exp(-place / recipe.near)
    # Of the unused slots few are enough: they are easy.
    far = unused & unused.roll(3, dims=2)
    far[..., :3] = False
    counted = (shown < 0) & (target != NOTHING) & ~far
    hidden = said(pairs, of, shown, recipe)[counted]
    truth, weight = target[counted], weight[counted]
    logits = F.linear(hidden, head).float()
    each = F.cross_entropy(logits, truth, reduction="none")
    right = (logits.detach().argmax(dim=-1) == truth).float().mean()
    return (each * weight).sum() / weight.sum(), counted.sum(), right
