"""What weights in 4 bit are worth on a device: a step beside the time that reading its weights takes, fills beside
greedy autoregression by the same weights, memory beside what was planned, and what a keystroke costs.

Weights are random, so how many steps a fill takes says nothing: it is told, and named with each figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import torch
from msgspec.structs import replace as replace_fields
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from engine.fill.executor import drive
from engine.fill.pipeline import Parts, infill
from engine.lab.bench.fills import by_causal_head
from engine.lab.bench.steps import keystroke, uncounted
from engine.lab.bench.timing import Figure, Ratio, Spread, Stopwatch
from engine.lab.bench.workload import Measured, forgetful, launched, request_for, rows_of, token_ids
from engine.models.base import LeftToRight
from engine.models.checkpoints.directory import TensorHeader
from engine.models.network import Network
from engine.models.products import prefers_bfloat16
from engine.models.quantized.layers import packed_in, product_ways
from engine.models.static_steps import static_steps

STEP, FILL = "step", "fill"
_CONTEXT = 512
_FUSED = 64
"""Most variants of a layer that are compiled: each width, for each kind of layers."""
_MATRIX = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofSize:
    """How much is measured."""

    positions: tuple[int, ...] = (32, 128)
    """Of a step, a quarter of them pinned."""
    widths: tuple[int, ...] = (16, 32, 96)
    """Of gaps."""
    steps: tuple[int, ...] = (8, 48)
    """That a fill takes."""
    lengths: tuple[int, ...] = (256, 1024, 4096)
    """Of contexts, before a keystroke."""
    copied: int = 1 << 30
    """Bytes, to learn how fast memory is."""
    compiled: bool = False
    """Whether a step is compiled, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proved:
    """What one model came to."""

    model: str
    device: str
    products: str
    """How weights in 4 bit are multiplied with."""
    figures: list[Figure] = field(default_factory=list[Figure])
    ratios: list[Ratio] = field(default_factory=list[Ratio])
    nbytes: dict[str, int] = field(default_factory=dict[str, int])
    """Weights and work, planned and held."""
    products_of: dict[int, int] = field(default_factory=dict[int, int])
    """Floating-point operations of a step, by its positions."""
    bandwidth: float = 0.0
    """Bytes a second, read and written."""
    flops: float = 0.0
    """Of a product of large matrices, a second."""
    rates: dict[str, float] = field(default_factory=dict[str, float])
    """Tokens a second."""
    left_out: dict[str, str] = field(default_factory=dict[str, str])
    """What could not be measured, and why."""


@runtime_checkable
class Weighed(Measured, LeftToRight, Protocol):
    """A model whose weights can be looked at, which reads left to right as well."""

    @property
    def network(self) -> Network:
        """Its passes, and the module with the weights."""
        ...


