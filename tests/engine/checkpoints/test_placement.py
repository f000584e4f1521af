from pathlib import Path

import pytest
import torch

from engine.checkpoints.directory import Checkpoint, TensorHeader
from engine.checkpoints.placement import Machine, place
from engine.checkpoints.working import working_nbytes
from engine.core.errors import ModelError
from engine.core.names import Device
from engine.loader.checkpoint import read_checkpoint
from engine.server.settings import Limits

GIB = 1 << 30


def model_of(gib: float, layers: int = 10, vocabulary: int = 1 << 10) -> Checkpoint:
    """A model whose layers take `gib` in bfloat16, with as much as one more layer beside them."""
    elements = int(gib * GIB / 2 / layers)

    def header(name: str) -> TensorHeader:
        return TensorHeader(name=name, dtype="BF16", shape=(vocabulary, elements // vocabulary))

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
    logits = 1 << 24
    machine = Machine(cpu=64 * GIB, gpus=(16 * GIB + logits, 24 * GIB + logits))
    placement = place(model_of(50), "auto", machine)
    assert placement.split
    # 5 GiB a layer: 23 GiB hold the embeddings and three layers, 15 GiB three, the rest is in main memory.
    assert placement.device == "cuda:1"
    assert placement.layers == ("cuda:1",) * 3 + ("cuda:0",) * 3 + ("cpu",) * 4


def test_room_to_work_in_is_left_on_a_gpu():
    nbytes = sum(tensor.elements * 2 for tensor in model_of(10).tensors)
    assert not place(model_of(10), "cuda", Machine(cpu=64 * GIB, gpus=(nbytes + working_nbytes(1 << 10),))).split
    assert place(model_of(10), "cuda", Machine(cpu=64 * GIB, gpus=(nbytes + working_nbytes(1 << 10) - 1,))).split


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
            "big needs 55.0 GiB, 1.0 GiB a GPU to work in and room in main memory to load, "
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


def test_a_large_vocabulary_needs_room_for_its_logits():
    nbytes = sum(tensor.elements * 2 for tensor in model_of(10).tensors)
    free = Machine(cpu=64 * GIB, gpus=(nbytes + working_nbytes(1 << 10),))
    assert place(model_of(10, vocabulary=1 << 18), "cuda", free).split
    # As many canvases as a round may hold, with 64 open positions, 262,144 numbers each.
    assert working_nbytes(1 << 18) - working_nbytes(0) >= Limits().rows * 64 * (1 << 18) * 4
