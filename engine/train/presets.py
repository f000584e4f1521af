"""What a run trains and how long, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import cattrs

from engine.errors import BadInput
from engine.train.optimise import DECAY, Rates
from engine.train.shapes import Shape

NoiseKind = Literal["absorbing", "uniform"]
"""What an unknown position of a canvas holds: the mask token, or any token of the vocabulary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One recipe. A run reads `tokens` context tokens, the first `next_token_share` of them without canvases."""

    shape: Shape
    noise: NoiseKind
    tokens: int
    next_token_share: float = 0.4
    next_token_weight: float = 0.3
    """Of the next-token loss beside the canvases' own."""
    free_share: float = 0.08
    """Canvases without a suffix: the text just goes on."""
    span_share: float = 0.0
    """Gaps between any two tokens, short and long ones alike; the others are placed by syntax."""
    fitting_share: float = 0.0
    """Of the canvases with a suffix, those that are as wide as they need to be."""
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

    @property
    def plateau_tokens(self) -> float:
        """Context tokens after which the learning rate falls."""
        return (1 - DECAY) * self.tokens

    def phase(self, tokens: int) -> int:
        """0 (next tokens) or 1 (canvases) after `tokens` context tokens."""
        return int(tokens >= self.next_token_share * self.tokens)


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
    next_token_share=0.1,
    # As `discover` asks: canvases that go on freely, then widths that fit.
    free_share=0.4,
    span_share=0.7,
    fitting_share=1.0,
    blank_share=0.3,
    rows=4,
    context=160,
    canvases=256,
    rates=Rates(matrices=0.01, rest=0.0015),
)

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
            # One layer that sees everything: what a keystroke costs in a long context is that layer's attention.
            full_every=6,
            canvas=96,
        ),
        noise="absorbing",
        tokens=60_000_000,
        blank_share=0.2,
        fitting_share=0.1,
        steps=8,
        widths=(6, 16, 64),
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
        noise="absorbing",
        tokens=400_000_000,
        steps=8,
        widths=(6, 16, 64),
        rows=64,
        context=1024,
        canvases=1024,
        rates=Rates(matrices=0.015, rest=0.002),
    ),
    "toy-absorbing": replace(
        _TOY,
        shape=replace(_TOY.shape, layers=4, full_every=2),
        noise="absorbing",
        tokens=800_000,
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

_TEXTS = cattrs.Converter()
_TEXTS.register_structure_hook(bool, lambda value, _: {"true": True, "false": False}[str(value).lower()])


def changed(preset: Preset, changes: Sequence[str]) -> Preset:
    """`preset` with other values for parts of it, "name=value" or "shape.name=value" each.

    Raises BadInput for a part that a preset does not have, or a value that is none of its kind.
    """
    values = _TEXTS.unstructure(preset)
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
            values = _TEXTS.unstructure(_TEXTS.structure(values, Preset))
        except cattrs.ClassValidationError:
            raise BadInput(f"{name} can't be {value!r}: it is {before!r} in the preset.") from None
    return _TEXTS.structure(values, Preset)
