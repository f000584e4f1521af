from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.common.errors import ModelError
from engine.common.names import Device
from engine.models.checkpoints.checkpoint import read_checkpoint
from engine.models.checkpoints.directory import Checkpoint, TensorHeader
from engine.models.checkpoints.placement import Machine, Placement, memory_plan, place
from engine.models.checkpoints.working import CONTEXT, Sizes, context_for, planned
from engine.models.gemma.model import DiffusionGemma
from tests.engine.quantized import write_quantized

GIB = 1 << 30


HIDDEN = 1 << 12


def model_of(gib: float, layers: int = 10) -> Checkpoint:
    """A model whose layers take `gib` in bfloat16, with as much as one more layer beside them."""
    elements = int(gib * GIB / 2 / layers)

    def header(name: str) -> TensorHeader:
        return TensorHeader(name=name, dtype="BF16", shape=(elements // HIDDEN, HIDDEN))

    names = [f"model.decoder.layers.{index}.mlp.up_proj.weight" for index in range(layers)]
    return Checkpoint(
        name="big",
        path=Path("big"),
        family="diffusion_gemma",
        length="discover",
        config={},
        layers=layers,
        tensors=tuple(header(name) for name in [*names, "model.decoder.embed_tokens.weight"]),
        nbytes=0,
    )


def test_a_small_model_runs_in_full_precision_on_the_cpu(released: Path):
    placement = place(read_checkpoint(released, "tiny"), "auto", Machine(cpu=GIB, gpus=()))
    assert (placement.device, placement.dtype, placement.split) == ("cpu", torch.float32, False)


def test_a_big_model_runs_in_half_of_that_on_the_cpu():
    placement = place(model_of(50), "auto", Machine(cpu=64 * GIB, gpus=()))
    assert (placement.device, placement.dtype) == ("cpu", torch.bfloat16)


def test_the_roomiest_gpu_is_taken_before_the_cpu():
    placement = place(model_of(50), "auto", Machine(cpu=256 * GIB, gpus=(40 * GIB, 80 * GIB)))
    assert placement.device == "cuda:1"
    assert set(placement.layers) == {"cuda:1"}
    assert placement.dtype == torch.bfloat16


def test_the_cpu_is_taken_where_it_is_asked_for():
    assert place(model_of(50), "cpu", Machine(cpu=64 * GIB, gpus=(80 * GIB,))).device == "cpu"


def test_what_does_not_fit_one_gpu_is_split_over_gpus_then_main_memory():
    beside = planned(0, model_of(50).sizes).total
    machine = Machine(cpu=64 * GIB, gpus=(15 * GIB + beside, 23 * GIB + beside))
    placement = place(model_of(50), "auto", machine)
    assert placement.split
    # 5 GiB a layer: 23 GiB hold the embeddings and three layers, 15 GiB three, the rest is in main memory.
    assert placement.device == "cuda:1"
    assert placement.layers == ("cuda:1",) * 3 + ("cuda:0",) * 3 + ("cpu",) * 4


def test_room_to_work_in_is_left_on_a_gpu():
    nbytes = sum(tensor.elements * 2 for tensor in model_of(10).tensors)
    needed = planned(nbytes, model_of(10).sizes).total
    assert not place(model_of(10), "cuda", Machine(cpu=64 * GIB, gpus=(needed,))).split
    assert place(model_of(10), "cuda", Machine(cpu=64 * GIB, gpus=(needed - 1,))).split


def test_a_gpu_that_holds_not_even_the_embeddings_is_left_out():
    assert place(model_of(50), "auto", Machine(cpu=64 * GIB, gpus=(2 * GIB,))).device == "cpu"


@pytest.mark.parametrize(
    ("device", "machine", "message"),
    [
        (
            "auto",
            Machine(cpu=8 * GIB, gpus=()),
            "big needs 55.0 GiB, but 8.0 GiB of main memory are free: close other programs, or use a smaller model.",
        ),
        (
            "auto",
            Machine(cpu=8 * GIB, gpus=(24 * GIB,)),
            "big needs 55.0 GiB, 1.3 GiB a GPU to work in and room in main memory to load, "
            "but 24.0 GiB on GPU 0 and 8.0 GiB of main memory are free: close other programs, or use a smaller model.",
        ),
        ("cuda", Machine(cpu=64 * GIB, gpus=(2 * GIB,)), "big needs 55.0 GiB"),
        # The parts would fit, but the whole has to pass through main memory.
        ("auto", Machine(cpu=40 * GIB, gpus=(24 * GIB, 24 * GIB)), "big needs 55.0 GiB"),
        ("cuda", Machine(cpu=64 * GIB, gpus=()), "CUDA was asked for, but torch finds no GPU here: use --device cpu"),
        ("tpu", Machine(cpu=64 * GIB, gpus=()), "There is no device 'tpu': use auto, cpu or cuda."),
    ],
)
def test_what_can_not_fit_is_refused_with_the_numbers(device: Device, machine: Machine, message: str):
    with pytest.raises(ModelError) as error:
        place(model_of(50), device, machine)
    assert message in str(error.value)


def test_a_plan_follows_what_decides_on_it():
    small = Sizes(vocabulary=1 << 10, hidden=64, token_features=100)
    plan = planned(1000, small)
    assert plan.total == plan.weights + plan.contexts + plan.canvases + plan.workspace + plan.library
    assert (plan.weights, plan.contexts) == (1000, CONTEXT * 200)
    assert planned(1000, small, context=8).contexts == 1600
    assert planned(1000, small, itemsize=4).contexts == 2 * plan.contexts
    assert planned(1000, small, cuda=False).library == 0
    assert planned(0, replace(small, hidden=128)).workspace > plan.workspace
    # Logits are looked at in blocks: those of a large vocabulary take no more than those of a middling one.
    large = [planned(0, replace(small, vocabulary=tokens)).workspace for tokens in (1 << 16, 1 << 18)]
    assert plan.workspace < large[0] == large[1]


def test_contexts_are_longer_where_several_of_them_fit():
    sizes = Sizes(vocabulary=0, hidden=0, token_features=1000)
    four = 4 * 2 * CONTEXT * 2000
    assert [context_for(sizes, left) for left in (0, four - 1, four, 2 * four, 100 * four)] == [
        *(CONTEXT, CONTEXT, 2 * CONTEXT, 4 * CONTEXT, 4 * CONTEXT)
    ]


def test_the_plan_of_a_model_counts_what_its_modules_hold(tmp_path: Path):
    packed, plain = write_quantized(tmp_path, "pack-quantized")
    for path, dtype in ((plain, torch.float32), (packed, torch.float32), (packed, torch.bfloat16)):
        checkpoint = read_checkpoint(path, "tiny")
        placement = Placement(device="cpu", layers=("cpu",) * checkpoint.layers, dtype=dtype)
        module: Any = DiffusionGemma.open(checkpoint, placement).network.module
        held = sum(each.nbytes for each in [*module.parameters(), *module.buffers()])
        assert memory_plan(checkpoint, placement).weights == pytest.approx(held, rel=0.05)
