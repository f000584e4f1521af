"""What is known of released checkpoints, and which one suits a machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from dg_lsp.cli import run
from engine.lab.bench import families
from engine.models.checkpoints.released import PRESETS, RELEASED, advice, known, recommended
from engine.models.gemma.config import read_config
from engine.models.gemma.network import GemmaModule

GIB = 1 << 30


@pytest.mark.parametrize(
    ("gpus", "hub_id", "quantized"),
    [
        ((), None, False),
        ((1 * GIB,), None, False),
        ((5 * GIB,), "fredzzp/open-dcoder-0.5B", False),
        # As much as is free of a card of 8 to 32 GB on which a screen is drawn.
        ((int(7.6 * GIB),), "Dream-org/DreamOn-v0-7B", True),
        ((int(15.4 * GIB),), "Dream-org/DreamOn-v0-7B", True),
        ((23 * GIB,), "nvidia/diffusiongemma-26B-A4B-it-NVFP4", False),
        ((2 * GIB, 31 * GIB), "nvidia/diffusiongemma-26B-A4B-it-NVFP4", False),
    ],
)
def test_the_best_one_that_fits_is_recommended(gpus: tuple[int, ...], hub_id: str | None, quantized: bool):
    best = recommended(gpus)
    assert (best.released.hub_id if best else None) == hub_id
    said = advice(gpus)
    assert (f"`dg-lsp pull {hub_id}`" if hub_id else "one of the coders above") in said
    assert (f"`dg-lsp quantize {hub_id} --out " in said) is quantized
    assert ("contexts of 8,192 tokens" in said) is (31 * GIB in gpus)


def test_what_is_recommended_is_planned_by_the_sizes_of_its_tensors():
    with torch.device("meta"):
        shapes = json.loads((Path(families.__file__).with_name("shapes.json")).read_text())
        module = GemmaModule(read_config(shapes["diffusiongemma-26B-A4B"], "released"))
    named = [(name, tuple(each.shape)) for name, each in module.named_parameters()]
    keys = sum(shape[0] for name, shape in named if name.endswith("k_proj.weight"))
    table = next(shape for name, shape in named if name.endswith("embed_tokens.weight"))
    sizes = PRESETS[0].released.sizes
    assert (sizes.vocabulary, sizes.hidden, sizes.token_features) == (*table, 2 * keys)


def test_memory_is_more_than_the_download():
    assert all(each.memory.total > each.download_nbytes for each in RELEASED)


def test_a_hub_id_is_known_in_any_case():
    assert known("dream-org/dreamon-v0-7b") is RELEASED[0]
    assert known("someone/else") is None


def test_the_list_names_what_can_be_pulled(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert run(["models"]) == 0
    out = capsys.readouterr().out
    # Whole, on a line of its own, however narrow the terminal is.
    assert {each.hub_id for each in RELEASED} <= set(out.splitlines())
    assert all(each.licence in out for each in RELEASED)
    assert "For this machine" in out
