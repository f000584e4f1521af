import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import DiffusionGemmaForBlockDiffusion

from engine.common.errors import ModelError
from engine.models.checkpoints.checkpoint import read_checkpoint
from engine.models.checkpoints.directory import Checkpoint
from engine.models.checkpoints.placement import Placement
from engine.models.gemma.model import DiffusionGemma
from engine.models.tokenizer import read_tokenizer

CPU = Placement(device="cpu", layers=("cpu",) * 4, dtype=torch.float32)


def read_module(checkpoint: Checkpoint, placement: Placement) -> Any:
    return DiffusionGemma.open(checkpoint, placement).network.module


def test_weights_are_those_of_the_released_class(released: Path):
    reference: Any = DiffusionGemmaForBlockDiffusion.from_pretrained(released)
    ours = read_module(read_checkpoint(released, "tiny"), CPU).state_dict()
    theirs = {name: tensor for name, tensor in reference.state_dict().items() if "vision" not in name}
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())


@pytest.mark.parametrize("named", ["model.decoder.", "model.encoder.language_model."])
def test_a_file_may_name_either_of_those_that_share(changeable: Path, named: str):
    """transformers writes the decoder's names, and both scales of each layer."""
    from safetensors.torch import load_file, save_file

    before = read_module(read_checkpoint(changeable, "tiny"), CPU).state_dict()
    stored = {name: tensor for file in changeable.glob("*.safetensors") for name, tensor in load_file(file).items()}
    for file in changeable.glob("model*"):
        file.unlink()
    text = {name: tensor for name, tensor in stored.items() if "encoder" not in name}
    own = ("self_conditioning", "lm_head")
    renamed = {
        name if any(part in name for part in own) else name.replace("model.decoder.", named): tensor
        for name, tensor in text.items()
    }
    save_file(renamed, changeable / "model.safetensors", metadata={"format": "pt"})
    after = read_module(read_checkpoint(changeable, "tiny"), CPU).state_dict()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())


def test_vision_weights_are_nowhere(released: Path):
    module = read_module(read_checkpoint(released, "tiny"), CPU)
    assert not any("vision" in name for name, _ in [*module.named_parameters(), *module.named_modules()])


def test_shared_weights_are_kept_once(released: Path):
    module = read_module(read_checkpoint(released, "tiny"), CPU)
    checkpoint = read_checkpoint(released, "tiny")
    assert sum(parameter.numel() for parameter in module.parameters()) <= checkpoint.parameters
    assert module.lm_head.weight is module.model.decoder.embed_tokens.weight


def test_the_number_format_is_the_chosen_one(released: Path):
    half = Placement(device="cpu", layers=("cpu",) * 4, dtype=torch.bfloat16)
    module = read_module(read_checkpoint(released, "tiny"), half)
    assert {parameter.dtype for parameter in module.parameters()} == {torch.bfloat16}


def test_in_half_precision_weights_lie_row_by_row(released: Path):
    """Columns are for float32: a processor without products in bfloat16 takes thirty times as long for them."""
    half = Placement(device="cpu", layers=("cpu",) * 4, dtype=torch.bfloat16)
    module = read_module(read_checkpoint(released, "tiny"), half)
    assert all(parameter.is_contiguous() for parameter in module.parameters())


def test_each_layer_goes_where_it_was_placed(released: Path):
    # The meta device stands for a second one, which a test machine need not have.
    split = Placement(device="cpu", layers=("cpu", "meta", "meta", "cpu"), dtype=torch.float32)
    model = read_module(read_checkpoint(released, "tiny"), split).model
    for stack in (model.encoder.language_model, model.decoder):
        devices = [{tensor.device.type for tensor in layer.state_dict().values()} for layer in stack.layers]
        assert devices == [{"cpu"}, {"meta"}, {"meta"}, {"cpu"}]
        assert stack.embed_tokens.weight.device.type == "cpu"
    first = model.encoder.language_model.layers[0].mlp.up_proj.weight
    assert first is model.decoder.layers[0].mlp.up_proj.weight


def test_the_rest_goes_to_the_main_device(released: Path):
    split = Placement(device="meta", layers=("cpu",) * 4, dtype=torch.float32)
    module = read_module(read_checkpoint(released, "tiny"), split)
    outside = {p.device.type for name, p in module.named_parameters() if ".layers." not in name}
    inside = {p.device.type for name, p in module.named_parameters() if ".layers." in name}
    assert (outside, inside) == ({"meta"}, {"cpu"})


def test_a_checkpoint_that_lacks_a_tensor_is_refused(changeable: Path):
    from safetensors.torch import load_file, save_file

    index = json.loads((changeable / "model.safetensors.index.json").read_text())
    shard = changeable / index["weight_map"]["model.decoder.norm.weight"]
    tensors = load_file(shard)
    del tensors["model.decoder.norm.weight"]
    save_file(tensors, shard, metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"tiny lacks model\.decoder\.norm\.weight"):
        read_module(read_checkpoint(changeable, "tiny"), CPU)


def test_a_checkpoint_of_another_shape_is_refused(changeable: Path):
    config = changeable / "config.json"
    config.write_text(config.read_text().replace('"intermediate_size": 48', '"intermediate_size": 50'))
    with pytest.raises(
        ModelError, match=r"of tiny is \(32, 48\), and its config.json asks for \(32, 50\)|of tiny is \(48, 32\)"
    ) as error:
        read_module(read_checkpoint(changeable, "tiny"), CPU)
    assert "\n" not in str(error.value)


def test_any_text_survives_the_tokenizer(released: Path):
    tokenizer = read_tokenizer(read_checkpoint(released, "tiny"))
    text = "x = '😋'\r\n\tself.é"
    assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False).ids) == text


def test_a_damaged_tokenizer_is_refused(changeable: Path):
    (changeable / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match="The tokenizer of tiny can't be loaded"):
        read_tokenizer(read_checkpoint(changeable, "tiny"))
