"""What is quantized in a way that can't be read is refused from config.json and headers alone, with a way out."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.common.errors import ModelError
from engine.fill.loading import load
from engine.models.checkpoints.checkpoint import read_checkpoint
from tests.engine.quantized import LAYOUTS, compressed, draw_int4, write_quantized

GATE = "model.decoder.layers.0.experts.3.gate_proj."


def said(path: Path, **values: Any) -> None:
    config = path / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), **values}))


def quantization(config: dict[str, Any]) -> Callable[[Path], None]:
    return lambda path: said(path, quantization_config=config)


def group(**weights: Any) -> Callable[[Path], None]:
    own = LAYOUTS["pack-quantized"].config["config_groups"]["group_0"]["weights"]
    return quantization(compressed("pack-quantized", **{**own, **weights}))


def stored(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], None]:
    """Change the tensors of the file."""

    def damage(path: Path) -> None:
        tensors = load_file(path / "model.safetensors")
        change(tensors)
        save_file(tensors, path / "model.safetensors")

    return damage


def pack_the_table(tensors: dict[str, torch.Tensor]) -> None:
    name = "model.decoder.embed_tokens"
    parts, _ = draw_int4(symmetric=False)(*tensors.pop(f"{name}.weight").shape, torch.Generator())
    tensors.update({f"{name}.{own}": part for own, part in parts.items()})


def pack_a_head(path: Path) -> None:
    """One of its own, beside the table."""
    said(path, tie_word_embeddings=False)
    table = load_file(path / "model.safetensors")["model.decoder.embed_tokens.weight"]
    parts, _ = draw_int4(symmetric=False)(*table.shape, torch.Generator())
    stored(lambda tensors: tensors.update({f"lm_head.{own}": part for own, part in parts.items()}))(path)


@pytest.fixture(scope="module")
def int4(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_quantized(tmp_path_factory.mktemp("quantized"), "pack-quantized")[0]


@pytest.fixture(scope="module")
def modelopt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_quantized(tmp_path_factory.mktemp("quantized"), "modelopt")[0]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (quantization({"quant_method": "awq"}), "quantized as 'awq'"),
        (quantization({"quant_method": "bitsandbytes", "load_in_4bit": True}), "quantized as 'bitsandbytes'"),
        (quantization({"bits": 4, "group_size": 64}), "quantized as MLX does it"),
        (lambda path: said(path, quantization={"bits": 4, "group_size": 64}, quantization_config=None), "as MLX does"),
        (quantization({"quant_method": "modelopt", "quant_algo": "FP8"}), "modelopt with quant_algo 'FP8'"),
        (quantization({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"}), "modelopt with quant_algo 'W4A8_AWQ'"),
        (quantization(compressed("float-quantized", num_bits=8)), "compressed-tensors float-quantized"),
        (quantization(compressed("mxfp4-pack-quantized", num_bits=4)), "compressed-tensors mxfp4-pack-quantized"),
        (
            quantization({**LAYOUTS["pack-quantized"].config, "transform_config": {"config_groups": {"u": {}}}}),
            "compressed-tensors with a transform_config",
        ),
        (quantization({"quant_method": "compressed-tensors"}), "compressed-tensors None"),
        (group(group_size=128), "pack-quantized with group_size '128'"),
        (group(num_bits=8), "pack-quantized with num_bits '8'"),
        (group(strategy="channel"), "pack-quantized with strategy 'channel'"),
        (lambda path: said(path, quantization_config=None), "is stored as I64"),
        (stored(lambda tensors: tensors.update({"model.decoder.norm.weight": torch.ones(64).to(torch.float8_e4m3fn)})),
         "model.decoder.norm.weight of tiny is stored as F8_E4M3"),
        (stored(lambda tensors: tensors.pop(f"{GATE}weight_scale")), f"tiny lacks {GATE}weight_scale"),
        (stored(lambda tensors: tensors.pop(f"{GATE}weight_zero_point")), f"tiny lacks {GATE}weight_zero_point"),
        (
            stored(lambda tensors: tensors.update({f"{GATE}weight_scale": torch.ones(32, 1).bfloat16()})),
            f"{GATE}weight_scale of tiny is BF16 (32, 1), which does not fit weights in INT4 in groups of 32",
        ),
        (
            stored(lambda tensors: tensors.update({f"{GATE}weight_packed": torch.ones(32, 8).to(torch.int16)})),
            f"{GATE}weight_packed of tiny is I16 (32, 8), which does not fit",
        ),
        (stored(lambda tensors: tensors.update({f"{GATE}weight_g_idx": torch.ones(64, dtype=torch.int32)})),
         f"{GATE}weight_g_idx of tiny is stored as I32"),
        (pack_a_head, "lm_head.weight of tiny is in 4 bit, which only layers may be"),
        (stored(pack_the_table), "model.decoder.embed_tokens.weight of tiny is in 4 bit, which only layers may be"),
    ],
)  # fmt: skip
def test_what_fits_no_layout_is_refused(int4: Path, tmp_path: Path, damage: Callable[[Path], None], message: str):
    check_refused(int4, tmp_path, damage, message, "take weights in bfloat16, or in 4 bit as NVFP4 (modelopt,", "again")


def every_part(tensors: dict[str, torch.Tensor], of: str, become: str | None) -> None:
    """Rename or drop all parts of a weight."""
    for name in [each for each in tensors if each.startswith(of)]:
        part = tensors.pop(name)
        if become:
            tensors[name.replace(of, become)] = part


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (stored(lambda tensors: every_part(tensors, GATE, None)), f"tiny lacks {GATE}weight in 4 bit"),
        (
            stored(lambda tensors: every_part(tensors, GATE, GATE.replace("3", "4"))),
            f"tiny lacks {GATE}weight in 4 bit",
        ),
        (
            stored(lambda tensors: every_part(tensors, GATE, GATE.replace("3", "03"))),
            f"tiny lacks {GATE}weight in 4 bit",
        ),
        (
            stored(lambda tensors: every_part(tensors, GATE.replace("gate", "up"), GATE.replace("gate", "side"))),
            f"tiny lacks {GATE.replace('gate', 'up')}weight in 4 bit",
        ),
        (
            lambda path: said(path, text_config={
                **json.loads((path / "config.json").read_text())["text_config"], "moe_intermediate_size": 16
            }),
            "experts.down_proj of tiny is (4, 64, 32), and its config.json asks for (4, 64, 16)",
        ),
        (
            stored(lambda tensors: tensors.update({f"{GATE}weight_scale_2": torch.tensor(float("nan"))})),
            f"{GATE}weight_scale_2 in ",
        ),
    ],
)  # fmt: skip
def test_experts_that_do_not_fit_are_refused(
    modelopt: Path, tmp_path: Path, damage: Callable[[Path], None], message: str
):
    check_refused(modelopt, tmp_path, damage, message, "again")


def check_refused(model: Path, tmp_path: Path, damage: Callable[[Path], None], message: str, *way_out: str) -> None:
    path = tmp_path / "tiny"
    path.mkdir()
    for file in model.iterdir():
        (path / file.name).write_bytes(file.read_bytes())
    damage(path)
    with pytest.raises(ModelError) as error:
        load(str(path), "cpu")
    told = str(error.value).replace(f"{tmp_path}{os.sep}", "")
    assert message in told
    assert any(each in told for each in way_out)
    assert "\n" not in told


def test_nothing_but_headers_is_read_before_a_refusal(modelopt: Path, tmp_path: Path):
    """The last tensor of a file does not fit, and the numbers of all others are missing."""
    path = tmp_path / "tiny"
    path.mkdir()
    for file in modelopt.iterdir():
        (path / file.name).write_bytes(file.read_bytes())
    said(path, text_config={**json.loads((path / "config.json").read_text())["text_config"], "intermediate_size": 95})
    checkpoint = read_checkpoint(path, "tiny")
    weights = path / "model.safetensors"
    header = 8 + int.from_bytes(weights.read_bytes()[:8], "little")
    os.truncate(weights, header)
    from engine.models.checkpoints.placement import Placement
    from engine.models.gemma.model import DiffusionGemma

    with pytest.raises(ModelError, match=r"config\.json asks for"):
        DiffusionGemma.open(checkpoint, Placement(device="cpu", layers=("cpu",) * 4, dtype=torch.float32))
