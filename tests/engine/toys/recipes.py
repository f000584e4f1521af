"""Recipes of the toy models, by name, with the length strategy that each is for."""

from dataclasses import replace

from engine.learn.optimise import Rates
from engine.learn.shapes import Shape
from engine.learn.training_recipe import Recipe
from engine.models.checkpoints.directory import LengthStrategy

UNIFORM = Recipe(
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
    next_token_weight=0.3,
    snippet_share=0.0,
    edit_share=0.0,
    # As `discover` asks: canvases that go on freely, then widths that fit.
    free_share=0.4,
    span_share=0.7,
    pinned=32,
    blank_share=0.3,
    steps=48,
    from_left=False,
    mend_from=0.0,
    # What a canvas said surely may still change with all else of it.
    sure=2.0,
    widths=(8, 24, 64),
    rates=Rates(matrices=0.01, rest=0.0015),
)
ABSORBING = replace(
    UNIFORM,
    shape=replace(UNIFORM.shape, layers=4, full_every=2),
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
)
EXPERTS = replace(
    ABSORBING,
    shape=replace(ABSORBING.shape, layers=3, intermediate=64, experts=4, chosen=2, expert_size=32),
    tokens=600_000,
    canvases_from=60_000,
    decay=150_000,
)
"""As the released model has them, in multiples of a group of 4-bit weights."""
RECIPES: dict[str, tuple[Recipe, LengthStrategy]] = {
    "toy-absorbing": (ABSORBING, "slack"),
    "toy-experts": (EXPERTS, "slack"),
    "toy-uniform": (UNIFORM, "discover"),
}
