"""The model card: what a model is, what it was trained on and how far it got."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.train.corpus import Manifest
from engine.train.recipe import Recipe
from engine.train.shapes import trained_parameters
from engine.train.state import Point, TrainingState

CARD = "MODEL_CARD.md"
_LOSSES = ("canvas", "next_token")
_ROWS = 12
"""Of the table of losses, about."""

_BODY = """\
---
license: apache-2.0
library_name: transformers
tags: [diffusion, code, infilling]
---

# dg-lsp bundled model

A small text-diffusion model that fills gaps in Python, JavaScript and TypeScript, made for dg-lsp so that everything
works offline on a processor. It has the architecture of DiffusionGemma (`DiffusionGemmaForBlockDiffusion`), without
experts and images, and was trained from random weights by `python -m engine.train`; it shares no weights with Google's
models.

What it is not: it follows no instructions, knows no library well and is far behind models a thousand times its
size. Read what it writes before you keep it.

## Training

| | |
|---|---|
| Parameters | {parameters:,} |
| Context tokens read | {tokens:,} |
| of them before the first canvas | {next_token_tokens:,} |
| Steps | {steps:,} |
| Time | {hours:.1f} hours |
| Noise | {noise} |
| Context | {context} tokens |
| Seed | {seed} |

First the causal encoder learns to predict the next token; then canvases of a gap and up to {pinned} tokens behind it
are denoised as well, with the next-token loss beside. Losses on packages that were held out, in nats a token:

{losses}
{evaluation}
## Data

Source code that lay on the training machine under MIT, BSD, Apache-2.0, PSF or ISC terms: {characters:,} characters
({held_out:,} more of {held_out_packages} packages held out). Generated, minified and vendored files, near copies and
files that name code benchmarks were left out.

| Package | Version | Licence | Files | Characters | Split |
|---|---|---|--:|--:|---|
{packages}
"""


def write_card(
    out: Path,
    *,
    recipe: Recipe,
    seed: int,
    state: TrainingState,
    curve: Sequence[Point],
    manifest: Manifest,
    evaluation: str = "",
) -> None:
    """Write the card into the directory `out`; `evaluation` is Markdown of what was measured."""
    body = _BODY.format(
        parameters=sum(parameter.numel() for parameter in trained_parameters(state.module).values()),
        tokens=state.tokens,
        next_token_tokens=max((point.tokens for point in curve if "canvas" not in point.losses), default=0),
        steps=state.step,
        hours=state.seconds / 3600,
        noise=recipe.noise,
        context=max(recipe.contexts),
        seed=seed,
        pinned=recipe.pinned,
        losses=loss_table(curve),
        evaluation=f"\n## Evaluation\n\n{evaluation.strip()}\n" if evaluation else "",
        characters=manifest.characters("train"),
        held_out=manifest.characters("held-out"),
        held_out_packages=sum(entry.split == "held-out" for entry in manifest.packages),
        packages="\n".join(
            f"| {e.name} | {e.version} | {e.licence} | {e.files} | {e.characters:,} | {e.split} |"
            for e in sorted(manifest.packages, key=lambda entry: -entry.characters)
        ),
    )
    (out / CARD).write_text(body, encoding="utf-8")


def loss_table(curve: Sequence[Point]) -> str:
    """Losses on held-out packages over the tokens read: the last ones, and some on the way there."""
    points = [point for point in curve if point.split == "held-out"]
    some = points[:: -max(1, len(points) // _ROWS)][::-1]
    rows = [
        f"| {point.tokens:,} | "
        + " | ".join(f"{point.losses[name]:.2f}" if name in point.losses else "-" for name in _LOSSES)
        + " |"
        for point in some
    ]
    return "\n".join(["| Tokens | canvas | next token |", "|--:|--:|--:|", *rows])
