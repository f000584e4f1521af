"""What a run trains and how long, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from engine.core.errors import BadInput
from engine.train.optimise import Rates
from engine.train.shapes import Shape

NoiseKind = Literal["absorbing", "uniform"]
"""What an unknown position of a canvas holds: the mask token, or any token of the vocabulary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One recipe. A run reads `tokens` context tokens: first next tokens alone, then canvases beside them, and at the
    end the learning rate falls to nothing."""

    shape: Shape
    noise: NoiseKind
    tokens: int
    canvases_from: int
    """Tokens before the first canvas."""
    decay: int
    """Last tokens, over which the learning rate falls; the texts are mostly the best ones then."""
    contexts: tuple[int, ...]
    """Tokens of a row, in turn from step to step."""
    step_tokens: int
    """Context tokens of one step."""
    canvas_share: float = 0.5
    """Canvas tokens for each token of context."""
    next_token_weight: float = 0.3
    """Of the next-token loss beside the canvases' own."""
    gap_share: float = 0.7
    """Texts with a gap at the end of their context, whose suffix comes first."""
    snippet_share: float = 0.33
    """Texts whose context has parts of neighbouring files."""
    edit_share: float = 0.1
    """Texts with a gap whose context has recent edits."""
    span_share: float = 0.0
    """Gaps between any two tokens, short and long ones alike; the others are placed by syntax."""
    pinned: int = 16
    """Suffix tokens on a canvas, at the most."""
    free_share: float = 0.0
    """Canvases without a suffix: the text just goes on."""
    fitting_share: float = 1.0
    """Of the canvases with a suffix, those that are as wide as they need to be; the others' unused slots are padded."""
    narrow_share: float = 0.0
    """Those that are too narrow: text up to their last slot, as nothing is unused there."""
    blank_share: float = 0.0
    """Canvases of which nothing is known yet, as a fill begins."""
    runs_on: bool = False
    """A fact of the model: see engine.models.base."""
    steps: int = 48
    """Denoise steps of a served canvas, at the most: a canvas of masks needs few, as what it accepted stays."""
    widths: tuple[int, ...] = (8, 24, 64)
    """Gap widths that are tried beside each other when the model is served."""
    rates: Rates

    @property
    def plateau_tokens(self) -> int:
        """Context tokens after which the learning rate falls."""
        return self.tokens - self.decay

    def rows(self, width: int) -> int:
        """Rows of a step whose rows have `width` tokens."""
        return max(1, self.step_tokens // width)

    def beside(self, width: int) -> int:
        """Canvas tokens beside a row of `width` tokens."""
        return int(width * self.canvas_share)

    def phase(self, tokens: int) -> Phase:
        """What a step is made of after `tokens` context tokens."""
        return Phase(canvases=tokens >= self.canvases_from, best=tokens >= self.plateau_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """What a step is made of."""

    canvases: bool
    best: bool
    """Mostly the texts that weigh most."""


_TOY = Preset(
    shape=Shape(
        vocab=400,
        hidden=128,
        intermediate=256,
        layers=3,
        heads=2,
        kv_heads=1,
        head_size=64,
        window=96,
        full_every=3,
        canvas=96,
    ),
    noise="uniform",
    tokens=640_000,
    canvases_from=64_000,
    decay=160_000,
    contexts=(160,),
    step_tokens=640,
    canvas_share=1.6,
    snippet_share=0.0,
    edit_share=0.0,
    # As `discover` asks: canvases that go on freely, then widths that fit.
    free_share=0.4,
    span_share=0.7,
    pinned=32,
    blank_share=0.3,
    rates=Rates(matrices=0.01, rest=0.0015),
)

PRESETS = {
    "small": Preset(
        shape=Shape(
            vocab=6144,
            hidden=384,
            intermediate=1024,
            layers=6,
            heads=6,
            kv_heads=2,
            head_size=64,
            window=256,
            # One layer that sees everything: what a keystroke costs in a long context is that layer's attention.
            full_every=6,
            canvas=96,
        ),
        noise="absorbing",
        tokens=150_000_000,
        canvases_from=82_500_000,
        decay=15_000_000,
        contexts=(256, 256, 256, 512),
        step_tokens=8192,
        blank_share=0.5,
        steps=8,
        widths=(6, 16, 64),
        rates=Rates(),
    ),
    "toy-absorbing": replace(
        _TOY,
        shape=replace(_TOY.shape, layers=4, full_every=2),
        noise="absorbing",
        tokens=800_000,
        canvases_from=80_000,
        decay=200_000,
        steps=16,
        # As `slack` asks: widths that are too large or too small.
        free_share=0.04,
        fitting_share=0.25,
        narrow_share=0.25,
        blank_share=0.25,
        # Its text is sure long before it sees where a gap ends.
        runs_on=True,
    ),
    "toy-uniform": _TOY,
}


def changed(preset: Preset, changes: Sequence[str]) -> Preset:
    """`preset` with other values for parts of it, "name=value" or "shape.name=value" each.

    Raises BadInput for a part that a preset does not have, or a value that is none of its kind.
    """
    values = msgspec.to_builtins(preset)
    for change in changes:
        name, _, value = change.partition("=")
        *folder, last = name.split(".")
        part: Any = values.get(folder[0], {}) if folder else values
        if len(folder) > 1 or not isinstance(part, dict) or not isinstance(part.get(last), str | float | int):
            names = [key for key in values if isinstance(values[key], str | float | int)]
            inside = [f"{key}.{each}" for key in values if isinstance(values[key], dict) for each in values[key]]
            raise BadInput(f"A preset has no {name!r}: use one of {', '.join([*names, *inside])}.")
        before = part[last]
        part[last] = value
        try:
            values = msgspec.to_builtins(msgspec.convert(values, Preset, strict=False))
        except msgspec.ValidationError:
            raise BadInput(f"{name} can't be {value!r}: it is {before!r} in the preset.") from None
    return msgspec.convert(values, Preset)
