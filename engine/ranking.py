"""From denoised canvases to candidates, best first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from engine.gap import Gap
from engine.length import Fitted
from engine.request import Candidate

READ_ON = 16
"""Suffix tokens that are scored together with a gap."""
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    text: str
    ids: tuple[int, ...]
    confidence: tuple[float, ...]


def ranked(gap: Gap, fitted: Fitted) -> tuple[Candidate, ...]:
    """The rows as candidates: scored by the model's own reading of gap and suffix, duplicates and repeats dropped."""
    rows = _distinct(gap, fitted)
    read_on = gap.suffix[:READ_ON]
    scores = gap.model.score(gap.context, [(*row.ids, *read_on) for row in rows]) if rows else []
    candidates = [_candidate(gap, row, score) for row, score in zip(rows, scores, strict=True)]
    return tuple(sorted(candidates, key=lambda candidate: -candidate.score)[: gap.request.n])


def repeats_suffix(text: str, suffix: str) -> bool:
    """Whether a fill says again what the file goes on with: its last line is the suffix's first."""
    first = next((line.strip() for line in suffix.splitlines() if line.strip()), "")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return len(first) > 2 and len(lines) > 0 and lines[-1] == first


def _distinct(gap: Gap, fitted: Fitted) -> list[_Row]:
    rows: dict[str, _Row] = {}
    for index, width in enumerate(fitted.widths):
        ids = fitted.canvas.row(index)[:width]
        sure = fitted.canvas.confidence[index, :width].tolist()
        text = gap.text(ids)
        broken = _REPLACEMENT in text and _REPLACEMENT not in gap.request.prefix + gap.request.suffix
        whole = gap.model.detokenize([*gap.committed, *gap.real(ids)]).startswith(gap.prompt.head)
        if text in rows or broken or not whole or repeats_suffix(text, gap.request.suffix):
            continue
        kept = [(token, value) for token, value in zip(ids, sure, strict=True) if token != gap.model.facts.pad_id]
        rows[text] = _Row(
            text=text, ids=tuple(token for token, _ in kept), confidence=tuple(value for _, value in kept)
        )
    return list(rows.values())


def _candidate(gap: Gap, row: _Row, score: Sequence[float]) -> Candidate:
    logs = [math.log(max(value, 1e-12)) for value in row.confidence]
    return Candidate(
        text=row.text,
        tokens=len(gap.committed) + len(row.ids),
        confidence=math.exp(sum(logs) / len(logs)) if logs else 1.0,
        score=sum(score) / len(score) if score else 0.0,
        token_confidence=row.confidence,
    )
