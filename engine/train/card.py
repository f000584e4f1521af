"""The model card: what a model is, what it was trained on and how far it got."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.train.corpus import Manifest
from engine.train.presets import Preset
from engine.train.shapes import trained_parameters
from engine.train.state import Point, State

CARD, CURVE_IMAGE = "MODEL_CARD.md", "loss.svg"
_WIDE, _HIGH, _MARGIN = 640, 240, 36
_COLOURS = {"next_token": "#4477aa", "canvas": "#cc6677"}

_BODY = """\
---
license: apache-2.0
library_name: transformers
tags: [diffusion, code, infilling]
---

# dg-lsp bundled model, preset `{preset}`

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
| Time | {hours:.1f} hours on {device} |
| Noise | {noise} |
| Context | {context} tokens |
| Seed | {seed} |

First the causal encoder learns to predict the next token; then canvases of a gap and up to {pinned} tokens behind it
are denoised as well, with the next-token loss beside. Losses are in nats a token.

{losses}

![losses]({image})

Thin: training batches; thick: packages that were held out.
{comparison}{evaluation}
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
    name: str,
    preset: Preset,
    seed: int,
    state: State,
    curve: Sequence[Point],
    manifest: Manifest,
    comparison: str = "",
    evaluation: str = "",
) -> None:
    """Write the card and its loss curve into the directory `out`; `evaluation` is Markdown of what was measured."""
    parameters = trained_parameters(state.module).values()
    body = _BODY.format(
        preset=name,
        parameters=sum(parameter.numel() for parameter in parameters),
        tokens=state.tokens,
        next_token_tokens=_before_canvases(curve),
        steps=state.step,
        hours=state.seconds / 3600,
        device="a GPU" if state.device.type == "cuda" else "a processor",
        noise=preset.noise,
        context=max(preset.contexts),
        seed=seed,
        pinned=preset.pinned,
        losses=_losses(curve),
        image=CURVE_IMAGE,
        comparison=f"\n{comparison}",
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
    (out / CURVE_IMAGE).write_text(loss_image(curve), encoding="utf-8")


def loss_image(curve: Sequence[Point]) -> str:
    """The losses over the tokens read, as SVG."""
    most = max((point.tokens for point in curve), default=1)
    highest = max((loss for point in curve for loss in point.losses.values()), default=1.0)
    lines: list[str] = []
    for name, colour in _COLOURS.items():
        for split, thickness in (("train", 0.6), ("held-out", 2)):
            places = [
                f"{_MARGIN + point.tokens / most * (_WIDE - 2 * _MARGIN):.1f},"
                f"{_HIGH - _MARGIN - point.losses[name] / highest * (_HIGH - 2 * _MARGIN):.1f}"
                for point in curve
                if point.split == split and name in point.losses
            ]
            lines.append(
                f'<polyline fill="none" stroke="{colour}" stroke-width="{thickness}" points="{" ".join(places)}"/>'
            )
        at = 60 + 140 * list(_COLOURS).index(name)
        lines.append(f'<text x="{at}" y="16" fill="{colour}">{name.replace("_", " ")}</text>')
    base = _HIGH - _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {_HIGH}" font-family="sans-serif" '
        'font-size="11">'
        f'<rect width="{_WIDE}" height="{_HIGH}" fill="white"/>'
        f'<path d="M{_MARGIN} {_MARGIN}V{base}H{_WIDE - _MARGIN}" fill="none" stroke="#888"/>'
        f'<text x="4" y="{_MARGIN}">{highest:.1f}</text><text x="4" y="{base}">0</text>'
        f'<text x="{_WIDE - _MARGIN}" y="{_HIGH - 12}" text-anchor="end">{most / 1e6:.1f} million tokens</text>'
        + "".join(lines)
        + "</svg>\n"
    )


def _before_canvases(curve: Sequence[Point]) -> int:
    return max((point.tokens for point in curve if "canvas" not in point.losses), default=0)


def _losses(curve: Sequence[Point]) -> str:
    last = {point.split: point for point in curve if "canvas" in point.losses} or {p.split: p for p in curve}
    rows = [f"| {split} | " + _figures(point) + " |" for split, point in last.items()]
    return "\n".join(["| Split | canvas | next token |", "|---|--:|--:|", *rows])


def _figures(point: Point) -> str:
    return " | ".join(f"{point.losses[name]:.2f}" if name in point.losses else "-" for name in reversed(_COLOURS))
