"""The rows of a table: ways to fill the same gaps with the same weights."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from engine.baselines.left_to_right import LeftToRight, fill_by_causal_head, fill_left_to_right
from engine.baselines.reference import generates
from engine.core.errors import BadInput
from engine.core.request import Filled, FillRequest
from engine.decoding.executor import drive
from engine.infill.pipeline import Parts, fill, infill
from engine.models.base import Model

ADAPTIVE, ORACLE = "adaptive", "oracle"
GREEDY, GENERATE = "left to right", "generate"
CAUSAL = "causal"
"""Left to right as well, but the suffix stands in the context, and the model says where the gap ends."""
PARTS = {"repair": Parts(repair=False), "mending": Parts(renoise=False), "ranking": Parts(ranking=False)}
"""What can be left out, by name."""
FIXED_WIDTHS = ("8", "16", "32")
"""Tokens, where all rows are asked for."""

Width = Callable[[Model, FillRequest, str], int]
"""(model, request, truth) -> tokens"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalRow:
    name: str
    fill: Callable[[Any, FillRequest], Filled]
    width: Width | None = None
    """Tells the width of the gap; None: nobody does."""
    lacking: Callable[[Model], str] = lambda model: ""
    """What a model needs for it and does not have; nothing where it can fill in this way."""

    def answer(self, model: Model, request: FillRequest, truth: str) -> Filled:
        width = self.width(model, request, truth) if self.width else None
        return self.fill(model, replace(request, width=width))


def chosen_rows(
    *,
    widths: Sequence[str] = (),
    without: Sequence[str] = (),
    greedy: bool = False,
    causal: bool = False,
    generate: bool = False,
) -> list[EvalRow]:
    """Rows by what was asked for, each once. Raises BadInput."""
    rows = [_of_width(name) for name in dict.fromkeys(widths)]
    rows += [_without(name) for name in dict.fromkeys(without)]
    if greedy:
        rows.append(EvalRow(name=GREEDY, fill=fill_left_to_right, lacking=_no_reader))
    if causal:
        row = EvalRow(name=CAUSAL, fill=fill_by_causal_head, lacking=_no_end)
        rows += [row, dataclasses.replace(row, name=f"{CAUSAL}, oracle width", width=true_width)]
    if generate:
        rows.append(EvalRow(name=GENERATE, fill=_by_generate, lacking=_no_generate))
    return rows


def all_rows() -> list[EvalRow]:
    """Every row that means something beside the others."""
    return chosen_rows(
        widths=(ADAPTIVE, ORACLE, *FIXED_WIDTHS), without=tuple(PARTS), greedy=True, causal=True, generate=True
    )


def possible(rows: Sequence[EvalRow], model: Model, leave_out: Callable[[str], None] | None = None) -> list[EvalRow]:
    """The rows that `model` can fill; `leave_out` is told why another is not among them. Raises BadInput instead where
    nobody is to be told."""
    for row in rows:
        if reason := row.lacking(model):
            if leave_out is None:
                raise BadInput(f"{reason}, as the row {row.name!r} needs: leave it out.")
            leave_out(f"{reason}: the row {row.name!r} is left out.")
    return [row for row in rows if not row.lacking(model)]


def true_width(model: Model, request: FillRequest, truth: str) -> int:
    """Tokens of a gap that holds the truth, at least one."""
    return max(1, len(model.tokenize(model.prompt(request).head + truth)))


def _of_width(name: str) -> EvalRow:
    if name == ADAPTIVE:
        return EvalRow(name=name, fill=fill)
    if name == ORACLE:
        return EvalRow(name="oracle width", fill=fill, width=true_width)
    if not name.isdecimal() or int(name) < 1:
        raise BadInput(f"The width {name!r} is none: use adaptive, oracle or a number of tokens.")
    return EvalRow(name=f"width {int(name)}", fill=fill, width=lambda model, request, truth: int(name))


def _without(name: str) -> EvalRow:
    if name not in PARTS:
        raise BadInput(f"There is no part {name} to leave out: name one of {', '.join(PARTS)}.")
    return EvalRow(
        name=f"without {name}", fill=lambda model, request: drive(model, infill(model, request, parts=PARTS[name]))
    )


def _by_generate(model: Any, request: FillRequest) -> Filled:
    # It imports transformers, which the other rows do without.
    from engine.baselines.generate import fill_by_generate

    return fill_by_generate(model, request)


def _no_reader(model: Model) -> str:
    return "" if isinstance(model, LeftToRight) else f"{model.info.name} has no causal encoder to read left to right"


def _no_end(model: Model) -> str:
    return _no_reader(model) or ("" if model.info.end_id else f"{model.info.name} never learnt where a gap ends")


def _no_generate(model: Model) -> str:
    return "" if generates(model) else f"{model.info.name} has no generate of transformers"
