"""The flagship as most people have it: a GGUF, read part by part into int4 groups."""

import json
from pathlib import Path
from typing import Any

import gguf
import pytest
import torch
from torch import Tensor

from engine.common.errors import ModelError
from engine.common.request import FillRequest
from engine.fill.loading import load
from engine.models import weights
from engine.models.checkpoints.checkpoint import read_checkpoint
from engine.models.checkpoints.placement import Machine, memory_plan, place
from engine.models.checkpoints.quantizing import quantize
from engine.models.quantized.layers import PackedWeights, PlainInt4, packed_in
from engine.models.tokenizer import read_tokenizer
from tests.engine.flagship import ARCHITECTURE, TOKENS, write_flagship

MIXED = {
    "gate_up_exps.weight": "Q4_0",
    "down_exps.weight": "Q8_0",
    "token_embd.weight": "Q5_1",
    "self_cond_down.weight": "Q5_0",
    **{f"attn_{own}.weight": "Q5_0" for own in ("q", "k", "v", "output")},
    **{f"ffn_{own}.weight": "Q8_0" for own in ("gate", "up", "down")},
}
"""As in Q4_K_M, in blocks that fit tiny matrices."""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Tensor]]:
    path = tmp_path_factory.mktemp("mixed") / "tiny-Q4_K_M.gguf"
    return path, write_flagship(path, MIXED)


def module_of(path: Path) -> Any:
    return load(str(path), "cpu").model.network.module  # pyright: ignore[reportAttributeAccessIssue]


def test_numbers_in_full_are_those_of_the_published_class(tmp_path: Path):
    numbers = write_flagship(tmp_path / "tiny.gguf")
    checkpoint = read_checkpoint(tmp_path / "tiny.gguf", "tiny")
    assert (checkpoint.family, checkpoint.length, checkpoint.layers) == ("diffusion_gemma", "discover", 4)
    assert not checkpoint.in_4_bit
    held = module_of(tmp_path / "tiny.gguf").state_dict()
    assert {name for name in numbers if not torch.equal(held[name], numbers[name])} == set()
    assert len(numbers) == len(checkpoint.tensors)


def test_a_header_says_what_config_json_says(tmp_path: Path):
    """Compared with what transformers writes of the same model, as far as it is read."""
    from engine.models.gemma.config import read_config
    from tests.engine.quantized import SIZES
    from tests.engine.released import new_model

    write_flagship(tmp_path / "tiny.gguf")
    said = json.loads(new_model(len(TOKENS), 0, **SIZES).config.to_json_string())
    ours = read_config(read_checkpoint(tmp_path / "tiny.gguf", "tiny").config, "tiny")
    theirs = read_config(said, "tiny")
    for kind, rope in theirs.rope_parameters.items():
        assert ours.rope_parameters[kind] == pytest.approx(rope)
    assert ours.rms_norm_eps == pytest.approx(theirs.rms_norm_eps)
    same = ("vocab_size", "hidden_size", "intermediate_size", "layer_types", "heads", "num_experts", "top_k_experts")
    same += ("sliding_window", "final_logit_softcapping", "canvas_length", "tie_word_embeddings")
    assert [getattr(ours, name) for name in same] == [getattr(theirs, name) for name in same]


def test_blocks_become_int4_and_all_else_is_read_as_it_is(mixed: tuple[Path, dict[str, Tensor]]):
    path, numbers = mixed
    module = module_of(path)
    packed = packed_in(module)
    names = {name if "experts" in name else name.removesuffix(".weight") for name in packed}
    assert {name.rpartition(".")[2] for name in names} == {
        *(f"{own}_proj" for own in ("q", "k", "v", "o", "gate", "up", "down", "gate_up"))
    }
    for name, each in packed.items():
        assert isinstance(each, PlainInt4)
        exact = numbers[name].view(-1, *each.shape[-2:])
        for expert, matrix in enumerate(exact):
            assert float((each.matrix(expert) - matrix).norm() / matrix.norm()) < 0.1
    others = {name: tensor for name, tensor in module.state_dict().items() if name in numbers and name not in packed}
    assert len(others) + len(packed) == len(numbers)
    assert all(torch.equal(tensor, numbers[name]) for name, tensor in others.items())


