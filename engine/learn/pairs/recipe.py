"""What a run of pairs trains and how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Targets = Literal["all", "output"]
"""Which matrices of each layer have pairs: all seven, or the two that write to the residual stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsRecipe:
    """Sizes in tokens. A row is one place of a canvas that the loss is taken at."""

    rows: int = 5_000_000
    """To read in all; the learning rate falls over the last of them."""
    seconds: float = 0.0
    """To train at the most, where that is less; 0: no bound. The rate falls with whichever is nearer its end."""
    rank: int = 32
    alpha: float = 32.0
    targets: Targets = "all"
    rate: float = 1e-3
    """Peak learning rate of AdamW."""
    decay: float = 0.5
    """Last share of a run, over which the rate falls to nothing."""
    context: int = 384
    """Of a context: the suffix, then the prefix."""
    shorter: float = 0.3
    """Contexts that are shorter than that, down to an eighth."""
    snippets: float = 0.2
    """Contexts that begin with a part of a neighbouring file."""
    contexts: int = 48
    """Of one step."""
    widths: tuple[int, ...] = (16, 16, 32)
    """Of canvases, in turn from step to step."""
    slots: int = 192
    """Of all canvases of one context together."""
    pinned: int = 0
    """Suffix tokens that stand on the canvas, too, after its free slots."""
    blank: float = 0.6
    """Prefilled of which nothing is known; of the others a random share is."""
    distilled: float = 0.0
    """Steps whose canvases learn lines that the base itself writes after a context, instead of the text."""
    written: int = 40
    """Tokens that it writes after a context, for all canvases of that context."""
    batch: int = 32
    """Contexts after which it writes at once; several steps take their share of them."""
    near: float = 0.0
    """Weight of a place by exp(-place / near); 0: all places weigh the same."""
    unused: float = 0.1
    """Weight of an unused slot after the first, which says that the gap ends."""
    bidirectional: bool = True
    """Whether a slot sees those after it on its canvas."""
