"""The recipe of a training run: what is trained, on what, and how long."""

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
"""The content of an unknown position of a canvas: the mask token, or any token of the vocabulary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The recipe of the bundled model. A run reads `tokens` context tokens: first next tokens alone, then canvases
    beside them; at the end the learning rate falls to nothing."""

    shape: Shape = field(default_factory=Shape)
    noise: NoiseKind = "absorbing"
    tokens: int = 250_000_000
    steady: int = 20_000_000
    """Tokens after which the rates fall, as one over the square root of the tokens read."""
    canvases_from: int = 15_000_000
    """Tokens before the first canvas. The sooner canvases begin, the fewer of them stand beside a row for the same
    number in the end, and the more steps learn from them."""
    decay: int = 34_000_000
    """Last tokens, over which the learning rate falls."""
    best_share: float = 1.0
    """Last share of these tokens, for which the best documents are preferred."""
    averaged: float = 0.2
    """Last share of the tokens, over which the weights are averaged. The mean is exported: it has less of the noise of
    single steps than the last weights, also after a falling rate."""
    average_every: int = 1_000_000
    """Tokens between two sets of weights of this mean."""
    contexts: tuple[int, ...] = (256, 256, 256, 512)
    """Tokens of a row, in turn from step to step."""
    step_tokens: int = 8192
    """Context tokens of one step."""
    canvas_share: float = 0.5
    """Canvas tokens for each token of context."""
    next_token_weight: float = 1.0
    """Weight of the next-token loss beside that of canvases, whose mean is over five times fewer tokens."""
    gap_weight: float = 0.2
    """Weight of the loss of the gaps' tokens and ends, which are about one in five tokens, beside the mean over all."""
    width_weight: float = 0.1
    """Weight of the loss of the gaps' widths, which are about one in fifty targets."""
    end_weight: float = 0.0
    """Weight of the loss of the gaps' ends, which are about one in sixty."""
    function_share: float = 0.5
    """Share of texts that are a function which begins with its docstring."""
    whole_rows: bool = False
    """Whether a text takes all the room that its row has left; else it takes a random part of it."""
    gap_share: float = 0.7
    """Share of texts with a gap at the end of their context, whose suffix comes first."""
    snippet_share: float = 0.33
    """Share of texts whose context has parts of neighbouring files."""
    echo_share: float = 0.2
    """Share of texts whose context has the text around the gap and in it once more, as if from another file: a small
    model hardly learns to copy where there is rarely anything to copy. None in measurements."""
    edit_share: float = 0.1
    """Share of texts with a gap whose context has recent edits."""
    span_share: float = 0.0
    """Share of gaps between any two tokens, short and long ones alike; the others are placed by syntax."""
    pinned: int = 8
    """Most suffix tokens on a canvas."""
    repeated: bool = True
    """Whether the suffix in a context begins at the gap; else it begins after the tokens that are pinned on the
    canvas."""
    free_share: float = 0.0
    """Share of canvases without a suffix: the text goes on."""
    fitting_share: float = 1.0
    """Of the canvases with a suffix, the share as wide as their text; the others' unused slots are padded."""
    narrow_share: float = 0.0
    """The share narrower than their text, which fills these to the last slot."""
    blank_share: float = 0.85
    """Share of canvases of which nothing is known yet, as at the beginning of a fill, where that is possible."""
    drafted_share: float = 0.75
    """Of the canvases that are denoised twice, the share with tokens of the model's own first answer: some may be
    wrong, and are to be predicted again."""
    runs_on: bool = False
    """`runs_on` of the model: see engine.models.base."""
    steps: int = 6
    """Most denoise steps of a served canvas. A canvas of masks needs few, as what it accepted stays."""
    from_left: bool = True
    """Whether a served canvas is filled in the order of its text; else the surest position comes first."""
    sure: float = 0.5
    """Probability of each open token from which a served canvas is done."""
    mend_from: float = 0.5
    """Mean confidence from which a fill that does not parse is denoised again; below it is only cut."""
    widths: tuple[int, ...] = (6, 16, 64)
    """Gap widths that are tried beside each other when the model does not predict any."""
    rates: Rates = field(default_factory=Rates)

    def averages(self, before: int, after: int) -> bool:
        """Whether the weights join the mean after a step from `before` to `after` tokens."""
        return after > self.averaged_from and before // self.average_every < after // self.average_every

    @property
    def averaged_from(self) -> int:
        """Tokens after which weights join the mean."""
        return round(self.tokens * (1 - self.averaged))

    @property
    def plateau_tokens(self) -> int:
        """Tokens after which the learning rate falls."""
        return self.tokens - self.decay

    @property
    def best_from(self) -> int:
        """Tokens after which the best documents are preferred."""
        return round(self.tokens - self.best_share * self.decay)

    def scale_after(self, tokens: int) -> float:
        """The share of the peak rates after so many tokens, warm-up and decay aside."""
        return math.sqrt(min(1.0, self.steady / max(1, tokens)))

    def rows(self, width: int) -> int:
        """Rows of a step whose rows have `width` tokens."""
        return max(1, self.step_tokens // width)


def changed(recipe: R, changes: Sequence[str]) -> R:
    """A recipe with some values replaced, "name=value" or "shape.name=value" each. Raises BadInput for an unknown name,
    or a value of another kind."""
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
