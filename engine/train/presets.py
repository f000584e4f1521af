"""What a run trains and how long, by name."""

from __future__ import annotations

from dataclasses import dataclass

from engine.train.optimise import Rates
from engine.train.shapes import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One recipe. A run reads `tokens` context tokens, the first `next_token_tokens` of them without canvases."""

    shape: Shape
    tokens: int
    next_token_tokens: int
    next_token_weight: float
    """Of the next-token loss beside the canvases' own."""
    rows: int
    """Rows of one step."""
    context: int
    """Tokens of context in a row."""
    canvases: int
    """Canvas tokens beside each row, in the second phase."""
    rates: Rates

    @property
    def step_tokens(self) -> int:
        """Context tokens that one step reads."""
        return self.rows * self.context


PRESETS = {
    "small": Preset(
        shape=Shape(
            vocab=6144,
            hidden=256,
            intermediate=640,
            layers=6,
            heads=4,
            kv_heads=2,
            head_size=64,
            window=256,
            full_every=3,
            canvas=96,
        ),
        tokens=60_000_000,
        next_token_tokens=25_000_000,
        next_token_weight=0.3,
        rows=8,
        context=512,
        canvases=512,
        rates=Rates(),
    ),
    "base": Preset(
        shape=Shape(
            vocab=6144,
            hidden=512,
            intermediate=1536,
            layers=10,
            heads=8,
            kv_heads=4,
            head_size=64,
            window=512,
            full_every=5,
            canvas=128,
        ),
        tokens=400_000_000,
        next_token_tokens=160_000_000,
        next_token_weight=0.3,
        rows=64,
        context=1024,
        canvases=1024,
        rates=Rates(matrices=0.015, rest=0.002),
    ),
}