def test_it_is_planned_in_four_bits(mixed: tuple[Path, dict[str, Tensor]]):
    checkpoint = read_checkpoint(mixed[0], "tiny")
    plan = memory_plan(checkpoint, place(checkpoint, "cpu", Machine(cpu=1 << 34, gpus=())))
    matrices = sum(tensor.elements for tensor in checkpoint.tensors if tensor.in_4_bit)
    assert matrices > 50_000
    assert plan.weights == pytest.approx(matrices * 5 / 8 + 4 * (checkpoint.parameters - matrices), abs=100)


def test_quantized_to_a_folder_it_is_the_same_model(mixed: tuple[Path, dict[str, Tensor]], tmp_path: Path):
    errors = quantize(read_checkpoint(mixed[0], "tiny"), tmp_path / "int4")
    assert set(errors) == {
        *(f"self_attn.{each}_proj" for each in "qkvo"),
        *(f"{block}.{each}_proj" for block in ("mlp", "experts") for each in ("gate", "up", "down")),
    }
    # Four bits that were four bits before lose as much again where the groups are not the same.
    assert 0 < max(errors.values()) < 0.1
    direct, folder = load(str(mixed[0]), "cpu").model, load(str(tmp_path / "int4"), "cpu").model
    ours, theirs = packed_in(direct.network.module), packed_in(folder.network.module)  # pyright: ignore[reportAttributeAccessIssue]
    assert ours.keys() == theirs.keys()
    for name, each in ours.items():
        assert torch.equal(each.get_buffer("codes"), theirs[name].get_buffer("codes")), name
    assert direct.info.sampling == folder.info.sampling
    assert direct.info.sampling.entropy_bound == pytest.approx(0.2)
    assert direct.info.sampling.max_steps == 8
    request = FillRequest(prefix="def f(x):\n    ", suffix="\n\ndef g():\n", language="python")
    assert direct.prompt(request) == folder.prompt(request)


@pytest.mark.parametrize("kind", ["Q4_K", "Q6_K"])
def test_k_quants_are_read(tmp_path: Path, kind: str):
    """Their blocks have 256 numbers."""
    numbers = write_flagship(
        tmp_path / "tiny.gguf", {"gate_up_exps.weight": kind}, hidden_size=256, num_hidden_layers=2, layer_types=LAYERS
    )
    errors = quantize(read_checkpoint(tmp_path / "tiny.gguf", "tiny"), tmp_path / "int4")
    assert 0 < errors["experts.gate_proj"] < 0.15
    held: PackedWeights = module_of(tmp_path / "tiny.gguf").model.decoder.layers[1].experts.gate_up_proj
    assert isinstance(held, PlainInt4)
    exact = numbers["model.decoder.layers.1.experts.gate_up_proj"]
    assert float((held.matrix(3) - exact[3]).norm() / exact[3].norm()) < 0.15


LAYERS = ["sliding_attention", "full_attention"]


def test_any_text_survives_its_tokens(mixed: tuple[Path, dict[str, Tensor]]):
    model = load(str(mixed[0]), "cpu").model
    for text in ("def f(x):\n    return x", " a  b\n\n\n\n\tc", "é😋 = '<table>'\r\n", "<bos><|turn><|channel> <unk>"):
        ids = model.tokenize(text)
        assert model.vocabulary.text(ids) == text
    assert model.tokenize("return") == [TOKENS.index("return")]
    assert model.tokenize("    ") == [TOKENS.index("\u2581" * 4)]


def test_a_chat_is_in_control_tokens_and_ends_with_them(mixed: tuple[Path, dict[str, Tensor]]):
    model = load(str(mixed[0]), "cpu").model
    context = model.prompt(FillRequest(prefix="x = ", suffix="\n", language="python")).context
    assert context[:2] == (TOKENS.index("<bos>"), TOKENS.index("<|turn>"))
    assert {TOKENS.index(token) for token in ("<bos>", "<|turn>", "<|channel>")} <= set(model.info.forbidden_ids)
    assert TOKENS.index("<table>") not in model.info.forbidden_ids


