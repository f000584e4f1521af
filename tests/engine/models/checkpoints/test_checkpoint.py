import json
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.common.errors import ModelError
from engine.models.checkpoints.checkpoint import read_checkpoint
from engine.models.checkpoints.directory import read_header


def rewrite(path: Path, **values: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def shards(path: Path) -> list[Path]:
    return sorted(path.glob("*.safetensors"))


def drop_weights(path: Path) -> None:
    for file in [*shards(path), path / "model.safetensors.index.json"]:
        file.unlink()


def drop_weights_for_pickle(path: Path) -> None:
    drop_weights(path)
    (path / "pytorch_model.bin").write_bytes(b"\x80\x04")


def cut_off_a_shard(path: Path) -> None:
    shard = shards(path)[1]
    shard.write_bytes(shard.read_bytes()[:-7])


def replace_a_shard(path: Path) -> None:
    shards(path)[1].write_bytes(b"<!DOCTYPE html> a login page is no model")


def point_outside(path: Path) -> None:
    rewrite(path / "model.safetensors.index.json", weight_map={"a": "../other.safetensors"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: (path / "config.json").unlink(), "tiny has no config.json: name a model directory"),
        (lambda path: (path / "config.json").write_text("{"), "tiny has a config.json that can't be read"),
        (lambda path: (path / "config.json").write_text("[]"), "tiny has a config.json that is no JSON object"),
        (lambda path: rewrite(path / "config.json", model_type="mamba"), "tiny is a model of type 'mamba'"),
        (lambda path: (path / "tokenizer.json").unlink(), "tiny has no tokenizer.json"),
        (drop_weights, "tiny has no weights (model.safetensors or model.safetensors.index.json)"),
        (
            drop_weights_for_pickle,
            "tiny holds its weights as pickle (pytorch_model.bin), a format that can run any code",
        ),
        (lambda path: shards(path)[2].unlink(), "tiny is incomplete, model-00003-of-"),
        (cut_off_a_shard, "is cut off or damaged"),
        (replace_a_shard, "is cut off or damaged"),
        (point_outside, "tiny has an unusable model.safetensors.index.json"),
        (lambda path: rewrite(path / "model.safetensors.index.json", weight_map=[]), "tiny has an unusable"),
    ],
)
def test_a_directory_that_is_no_whole_model_is_refused(changeable: Path, change: Callable[[Path], None], message: str):
    change(changeable)
    with pytest.raises(ModelError) as error:
        read_checkpoint(changeable, "tiny")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_released_shape_is_read_without_its_vision_parts(released: Path):
    checkpoint = read_checkpoint(released, "tiny")
    names = [tensor.name for tensor in checkpoint.tensors]
    everything = [tensor.name for file in shards(released) for tensor in read_header(file)]
    assert any("vision" in name for name in everything)
    assert not any("vision" in name for name in names)
    assert "model.decoder.layers.3.experts.gate_up_proj" in names
    assert checkpoint.family == "diffusion_gemma"
    assert checkpoint.length == "discover"
    assert checkpoint.nbytes == sum(file.stat().st_size for file in shards(released))


def test_parameters_are_counted_as_loaded(released: Path):
    from tests.engine.released import new_model, new_tokenizer

    decoder = new_model(len(new_tokenizer()), seed=0).model.decoder
    scalars = 2 * len(decoder.layers)  # of each layer in both stacks: stored, though not parameters
    assert read_checkpoint(released, "tiny").parameters == sum(p.numel() for p in decoder.parameters()) + scalars


def test_an_encoder_that_is_stored_twice_counts_once(changeable: Path):
    from safetensors.torch import load_file, save_file

    before = read_checkpoint(changeable, "tiny").parameters
    shard = shards(changeable)[-1]
    tensors = load_file(shard)
    twins = {
        name.replace("model.decoder.", "model.encoder.language_model."): tensor for name, tensor in tensors.items()
    }
    save_file({name: tensor.clone() for name, tensor in {**tensors, **twins}.items()}, shard)
    assert read_checkpoint(changeable, "tiny").parameters == before


@pytest.mark.parametrize(("said", "length"), [("slack", "slack"), ("predicted", "predicted"), ("asked", "predicted")])
def test_facts_beside_the_weights_name_the_length_strategy(changeable: Path, said: str, length: str):
    (changeable / "dg_lsp.json").write_text(json.dumps({"length": said}))
    assert read_checkpoint(changeable, "tiny").length == length
