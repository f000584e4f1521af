"""Steps over buffers that stay where they are, against usual ones; and that a step waits for no device."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from engine.common.request import FillRequest
from engine.fill.pipeline import fill
from engine.lab.bench.families import random_model
from engine.lab.bench.workload import rows_of, token_ids
from engine.models.canvas_model import CanvasModel
from engine.models.static_steps import Run, StaticSteps, Widths
from tests.engine.tiny import signal_of, tiny_model

SHAPES = ("small", "masked-small")


def static(model: CanvasModel[Any]) -> StaticSteps:
    """Steps that are not captured, but the same otherwise."""
    made = model.static = StaticSteps(
        model.network, slots=512, context=512 if model.reads is None else 0, capture=lambda run: run
    )
    return made


def model_of(shape: str) -> CanvasModel[Any]:
    model = random_model(shape, "cpu")
    assert isinstance(model, CanvasModel)
    return model


def steps(model: Any, count: int = 4, gap: int = 9, batch: int = 2, context: int = 100) -> list[Tensor]:
    """Logits of so many steps over the same canvases, of which each says something else and settles a place."""
    rows = rows_of(model, model.encode(token_ids(model, context)), gap=gap, pinned=20, batch=batch, first=True)
    found: list[Tensor] = []
    for step in range(count):
        found.append(model.step(rows).whole())
        logits = found[-1] * torch.linspace(1, 2, len(found[-1]), device=found[-1].device)[:, None]
        places, open_ = rows.open.nonzero(), rows.open.clone()
        open_[:, step] = False
        canvas = rows.canvas.clone()
        canvas[:, step] = 5 + step
        still = open_[tuple(places.t())]
        conditioning = signal_of(model, logits[still]) if model.info.family == "diffusion_gemma" else None
        conditioned = [conditioning is not None] * batch
        rows = replace(rows, open=open_, canvas=canvas, self_conditioning=conditioning, conditioned=conditioned)
    return found


def check_same(found: list[Tensor], expected: list[Tensor]) -> None:
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("remembers", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_steps_say_what_usual_ones_say(shape: str, remembers: bool):
    expected, model = model_of(shape), model_of(shape)
    made = static(model)
    expected.remembers = model.remembers = remembers
    for _ in range(3):
        check_same(steps(model), steps(expected))
    assert made.count >= 6
    if remembers:
        tokens = {widths.computed for widths in made.widths}
        assert min(tokens) < max(tokens), "a step that remembers its surroundings computes less"


def test_contexts_take_turns_and_grow():
    expected, model = model_of("small"), model_of("small")
    static(model)._uses = Counter({Widths(64, 64, length): 9 for length in (128, 256)})
    for length in (100, 101, 200, 100, 90, 201):
        check_same(steps(model, 2, context=length), steps(expected, 2, context=length))
    assert model.static is not None
    assert model.static.count >= 6


def test_a_window_sees_no_further(released: Path):
    """Layers with a window of 16 beside such that see everything, behind contexts shorter and longer."""
    expected, model = tiny_model(released), tiny_model(released)
    made = static(model)
    for length in (8, 8, 15, 16, 17, 100, 100):
        check_same(steps(model, 2, context=length), steps(expected, 2, context=length))
    assert made.count >= 5


def test_fills_are_the_same(released: Path):
    request = FillRequest(prefix="def f(x):\n    return ", suffix="\n\nprint(f(1))\n", n=3, deadline_ms=None)
    models = tiny_model(released), tiny_model(released)
    made = static(models[0])
    for width in (4, 12, None):
        one, other = (fill(model, FillRequest(**{**_fields(request), "width": width})).candidates for model in models)
        assert [each.text for each in one] == [each.text for each in other]
    assert made.count > 5


def _fields(request: FillRequest) -> dict[str, Any]:
    return {name: getattr(request, name) for name in request.__struct_fields__}


def test_canvases_behind_several_contexts_go_the_usual_way():
    model = model_of("small")
    made = static(model)
    contexts = [model.encode(token_ids(model, 60, seed)) for seed in (1, 2)]
    rows = replace(rows_of(model, contexts[0], gap=5, pinned=5, batch=2, first=True), contexts=contexts)
    for _ in range(3):
        model.step(replace(rows, open=rows.open.clone()))
    assert made.count == 0


def test_widths_are_few_and_made_at_their_second_use():
    model = model_of("small")
    made = static(model)
    model.remembers = False
    seen: list[int] = []
    for gap in range(1, 60):
        steps(model, 1, gap=gap, batch=1)
        seen.append(len(made.widths))
    assert seen[0] == 0, "what is seen once does not pay"
    assert seen[-1] == len({widths.computed for widths in made.widths}) == 3


def test_what_can_not_be_captured_goes_the_usual_way(caplog: pytest.LogCaptureFixture):
    expected, model = model_of("small"), model_of("small")
    tried = static(model)

    def capture(run: Run) -> Run:
        run()
        raise torch.AcceleratorError("CUDA error: stream is capturing")

    tried._capture = capture
    for _ in range(3):
        check_same(steps(model), steps(expected))
    assert tried.count == 0
    said = [record.message for record in caplog.records if "captur" in record.message]
    assert said == ["Steps are launched one by one, as they can't be captured: CUDA error: stream is capturing"]


def test_a_capture_without_memory_is_told():
    model = model_of("small")

    def capture(run: Run) -> Run:
        raise torch.OutOfMemoryError("CUDA out of memory")

    static(model)._capture = capture
    with pytest.raises(torch.OutOfMemoryError):
        steps(model, 8)


def test_shortage_gives_the_buffers_back():
    model = model_of("small")
    static(model)
    steps(model)
    model.shrink_caches()
    assert model.static is None
    assert len(steps(model)) == 4


def test_the_room_is_told_before_it_is_taken():
    model = model_of("small")
    made = static(model)
    before = made.nbytes
    steps(model)
    buffers: Any = made._buffers
    assert before == sum(each.nbytes for each in (*buffers._keys, *buffers._values))


@pytest.mark.parametrize("way", ["usual", "static"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_step_asks_the_device_nothing(shape: str, way: str):
    """The meta device stands for a GPU: what would wait for its numbers raises, and what is sent there is counted."""
    model = elsewhere(model_of(shape))
    made = static(model) if way == "static" else None
    context = model.encode(token_ids(model, 100))
    rows = rows_of(model, context, gap=9, pinned=20, batch=2, first=True)
    for step in range(6):
        with Uploads() as uploads, Literals() as literals:
            hidden = model.step(rows).hidden
        assert hidden.device.type == "meta"
        # Numbers of tokens and places; where the last step's answers go; and, if static, who sees whom.
        assert uploads.waited == literals.count == 0
        assert 1 <= uploads.count <= 3
        rows = replace(rows, open=rows.open & (torch.arange(29) != step))
        if shape == "small":
            left = int(rows.open.sum())
            rows.self_conditioning, rows.conditioned = hidden.new_zeros(left, model.head.table.shape[1]), [True] * 2
    assert made is None or made.count >= 3


def elsewhere(model: CanvasModel[Any]) -> CanvasModel[Any]:
    """On a device whose numbers nobody can read."""
    network: Any = model.network
    network.module.to("meta")
    network._radians = tree_map_only(Tensor, lambda own: own.to("meta"), network._radians)
    network.lay_out()
    model.forget()
    return model


class Literals(TorchFunctionMode):
    """Counts tensors of Python's numbers that are made on the meta device: they wait, too, and are not dispatched."""

    count = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        made = func in (torch.tensor, torch.as_tensor) and torch.device(kwargs.get("device") or "cpu").type == "meta"
        self.count += made
        return func(*args, **kwargs)


class Uploads(TorchDispatchMode):
    """Copies to the meta device within the block."""

    def __init__(self) -> None:
        super().__init__()
        self.count = self.waited = 0
        """All of them, and those that wait until they are done."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        taken = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        made = [each for each in tree_leaves(out) if isinstance(each, Tensor)]
        # A number alone is handed over with the launch.
        from_here = any(each.device.type == "cpu" and each.dim() for each in taken)
        if from_here and any(each.device.type == "meta" for each in (*taken, *made)):
            self.count += 1
            self.waited += not kwargs.get("non_blocking")
        return out
