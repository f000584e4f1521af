"""What a run trains and how long."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import msgspec

from engine.common.errors import BadInput
from engine.learn.optimise import Rates
from engine.learn.shapes import Shape

R = TypeVar("R")
"""The recipe of the bundled model, or that of pairs."""
NoiseKind = Literal["absorbing", "uniform"]
"""What an unknown position of a canvas holds: the mask token, or any token of the vocabulary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """That of the bundled model. A run reads `tokens` context tokens: first next tokens alone, then canvases beside
    them, and at the end the learning rate falls to nothing."""

    shape: Shape = field(default_factory=Shape)
    noise: NoiseKind = "absorbing"
    tokens: int = 250_000_000
    shallow: int = 3
    """Layers to begin with: a token teaches few of them less, but in six tenths of the time, which is worth more at
    first."""
    shallow_until: int = 4_500_000
    """Tokens after which the run goes on with all layers, made from these."""
    steady: int = 20_000_000
    """Tokens after which the rates fall, as one over the square root of the tokens read."""
    canvases_from: int = 15_000_000
    """Tokens before the first canvas. The sooner they begin, the fewer there are beside a row for the same number in
    the end, and the more steps learn from them: first steps are few, whatever their size."""
    decay: int = 34_000_000
    """Last tokens, over which the learning rate falls."""
    best_share: float = 1.0
    """Last share of these, whose texts are mostly the best ones."""
    averaged: float = 0.2
    """Last share of the tokens, over which the mean of the weights is taken, which is what is exported: it has less of
    the noise of single steps than the last weights have, also after a falling rate."""
    average_every: int = 1_000_000
    """Tokens between the weights of this mean."""
    contexts: tuple[int, ...] = (256, 256, 256, 512)
    """Tokens of a row, in turn from step to step."""
    step_tokens: int = 8192
    """Context tokens of one step."""
    canvas_share: float = 0.5
    """Canvas tokens for each token of context."""
    next_token_weight: float = 1.0
    """Of the next-token loss beside the canvases' own, whose mean is over five times fewer tokens."""
    gap_weight: float = 0.2
    """Of the loss of the gaps' tokens and ends alone, which are about one in five tokens, beside the mean over all."""
    width_weight: float = 0.1
    """Of the loss of the gaps' widths, which are about one in fifty of the targets."""
    end_weight: float = 0.0
    """Of the loss of the gaps' ends alone, which are about one in sixty."""
    function_share: float = 0.5
    """Texts that are a function which begins with its docstring."""
    whole_rows: bool = False
    """Whether a text takes all the room that its row has left; else it may be any part of it."""
    gap_share: float = 0.7
    """Texts with a gap at the end of their context, whose suffix comes first."""
    snippet_share: float = 0.33
    """Texts whose context has parts of neighbouring files."""
    echo_share: float = 0.2
    """Texts whose context shows them once more, around the gap and in it, as if they stood elsewhere too: a small model
    hardly learns to copy from what is rarely there to be copied. None where a run is looked at."""
    edit_share: float = 0.1
    """Texts with a gap whose context has recent edits."""
    span_share: float = 0.0
    """Gaps between any two tokens, short and long ones alike; the others are placed by syntax."""
    pinned: int = 8
    """Suffix tokens on a canvas, at the most."""
    repeated: bool = True
    """Whether the suffix in a context begins at the gap; else after what is pinned on the canvas."""
    free_share: float = 0.0
    """Canvases without a suffix: the text just goes on."""
    fitting_share: float = 1.0
    """Of the canvases with a suffix, those that are as wide as they need to be; the others' unused slots are padded."""
    narrow_share: float = 0.0
    """Those that are too narrow: text up to their last slot, as nothing is unused there."""
    blank_share: float = 0.85
    """Canvases of which nothing is known yet, as a fill begins, among those that need not be known in part."""
    drafted_share: float = 0.75
    """Of the canvases that are denoised twice, those on which the model's own first answer stands in places: what was
    taken from it may be wrong, and is asked for again."""
    runs_on: bool = False
    """A fact of the model: see engine.models.base."""
    steps: int = 6
    """Denoise steps of a served canvas, at the most: a canvas of masks needs few, as what it accepted stays."""
    from_left: bool = True
    """Whether a served canvas is filled in the order of its text; else what is surest first."""
    sure: float = 0.5
    """Probability of each of its open tokens at which a served canvas is done."""
    mend_from: float = 0.5
    """Mean confidence from which a fill that does not parse is denoised again; below it is only cut."""
    widths: tuple[int, ...] = (6, 16, 64)
    """Gap widths that are tried beside each other when the model is served and can't be asked."""
    rates: Rates = field(default_factory=Rates)

    def averages(self, before: int, after: int) -> bool:
        """Whether weights join the mean after a step from `before` to `after` tokens read."""
        return after > self.averaged_from and before // self.average_every < after // self.average_every

    @property
    def averaged_from(self) -> int:
        """Context tokens after which weights join the mean."""
        return round(self.tokens * (1 - self.averaged))

    @property
    def plateau_tokens(self) -> int:
        """Context tokens after which the learning rate falls."""
        return self.tokens - self.decay

    @property
    def best_from(self) -> int:
        """Context tokens after which texts are mostly the best ones."""
        return round(self.tokens - self.best_share * self.decay)

    def shape_after(self, tokens: int) -> Shape:
        """The shape that the next step trains after so many tokens."""
        return self.shape.of(self.shallow) if tokens < self.shallow_until else self.shape

    def scale_after(self, tokens: int) -> float:
        """Share of the peak rates, warm-up and decay aside."""
        return math.sqrt(min(1.0, self.steady / max(1, tokens)))

    def rows(self, width: int) -> int:
        """Rows of a step whose rows have `width` tokens."""
        return max(1, self.step_tokens // width)


def changed(recipe: R, changes: Sequence[str]) -> R:
    """`recipe` with other values for parts of it, "name=value" or "shape.name=value" each.

    Raises BadInput for a part that a recipe does not have, or a value that is none of its kind.
    """
    values: dict[str, Any] = msgspec.to_builtins(recipe)
    holders = {name: values for name, value in values.items() if isinstance(value, str | float | int)}
    inside = {name: part for name, part in values.items() if isinstance(part, dict)}
    holders |= {f"{name}.{each}": part for name, part in inside.items() for each in part}
    for change in changes:
        name, _, text = change.partition("=")
        if name not in holders:
            raise BadInput(f"A recipe has no {name!r}: use one of {', '.join(holders)}.")
        last = name.rpartition(".")[2]
        before, holders[name][last] = holders[name][last], text
        try:
            msgspec.convert(values, type(recipe), strict=False)
        except msgspec.ValidationError:
            raise BadInput(f"{name} can't be {text!r}: it is {before!r} in the recipe.") from None
    return msgspec.convert(values, type(recipe), strict=False)
