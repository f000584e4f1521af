import json
from pathlib import Path

import pytest
import torch
from transformers import DiffusionGemmaForBlockDiffusion

from engine.checkpoints.placement import Placement
from engine.core.errors import ModelError
from engine.core.request import FillRequest
from engine.loader.checkpoint import read_checkpoint
from engine.loader.loading import load
from engine.models.gemma.checkpoint import read_module, read_tokenizer

CPU = Placement(device="cpu", layers=("cpu",) * 4, dtype=torch.float32)


def logits_of(module: DiffusionGemmaForBlockDiffusion) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    # Longer than the sliding window, so that both kinds of layers show.
    context = torch.randint(9, 200, (2, 40), generator=generator)
    canvas = torch.randint(9, 200, (2, 32), generator=generator)
    conditioning = torch.randn(2, 32, module.config.text_config.vocab_size, generator=generator)
    with torch.no_grad():
        return module(input_ids=context, decoder_input_ids=canvas, self_conditioning_logits=conditioning).logits


def test_logits_are_those_of_the_released_class(released: Path):
    reference = DiffusionGemmaForBlockDiffusion.from_pretrained(released)
    ours = read_module(read_checkpoint(released, "tiny"), CPU)
    assert torch.equal(logits_of(ours), logits_of(reference))


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


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_the_logits_of_the_cpu(released: Path):
    checkpoint = read_checkpoint(released, "tiny")
    gpu = Placement(device="cuda:0", layers=("cuda:0",) * 4, dtype=torch.float32)
    module = read_module(checkpoint, gpu)
    assert {parameter.device.type for parameter in module.parameters()} == {"cuda"}
    context, canvas = torch.arange(9, 49)[None], torch.arange(9, 41)[None]
    with torch.no_grad():
        there = module(input_ids=context.cuda(), decoder_input_ids=canvas.cuda()).logits.cpu()
        here = read_module(checkpoint, CPU)(input_ids=context, decoder_input_ids=canvas).logits
    torch.testing.assert_close(there, here, atol=1e-3, rtol=1e-3)


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
    assert tokenizer.decode(tokenizer(text, add_special_tokens=False).input_ids) == text


def test_the_bundled_model_is_told_that_a_file_ends_whatever_its_line_ends():
    model = load("bundled").model
    crlf, lf = (model.prompt(FillRequest(prefix="x = ", suffix=suffix)) for suffix in ("1\r\n", "1\n"))
    assert crlf == lf


def test_a_damaged_tokenizer_is_refused(changeable: Path):
    (changeable / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match="The tokenizer of tiny can't be loaded"):
        read_tokenizer(read_checkpoint(changeable, "tiny"))
