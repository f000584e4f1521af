"""The rows of a table: ways to fill the same gaps with the same weights."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from dataclasses import replace as dataclass_replace
from functools import partial
from itertools import product
from typing import Any, cast, get_args

from msgspec.structs import replace

from engine.common.errors import BadInput
from engine.common.request import Filled, FillRequest
from engine.fill.executor import drive
from engine.fill.pipeline import Parts, fill, infill
from engine.lab.baselines.left_to_right import answered, fill_by_causal_head, fill_left_to_right
from engine.lab.baselines.reference import generates
from engine.lab.peer.client import NAME, Beside, Order
from engine.models.base import Model, Sampling, check_info

ADAPTIVE = "adaptive"
_SAMPLING = {each.name: each.type for each in fields(Sampling)}

Width = Callable[[Model, FillRequest, str], int]
"""(model, request, truth) -> tokens"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalRow:
    name: str
    fill: Callable[[Any, FillRequest], Filled]
    width: Width | None = None
    """The width that is given for the gap; None: none is given."""
    lacking: Callable[[Model], str] = lambda model: ""
    """Why a model can't fill in this way; empty where it can."""

    def answer(self, model: Model, request: FillRequest, truth: str) -> Filled:
        width = self.width(model, request, truth) if self.width else None
        return self.fill(model, replace(request, width=width))


def chosen_rows(names: Sequence[str], beside: Beside | None = None) -> list[EvalRow]:
    """The rows with these names, each once; those of llama.cpp use `beside`. Raises BadInput."""
    rows = {row.name: row for row in (*ROWS, *(_by_peer(beside) if beside else ()))}
    chosen = [rows.get(name) or _of_schedule(name) or _of_width(name, rows) for name in names]
    return list({row.name: row for row in chosen}.values())


def possible(rows: Sequence[EvalRow], model: Model, leave_out: Callable[[str], None] | None = None) -> list[EvalRow]:
    """The rows that `model` can fill. Of others `leave_out` is called with the reason; without `leave_out` they raise
    BadInput."""
    for row in rows:
        if reason := row.lacking(model):
            if leave_out is None:
                raise BadInput(f"{reason}, as the row {row.name!r} needs: leave it out.")
            leave_out(f"{reason}: the row {row.name!r} is left out.")
    return [row for row in rows if not row.lacking(model)]


def true_width(model: Model, request: FillRequest, truth: str) -> int:
    """The number of tokens of the truth, at least one."""
    return max(1, len(model.tokenize(model.prompt(request).head + truth)))


def _of_schedule(name: str) -> EvalRow | None:
    """The row of a name such as "max_steps 4, sure 0.9": values of `Sampling` that differ from the model's own."""
    changes: dict[str, float] = {}
    for part in name.split(","):
        setting, _, value = part.strip().partition(" ")
        try:
            changes[setting] = int(value) if _SAMPLING.get(setting) == "int" else float(value)
        except ValueError:
            return None
    if not {*changes} <= {*_SAMPLING}:
        return None

    def scheduled(model: Model, request: FillRequest) -> Filled:
        sampling = dataclass_replace(model.info.sampling, **cast(Any, changes))
        check_info(dataclass_replace(model.info, sampling=sampling))
        return drive(model, infill(model, request, parts=Parts(sampling=sampling)))

    return EvalRow(name=name, fill=scheduled)


def _of_width(name: str, known: Iterable[str]) -> EvalRow:
    tokens = name.removeprefix("width ")
    if not tokens.isdecimal() or int(tokens) < 1 or name == tokens:
        raise BadInput(
            f"There is no row {name!r}: name one of {', '.join(map(repr, known))}, another width, or settings such as "
            "'max_steps 4, sure 0.9'."
        )
    return EvalRow(name=f"width {int(tokens)}", fill=fill, width=lambda model, request, truth: int(tokens))


def with_parts(name: str, parts: Parts, lacking: Callable[[Model], str] = lambda model: "") -> EvalRow:
    """The row of fills with other parts than served ones."""
    return EvalRow(
        name=name, lacking=lacking, fill=lambda model, request: drive(model, infill(model, request, parts=parts))
    )


def _by_peer(beside: Beside) -> Iterator[EvalRow]:
    """The rows of llama.cpp: with either prompt, up to where the model ends or at most to the end of a line."""
    orders: tuple[Order, ...] = get_args(Order)
    for order, first_line in product(orders, (False, True)):
        more = (*(["suffix first"] if order == "suffix first" else []), *(["first line"] if first_line else []))
        yield EvalRow(
            name=", ".join((NAME, *more)), fill=partial(_fill_by_peer, beside, order=order, first_line=first_line)
        )


def _fill_by_peer(beside: Beside, model: Model, request: FillRequest, *, order: Order, first_line: bool) -> Filled:
    began = time.perf_counter()
    said = beside.peer.fill(
        request.prefix, request.suffix, order=order, max_tokens=request.max_tokens, first_line=first_line, fresh=True
    )
    passes = said.tokens + said.ended
    return answered(model, said.text, said.tokens, width=said.tokens, forwards=passes, began=began)


def _by_generate(model: Any, request: FillRequest) -> Filled:
    # It imports transformers, which the other rows do without.
    from engine.lab.baselines.generate import fill_by_generate

    return fill_by_generate(model, request)


def _no_reader(model: Model) -> str:
    return "" if model.left_to_right else f"{model.info.name} has no causal encoder to read left to right"


def _no_end(model: Model) -> str:
    return _no_reader(model) or ("" if model.info.end_id else f"{model.info.name} never learnt where a gap ends")


def _no_canvas(model: Model) -> str:
    return "" if model.canvas else f"{model.info.name} has no canvas beside a causal head, as coder-0.5b has"


def _by_canvas(model: Model, request: FillRequest) -> Filled:
    assert model.canvas is not None
    return fill(model.canvas, request)


def _no_generate(model: Model) -> str:
    return "" if generates(model) else f"{model.info.name} has no generate of transformers"


ROWS = (
    EvalRow(name=ADAPTIVE, fill=fill),
    EvalRow(name="oracle width", fill=fill, width=true_width),
    *(_of_width(f"width {tokens}", ()) for tokens in (8, 16, 32)),
    with_parts("without repair", Parts(repair=False)),
    with_parts("without mending", Parts(renoise=False)),
    with_parts("without causal hypothesis", Parts(causal_hypothesis=False), _no_end),
    with_parts("without ranking", Parts(ranking=False)),
    EvalRow(name="left to right", fill=fill_left_to_right, lacking=_no_reader),
    # Left to right as well, but the suffix stands in the context, and the model says where the gap ends.
    EvalRow(name="causal", fill=fill_by_causal_head, lacking=_no_end),
    EvalRow(name="causal, oracle width", fill=fill_by_causal_head, lacking=_no_end, width=true_width),
    # A coder's canvas alone, in up to four steps; and in the passes that check, to draft for the next one.
    EvalRow(name="canvas", fill=_by_canvas, lacking=_no_canvas),
    with_parts("with canvases", Parts(canvases=True), _no_canvas),
    EvalRow(name="generate", fill=_by_generate, lacking=_no_generate),
)
"""The rows that `--all` has."""
