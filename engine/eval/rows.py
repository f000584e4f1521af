"""The rows of a table: ways to fill the same gaps with the same weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from engine.baselines.left_to_right import LeftToRight, fill_by_causal_head, fill_left_to_right
from engine.baselines.reference import fill_by_generate, generates
from engine.core.errors import BadInput
from engine.core.request import Filled, FillRequest
from engine.decoding.executor import drive
from engine.eval.tasks import Task
from engine.infill.pipeline import Parts, infill
from engine.models.base import Model

ADAPTIVE, ORACLE = "adaptive", "oracle"
GREEDY, GENERATE = "left to right", "generate"
CAUSAL = "causal"
"""Left to right as well, but the suffix stands in the context, and the model says where the gap ends."""
PARTS = {"repair": Parts(repair=False), "mending": Parts(renoise=False), "ranking": Parts(ranking=False)}
"""What can be left out, by name."""
FIXED_WIDTHS = ("8", "16", "32")
"""Tokens, where all rows are asked for."""

Way = Callable[[Model, FillRequest, str], Filled]
"""(model, request, truth) -> answer"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One way to fill a gap."""

    name: str
    fill: Way
    lacking: Callable[[Model], str] = lambda model: ""
    """What a model needs for it and does not have; nothing where it can fill in this way."""


def chosen_rows(
    *,
    widths: Sequence[str] = (),
    without: Sequence[str] = (),
    greedy: bool = False,
    causal: bool = False,
    generate: bool = False,
) -> list[Row]:
    """Rows by what was asked for, each once. Raises BadInput."""
    rows = [_of_width(name) for name in dict.fromkeys(widths)]
    rows += [_without(name) for name in dict.fromkeys(without)]
    rows += [Row(name=GREEDY, fill=_left_to_right, lacking=_no_reader)] if greedy else []
    rows += [Row(name=CAUSAL, fill=_causal, lacking=_no_end)] if causal else []
    rows += [Row(name=f"{CAUSAL}, oracle width", fill=_causal_oracle, lacking=_no_end)] if causal else []
    rows += [Row(name=GENERATE, fill=_by_generate, lacking=_no_generate)] if generate else []
    return rows


def all_rows() -> list[Row]:
    """Every row that means something beside the others."""
    return chosen_rows(
        widths=(ADAPTIVE, ORACLE, *FIXED_WIDTHS), without=tuple(PARTS), greedy=True, causal=True, generate=True
    )


def possible(rows: Sequence[Row], model: Model, leave_out: Callable[[str], None] | None = None) -> list[Row]:
    """The rows that `model` can fill; `leave_out` is told why another is not among them. Raises BadInput instead where
    nobody is to be told."""
    for row in rows:
        if reason := row.lacking(model):
            if leave_out is None:
                raise BadInput(f"{reason}, as the row {row.name!r} needs: leave it out.")
            leave_out(f"{reason}: the row {row.name!r} is left out.")
    return [row for row in rows if not row.lacking(model)]


def request_of(task: Task, seed: int, max_tokens: int) -> FillRequest:
    """What is asked about a task."""
    return FillRequest(prefix=task.prefix, suffix=task.suffix, language=task.language, seed=seed, max_tokens=max_tokens)


def true_width(model: Model, request: FillRequest, truth: str) -> int:
    """Tokens of a gap that holds the truth, at least one."""
    return max(1, len(model.tokenize(model.prompt(request).head + truth)))


def _of_width(name: str) -> Row:
    if name == ADAPTIVE:
        return Row(name=name, fill=_adaptive)
    if name == ORACLE:
        return Row(name="oracle width", fill=_oracle)
    if not name.isdecimal() or int(name) < 1:
        raise BadInput(f"The width {name!r} is none: use adaptive, oracle or a number of tokens.")
    return Row(name=f"width {int(name)}", fill=_fixed(int(name)))


def _without(name: str) -> Row:
    if name not in PARTS:
        raise BadInput(f"There is no part {name} to leave out: name one of {', '.join(PARTS)}.")
    return Row(name=f"without {name}", fill=_with_parts(PARTS[name]))


def _adaptive(model: Model, request: FillRequest, truth: str) -> Filled:
    return drive(model, infill(model, request))


def _oracle(model: Model, request: FillRequest, truth: str) -> Filled:
    return drive(model, infill(model, replace(request, width=true_width(model, request, truth))))


def _fixed(width: int) -> Way:
    return lambda model, request, truth: drive(model, infill(model, replace(request, width=width)))


def _with_parts(parts: Parts) -> Way:
    return lambda model, request, truth: drive(model, infill(model, request, parts=parts))


def _no_reader(model: Model) -> str:
    return "" if isinstance(model, LeftToRight) else f"{model.info.name} has no causal encoder to read left to right"


def _no_generate(model: Model) -> str:
    return "" if generates(model) else f"{model.info.name} has no generate of transformers"


def _left_to_right(model: Model, request: FillRequest, truth: str) -> Filled:
    assert isinstance(model, LeftToRight)
    return fill_left_to_right(model, request)


def _no_end(model: Model) -> str:
    return _no_reader(model) or ("" if model.info.end_id else f"{model.info.name} never learnt where a gap ends")


def _causal(model: Model, request: FillRequest, truth: str) -> Filled:
    assert isinstance(model, LeftToRight)
    return fill_by_causal_head(model, request)


def _causal_oracle(model: Model, request: FillRequest, truth: str) -> Filled:
    assert isinstance(model, LeftToRight)
    return fill_by_causal_head(model, replace(request, width=true_width(model, request, truth)))


def _by_generate(model: Model, request: FillRequest, truth: str) -> Filled:
    return fill_by_generate(model, request)
