"""The settings of a run that trains pairs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsRecipe:
    """Sizes are in tokens. A row is one place of a canvas that the loss is taken at."""

    rows: int = 5_000_000
    """Rows of the whole run; the learning rate falls over the last of them."""
    seconds: float = 0.0
    """Longest time of training; 0: no bound. The rate falls with `rows` or `seconds`, whichever is nearer its end."""
    rank: int = 32
    alpha: float = 32.0
    rate: float = 1e-3
    """Peak learning rate of AdamW."""
    decay: float = 0.5
    """The last share of a run, over which the rate falls to 0."""
    context: int = 384
    """Most tokens of a context: snippets, suffix, prefix."""
    shorter: float = 0.3
    """Share of contexts that are shorter than that, down to an eighth."""
    snippets: float = 0.2
    """Share of contexts that begin with a part of a neighbouring file."""
    contexts: int = 48
    """Contexts of one step."""
    widths: tuple[int, ...] = (8, 4, 8, 16, 8, 4, 8, 16, 8, 4, 8, 16, 8, 4, 8, 32)
    """Slots of a canvas, in turn from step to step."""
    slots: int = 192
    """Slots of all canvases of one context together."""
    blank: float = 0.6
    """Share of canvases of which nothing is known; of the others a random share of slots is."""
    distilled: float = 0.0
    """Share of steps whose canvases learn the lines that the coder itself writes, in place of the corpus's text."""
    written: int = 40
    """Tokens that the coder writes after a context, for all canvases of that context."""
    batch: int = 32
    """Contexts that the coder writes after at once; the steps that follow share them."""
    unused: float = 0.1
    """Weight of an unused slot after the first, which says that the gap ends."""
