"""What a published config may say, and what is refused with the field named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from engine.common.errors import ModelError
from engine.fill.loading import load
from engine.models.checkpoints.checkpoint import read_checkpoint
from tests.engine.models.masked.published import Layout, write_published


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("published")
    for layout in ("dream-coder", "dreamon", "llada", "open-dcoder"):
        write_published(base / layout, layout)
    return base


def changed(folder: Path, to: Path, layout: Layout, **values: Any) -> Path:
    path = shutil.copytree(folder / layout, to / layout)
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, **values}))
    return path


@pytest.mark.parametrize(
    ("layout", "values", "message"),
    [
        ("dreamon", {"hidden_act": "gelu"}, "says hidden_act is 'gelu', which dg-lsp can't compute"),
        ("dreamon", {"use_sliding_window": True}, "says use_sliding_window is True"),
        ("dream-coder", {"rope_scaling": {"type": "yarn"}}, "says rope_scaling is"),
        ("dream-coder", {"hidden_size": None}, r"has no usable hidden_size \(None\)"),
        ("dream-coder", {"num_attention_heads": 3}, "num_attention_heads is 3, which contradicts its hidden size 32"),
        ("dream-coder", {"num_key_value_heads": 3}, "num_key_value_heads is 3, which contradicts its 4 heads"),
        ("dream-coder", {"mask_token_id": 7}, r"says mask_token_id is 7, but in its tokenizer <\|mask\|> is"),
        ("dream-coder", {"vocab_size": 100}, r"says vocab_size is 100, but <\|mask\|> is"),
        ("llada", {"block_type": "sequential"}, "says block_type is 'sequential'"),
        ("llada", {"alibi": True}, "says alibi is True"),
        ("llada", {"n_layers": 0}, r"has no usable n_layers \(0\)"),
        ("open-dcoder", {"rope_parameters": {"rope_type": "yarn"}}, "says rope_parameters.rope_type is 'yarn'"),
        ("open-dcoder", {"head_dim": 5}, "head_dim is 5, which contradicts its 4 heads of hidden size 32"),
    ],
)
def test_what_is_unknown_or_contradictory_is_refused(
    folder: Path, tmp_path: Path, layout: Layout, values: dict[str, Any], message: str
):
    with pytest.raises(ModelError, match=message):
        read_checkpoint(changed(folder, tmp_path, layout, **values), "tiny")


@pytest.mark.parametrize(
    ("layout", "values", "message"),
    [
        ("dreamon", {"intermediate_size": 64}, r"mlp.*of tiny is \(.*\), and its config.json asks for"),
        ("dreamon", {"num_hidden_layers": 1}, "says 1 layers, but its weights have 2"),
        ("llada", {"n_layers": 3}, "says 3 layers, but its weights have 2"),
    ],
)
def test_weights_that_do_not_fit_the_config_are_refused(
    folder: Path, tmp_path: Path, layout: Layout, values: dict[str, Any], message: str
):
    path = changed(folder, tmp_path, layout, **values)
    with pytest.raises(ModelError, match=message.replace("tiny", str(path))):
        load(str(path), "cpu")


def test_an_ordinary_qwen_without_markers_is_refused(folder: Path, tmp_path: Path):
    path = changed(folder, tmp_path, "open-dcoder")
    tokenizer = json.loads((path / "tokenizer.json").read_text())
    tokenizer["added_tokens"] = [each for each in tokenizer["added_tokens"] if each["content"] != "<M>"]
    (path / "tokenizer.json").write_text(json.dumps(tokenizer))
    (path / "tokenizer_config.json").write_text("{}")
    with pytest.raises(ModelError, match="tiny has no markers of fill-in-the-middle in its vocabulary"):
        read_checkpoint(path, "tiny")


def test_what_is_read_without_torch_says_how_it_is_run(folder: Path):
    found = {layout: read_checkpoint(folder / layout, "tiny") for layout in ("dreamon", "dream-coder", "llada")}
    assert {layout: each.length for layout, each in found.items()} == {
        "dreamon": "expand",
        "dream-coder": "calibrated",
        "llada": "calibrated",
    }
    assert {each.layers for each in found.values()} == {2}
    assert all(".layers.1." in " ".join(tensor.name for tensor in each.tensors) for each in found.values())


def test_published_samplers_reach_the_loop(folder: Path):
    facts = load(str(folder / "dreamon"), "cpu").model.info
    assert (facts.sampling.t_min, facts.sampling.t_max, facts.sampling.top_p) == (0.2, 0.2, 0.9)
    assert (facts.sampling.entropy_bound, facts.context_limit, facts.widths) == (0.0, 2048, (64,))