def of_ours(name: str) -> str:
    return f"{ARCHITECTURE}.{name}"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({of_ours("block_count"): 3}, "sliding_window_pattern for 4 of 3 layers"),
        ({of_ours("attention.head_count_kv"): [2, 2, 1, 1]}, "head_count_kv is"),
        ({of_ours("attention.sliding_window"): None}, "does not say its attention.sliding_window"),
        ({"diffusion.canvas_length": None}, "does not say its diffusion.canvas_length"),
        ({of_ours("expert_count"): 5}, "asks for"),
        ({of_ours("embedding_length"): 32}, "asks for"),
        ({of_ours("expert_used_count"): 9}, "top_k_experts is 9, which contradicts its 4 experts"),
        ({of_ours("attention.key_length"): 32}, "lacks rope_freqs.weight for heads of 32"),
        ({of_ours("embedding_length_per_layer_input"): 256}, "can't compute"),
        ({"tokenizer.ggml.model": "llama"}, "tokenizer of the model 'llama'"),
        ({"tokenizer.ggml.token_type": [1, 1]}, "contradicts itself about its tokens"),
        ({"tokenizer.ggml.merges": None}, "contradicts itself about its tokens"),
    ],
)
def test_what_contradicts_itself_is_a_sentence_before_weights_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], message: str
):
    write_flagship(tmp_path / "bad.gguf", MIXED, fields)
    refuse_to_read(monkeypatch)
    with pytest.raises(ModelError, match=message):
        load(str(tmp_path / "bad.gguf"), "cpu")


def refuse_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: object) -> Tensor:
        raise AssertionError("weights were read")

    monkeypatch.setattr(weights, "_read", read)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (b"blk.1.ffn_up.weight", b"blk.1.ffn_wx.weight", "holds blk.1.ffn_wx.weight, which DiffusionGemma's class"),
        (b"blk.1.ffn_up.weight", b"blk.7.ffn_up.weight", "says 4 layers, but its weights have 5"),
        (b"blk.1.ffn_up.weight", b"blk.2.ffn_up.weight", "names a tensor twice"),
        (b"diffusion-gemma", b"diffusion-gemmb", "of the architecture 'diffusion-gemmb': dg-lsp runs diffusion-gemma"),
    ],
)
def test_a_file_of_other_tensors_is_a_sentence(
    mixed: tuple[Path, dict[str, Tensor]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: bytes,
    after: bytes,
    message: str,
):
    data = mixed[0].read_bytes()
    assert before in data
    (tmp_path / "bad.gguf").write_bytes(data.replace(before, after))
    refuse_to_read(monkeypatch)
    with pytest.raises(ModelError, match=message):
        load(str(tmp_path / "bad.gguf"), "cpu")


@pytest.mark.parametrize("kept", [-1, -5000, 5000, 100])
def test_a_cut_file_is_a_sentence(mixed: tuple[Path, dict[str, Tensor]], tmp_path: Path, kept: int):
    (tmp_path / "cut.gguf").write_bytes(mixed[0].read_bytes()[:kept])
    with pytest.raises(ModelError, match=r"is cut off(, it has [\d,]+ of [\d,]+ bytes| or damaged)"):
        load(str(tmp_path / "cut.gguf"), "cpu")


def test_a_type_that_nothing_reads_is_named(mixed: tuple[Path, dict[str, Tensor]], tmp_path: Path):
    data = bytearray(mixed[0].read_bytes())
    name = b"blk.2.ffn_gate_up_exps.weight"
    at = data.index(name) + len(name) + 4 + 3 * 8
    data[at : at + 4] = int(gguf.GGMLQuantizationType.IQ3_S).to_bytes(4, "little")
    (tmp_path / "iq3.gguf").write_bytes(data)
    with pytest.raises(ModelError, match="is of the type IQ3_S, which dg-lsp can't read: take a file in Q4_K_M"):
        load(str(tmp_path / "iq3.gguf"), "cpu")


def test_gemma_4_itself_is_refused_by_its_name(mixed: tuple[Path, dict[str, Tensor]], tmp_path: Path):
    """It fills no gaps: it is the model that this one was made of."""
    writer = gguf.GGUFWriter(tmp_path / "gemma4.gguf", "gemma4")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ModelError, match="is of the architecture 'gemma4'"):
        load(str(tmp_path / "gemma4.gguf"), "cpu")


def test_a_tokenizer_is_written_as_it_is(mixed: tuple[Path, dict[str, Tensor]], tmp_path: Path):
    checkpoint = read_checkpoint(mixed[0], "tiny")
    quantize(checkpoint, tmp_path / "int4")
    ours, theirs = read_tokenizer(checkpoint), read_tokenizer(read_checkpoint(tmp_path / "int4", "folder"))
    text = "def f(x):\n    return '<|turn>' + x  \n\n<table>é"
    assert ours.encode(text).ids == theirs.encode(text).ids