def prove(model: Weighed, watch: Stopwatch, size: ProofSize, on_part: Callable[[str], None]) -> Proved:
    """Measure one model, telling `on_part` what comes next."""
    device = torch.device(model.info.device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    on_part("steps")
    proved = prove_steps(model, watch, size)
    on_part("fills")
    _fills(proved, model, watch, size)
    on_part("keystrokes")
    figures, ratios = keystroke(model, watch, size.lengths, max(size.lengths))
    proved.figures.extend(figures)
    proved.ratios.extend(ratios)
    # So that the most that all of this took is known.
    proved.nbytes.update(_memory(model, device))
    if size.compiled:
        on_part("a compiled step")
        try:
            _compiled_step(proved, model, watch, size.positions[0])
        except Exception as error:  # noqa: BLE001 nobody is served this way yet
            proved.left_out["compiled graph"] = f"{type(error).__name__}: {error}"
    return proved


def prove_steps(model: Weighed, watch: Stopwatch, size: ProofSize) -> Proved:
    """Steps alone."""
    device = torch.device(model.info.device)
    proved = Proved(
        model=model.info.name,
        device=torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        products=product_ways(model.info.device),
        bandwidth=_bandwidth(watch, device, size.copied),
        flops=_flops_a_second(watch, device),
    )
    for count in size.positions:
        _steps(proved, model, watch, count)
    return proved


def _steps(proved: Proved, model: Weighed, watch: Stopwatch, count: int) -> None:
    """A step of `count` positions, in full: launched, as a graph, and beside reading its weights."""
    run = _step(model, count)
    with forgetful(model):
        with launched(model):
            with FlopCounterMode(display=False, custom_mapping=uncounted()) as counter:
                proved.nbytes[f"weights read by a step of {count}"] = nbytes_read(model.network.module, run)
            proved.products_of[count] = counter.get_total_flops()
            _note(proved, "launched", count, watch.time(run))
        if model.static is not None:
            run()  # A graph is made at the second use, which is not timed either.
            _note(proved, "graph", count, watch.time(run))


def _compiled_step(proved: Proved, model: Weighed, watch: Stopwatch, count: int) -> None:
    """The same through a graph of what was compiled before."""
    before, run = model.static, _step(model, count)
    made = model.static = static_steps(model.network, model.reads, model.info.context_limit)
    try:
        assert made is not None, "only steps on CUDA are captured"
        with fusing(model.network), forgetful(model):
            run()
            _note(proved, "compiled graph", count, watch.time(run))
    finally:
        model.static = before


@contextmanager
def fusing(network: Any) -> Generator[None]:
    """Within the block the code between attentions is compiled, where the family can."""
    compiler: Any = import_module("torch._dynamo.config")
    network.fused = True
    try:
        with compiler.patch(recompile_limit=_FUSED):
            yield
    finally:
        network.fused = False


def _step(model: Weighed, count: int) -> Callable[[], Tensor]:
    pinned = count // 4
    rows = rows_of(model, model.encode(token_ids(model, _CONTEXT)), gap=count - pinned, pinned=pinned)
    return lambda: model.step(rows).whole()


def _note(proved: Proved, name: str, count: int, spread: Spread) -> None:
    reading = proved.nbytes[f"weights read by a step of {count}"] / proved.bandwidth * 1000
    multiplying = proved.products_of[count] / proved.flops * 1000
    proved.figures.append(Figure(part=STEP, name=name, spread=spread, at=count))
    for roof, ms in {"reading its weights": reading, "its products": multiplying}.items():
        proved.ratios.append(Ratio(name=f"step of {count}, {name}, by {roof}", value=spread.median / ms))


def _fills(proved: Proved, model: Weighed, watch: Stopwatch, size: ProofSize) -> None:
    """Fills and greedy autoregression, the context encoded before; and what autoregression could reach at the most."""
    tokens = model.next_tokens(token_ids(model, _CONTEXT))
    next(tokens)
    read = nbytes_read(model.network.module, lambda: next(tokens))
    proved.nbytes["weights read for a token, left to right"] = read
    proved.rates["greedy, if it only read its weights"] = proved.bandwidth / read
    for width in size.widths:
        request = replace_fields(request_for(model, width), n=1)
        ways: dict[str, Callable[[], object]] = {"greedy": partial(by_causal_head(model)["greedy"], request)}
        for steps in size.steps:
            parts = Parts(sampling=replace(model.info.sampling, max_steps=steps))
            ways[f"{steps} steps"] = lambda parts=parts, to=request: drive(model, infill(model, to, parts=parts))
        for name, way in ways.items():
            spread = watch.time(way)
            proved.figures.append(Figure(part=FILL, name=name, spread=spread, at=width))
            proved.rates[f"{width} tokens, {name}"] = width / spread.median * 1000


def nbytes_read(module: nn.Module, run: Callable[[], object]) -> int:
    """Bytes of weights that are read when `run` runs: of experts in 4 bit those alone that rows were routed to, by the
    kernel; of anything else that is touched, all of it."""
    reads = _Reads(module)
    with reads:
        run()
    return int(sum(reads.nbytes.values()))


class _Reads(TorchDispatchMode):
    """Notes which weights are operands within the block."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.nbytes = dict[int, float]()
        """By where they begin."""
        self._own = {each.untyped_storage().data_ptr() for each in (*module.parameters(), *module.buffers())}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name: str = func._schema.name
        # What only looks at them from another side reads nothing; rows of a table are few.
        if not func.is_view and "embedding" not in name:
            share = 1.0
            if name == "dg_lsp::grouped_product" and args[-1] is not None:
                share = float((args[-1] > 0).float().mean())
            for each in tree_leaves((args, kwargs)):
                if isinstance(each, Tensor) and (at := self._place(each)) is not None:
                    self.nbytes[at] = max(self.nbytes.get(at, 0.0), share * each.numel() * each.itemsize)
        return func(*args, **kwargs)

    def _place(self, operand: Tensor) -> int | None:
        """Where a weight begins; None for what is none."""
        if operand.layout != torch.strided:
            return id(operand)  # in an order of oneDNN's, which nothing but weights are in
        return operand.data_ptr() if operand.untyped_storage().data_ptr() in self._own else None


def _bandwidth(watch: Stopwatch, device: torch.device, nbytes: int) -> float:
    """Bytes that memory reads and writes a second, in a copy."""
    source = torch.ones(nbytes, dtype=torch.uint8, device=device)
    into = torch.empty_like(source)
    return 2 * nbytes / watch.time(lambda: into.copy_(source)).median * 1000


def _flops_a_second(watch: Stopwatch, device: torch.device) -> float:
    """In the format that the device multiplies fastest in."""
    dtype = torch.bfloat16 if prefers_bfloat16(device.type) else torch.float32
    matrix = torch.ones(_MATRIX, _MATRIX, dtype=dtype, device=device)
    return 2 * _MATRIX**3 / watch.time(lambda: matrix @ matrix).median * 1000


def _memory(model: Weighed, device: torch.device) -> dict[str, int]:
    module: nn.Module = model.network.module
    packed = packed_in(module).values()
    inside = {id(each) for part in packed for each in part.buffers()}
    plain = [each for each in (*module.parameters(), *module.buffers()) if id(each) not in inside]
    headers = [TensorHeader(name="", dtype="INT4", shape=part.shape, pieces=({},)) for part in packed]
    itemsize = plain[0].itemsize
    held = sum(each.nbytes for each in (*module.parameters(), *module.buffers()))
    memory = {
        "weights, planned": sum(each.nbytes_in(itemsize) for each in headers)
        + sum(math.prod(each.shape) for each in plain) * itemsize,
        "weights, held": held,
        "work, planned": 0 if model.info.memory is None else model.info.memory.beside,
    }
    if device.type == "cuda":
        memory["work, held at most"] = torch.cuda.max_memory_allocated(device) - held
        memory["all that torch took"] = torch.cuda.max_memory_reserved(device)
    return memory


def table(proved: Sequence[Proved]) -> str:
    """Rows for docs/benchmarks.md."""
    found = [dict(_rows(each)) for each in proved]
    names = dict.fromkeys(name for own in found for name in own)
    rows = [
        ["", *(f"{each.model}, {each.device}" for each in proved)],
        ["---", *("--:" for _ in proved)],
        *([name, *(own.get(name, "") for own in found)] for name in names),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _rows(proved: Proved) -> Iterator[tuple[str, str]]:
    for name, nbytes in proved.nbytes.items():
        yield name, f"{nbytes / 1e9:.2f} GB"
    yield "memory, read and written", f"{proved.bandwidth / 1e9:.0f} GB/s"
    yield "products of large matrices", f"{proved.flops / 1e12:.2f} TFLOP/s"
    for figure in proved.figures:
        own = figure.spread
        yield f"{figure.part}, {figure.name}, at {figure.at}", f"{own.median:.2f} ms ({own.low:.2f} to {own.high:.2f})"
    for ratio in proved.ratios:
        yield ratio.name + (f" ({ratio.aim})" if ratio.aim else ""), f"{ratio.value:.2f}"
    for name, rate in proved.rates.items():
        yield name, f"{rate:.1f} tokens/s"
