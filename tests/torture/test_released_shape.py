"""The command for the released shape, on a tiny one."""

import asyncio
import sys
from pathlib import Path

import pytest

from engine.models.checkpoints.checkpoint import read_checkpoint
from tests.engine.quantized import LAYOUTS
from tests.torture.released_shape import BESIDE_NBYTES, LOADING_NBYTES, measure, write_released

TINY = {
    "num_hidden_layers": 3,
    "num_experts": 4,
    "top_k_experts": 2,
    "hidden_size": 128,
    "intermediate_size": 64,
    "moe_intermediate_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "num_global_key_value_heads": 1,
    "global_head_dim": 64,
    "vocab_size": 8192,
}


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if "symmetric" not in layout])
def test_its_files_are_those_of_the_layout(layout: str, tmp_path: Path):
    write_released(tmp_path, layout, **TINY)
    checkpoint = read_checkpoint(tmp_path, "tiny")
    assert checkpoint.in_4_bit
    assert checkpoint.sizes.vocabulary == 8192
    assert checkpoint.layers == 3


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_deadline_is_kept_and_a_cancel_heeded(tmp_path: Path):
    write_released(tmp_path, "pack-quantized", **TINY)
    found = asyncio.run(measure(tmp_path, deadline_ms=8000, threads=1))
    assert 0 < found["fill_ms"] <= found["deadline_ms"]
    assert found["suggestions"] == 1
    assert found["cancel_ms"] < found["fill_ms"] / 2
    assert found["loading_above_bytes"] <= LOADING_NBYTES
    assert found["plan"]["weights"] < found["peak_bytes"] <= found["planned_bytes"] + BESIDE_NBYTES
