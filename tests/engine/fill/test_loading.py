import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from engine import load
from engine.common.errors import BadInput, ModelError, OutOfMemory
from engine.common.marked import gap_at_markers
from engine.common.request import Filled
from engine.models.base import Rows, Sampling
from engine.models.checkpoints.checkpoint import read_checkpoint
from engine.models.checkpoints.placement import Placement


def oracle(folder: Path, *cases: dict[str, object]) -> str:
    path = folder / "oracle.json"
    path.write_text(json.dumps({"cases": cases}))
    return f"oracle:{path}"


def test_the_public_call_fills_a_gap(tmp_path: Path):
    model = load(oracle(tmp_path, {"text": "def add(a, b):\n    return ▮a + b▮\n"}))
    filled = model.fill("def add(a, b):\n    return ", "\n", language="python", n=1, deadline_ms=None, seed=0)
    assert isinstance(filled, Filled)
    assert filled.candidates[0].text == "a + b"


def test_a_released_checkpoint_goes_the_same_way(released: Path):
    filled = load(str(released)).fill("x = ", "\n", width=3)
    assert (filled.model, filled.device, filled.width) == (str(released), "cpu", 3)


def test_what_a_released_checkpoint_publishes_is_known(released: Path):
    facts = load(str(released)).model.info
    assert facts.sampling == Sampling(
        max_steps=8, t_min=0.4, t_max=0.8, entropy_bound=0.1, stability_threshold=1, confidence_threshold=0.005
    )
    assert (facts.family, facts.length, facts.canvas_length) == ("diffusion_gemma", "discover", 32)
    assert facts.noise.mask_id is None
    assert facts.instructions


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_model_split_over_gpu_and_main_memory_gives_the_same_logits(released: Path):
    from engine.models.gemma.model import DiffusionGemma

    checkpoint = read_checkpoint(released, "tiny")
    canvas = torch.arange(9, 41)[None]

    def logits(device: str, *layers: str) -> torch.Tensor:
        model = DiffusionGemma.open(checkpoint, Placement(device=device, layers=layers, dtype=torch.float32))
        rows = Rows(
            contexts=[model.encode(list(range(9, 60)))],
            canvas=canvas,
            lengths=[canvas.shape[1]],
            open=torch.ones_like(canvas, dtype=torch.bool),
            self_conditioning=None,
            conditioned=[False],
        )
        return model.step(rows).whole().cpu()

    split = logits("cuda:0", "cuda:0", "cpu", "cpu", "cuda:0")
    torch.testing.assert_close(split, logits("cpu", *["cpu"] * 4), atol=1e-3, rtol=1e-3)


def test_the_seed_decides(released: Path):
    model = load(str(released))

    def texts(seed: int) -> list[str]:
        # Wide enough to differ, narrow enough that random tokens are UTF-8 now and then.
        filled = model.fill("x = ", "\ny = 2\n", width=2, seed=seed)
        return [candidate.text for candidate in filled.candidates]

    assert texts(1) == texts(1)
    assert len({str(texts(seed)) for seed in range(12)}) > 1


def test_loading_never_touches_the_network(released: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    load(str(released)).fill("a", "b", width=1)
    with pytest.raises(
        ModelError, match="not in the local Hugging Face cache: run `dg-lsp pull no-one/no-model` first"
    ):
        load("no-one/no-model")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gpt", "There is no model 'gpt': name 'bundled', a directory, a GGUF, "),
        (__file__, "is a file, but no GGUF: name the directory of the model"),
        ("a/b/c", "There is no model 'a/b/c'"),
        ("oracle:nowhere.json", "The oracle file nowhere.json can't be read"),
    ],
)
def test_an_unknown_model_is_refused(name: str, message: str):
    with pytest.raises(ModelError, match=message):
        load(name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_gpu_that_is_not_there_is_refused(released: Path):
    with pytest.raises(ModelError, match="CUDA was asked for, but torch finds no GPU here: use --device cpu"):
        load(str(released), "cuda")


def test_memory_that_runs_out_is_a_sentence(tmp_path: Path):
    model = load(oracle(tmp_path, {"text": "x = ▮1▮\n", "fault": "out_of_memory"}))
    with pytest.raises(OutOfMemory, match="Filling this gap ran out of memory: ask for fewer or shorter candidates"):
        model.fill("x = ", "\n")


def test_memory_that_runs_out_while_loading_is_a_sentence(released: Path, monkeypatch: pytest.MonkeyPatch):
    from engine.models import weights

    def exhaust(*_: object, **__: object) -> None:
        torch.empty(1 << 60)

    monkeypatch.setattr(weights, "read_tensor", exhaust)
    with pytest.raises(
        OutOfMemory, match=r"Loading .* ran out of memory: close other programs, or use a smaller model"
    ):
        load(str(released))


def test_a_request_that_makes_no_sense_is_refused(tmp_path: Path):
    model = load(oracle(tmp_path, {"text": "x = ▮1▮\n"}))
    with pytest.raises(BadInput, match="0 candidates were asked for"):
        model.fill("x = ", "\n", n=0)


@pytest.mark.parametrize("text", ["▮1▮", "a▮b▮", "😋\r\n\t▮1▮\r\n", "val▮u▮e", "\r▮1▮\r"])
def test_the_parameters_reach_the_model(tmp_path: Path, text: str):
    gap = gap_at_markers(text)
    filled = load(oracle(tmp_path, {"text": text})).fill(gap.prefix, gap.suffix, old=gap.old, max_tokens=7)
    assert filled.candidates[0].text == gap.old
    assert filled.width <= 7


def test_the_bundled_model_needs_no_transformers():
    """Its import takes seconds; a fresh process, as tests of other things import it."""
    code = """
import sys
from engine import load
filled = load("bundled", "cpu").fill("def add(a, b):\\n    return ", "\\n", language="python")
assert filled.candidates
assert not {"transformers", "accelerate", "torch._dynamo"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_how_far_a_load_has_come_is_told(released: Path):
    from engine.fill.loading import load

    told: list[float] = []
    load(str(released), "cpu", told.append)
    assert told == sorted(told)
    assert 0 < told[0] < 5
    assert told[-1] == 100
