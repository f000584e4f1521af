"""A Llama in GGUF, against transformers' class of the weights that it was written from."""

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from tokenizers import pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

from tests.engine.coder import open_coder

MARKERS = ("<|endoftext|>", "<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>", "<file_sep>", "<repo_name>")
TOKENS = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "re", *MARKERS]
PARTS = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def some_llama(*, tied: bool) -> LlamaForCausalLM:
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=len(TOKENS),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        tie_word_embeddings=tied,
        initializer_range=0.2,
    )
    return LlamaForCausalLM(config).eval()


def in_pairs(weight: np.ndarray, heads: int) -> np.ndarray:
    """As llama.cpp's `convert_hf_to_gguf.py` has queries and keys of a Llama: what is turned together side by side."""
    return weight.reshape(heads, 2, len(weight) // heads // 2, -1).swapaxes(1, 2).reshape(weight.shape)


def written(model: LlamaForCausalLM, path: Path, dtype: gguf.GGMLQuantizationType) -> Path:
    config = model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(4096)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10000.0)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("starcoder")
    writer.add_token_list(TOKENS)
    writer.add_token_merges(["r e"])
    writer.add_token_types([3 if token in MARKERS else 1 for token in TOKENS])
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    names = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
    for name, tensor in model.state_dict().items():
        numbers = tensor.numpy()
        if name == "lm_head.weight":
            if config.tie_word_embeddings:
                continue
            own = "output.weight"
        elif name in names:
            own = names[name]
        else:
            _, _, layer, *middle, kind = name.split(".")
            part = PARTS[".".join(middle)]
            own = f"blk.{layer}.{part}.{kind}"
            numbers = in_pairs(numbers, heads[part]) if part in heads else numbers
        kept = numbers if numbers.ndim == 1 else gguf.quants.quantize(numbers, dtype)
        writer.add_tensor(own, kept, raw_dtype=None if numbers.ndim == 1 else dtype)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("tied", [True, False])
@torch.no_grad()
def test_a_llama_gives_the_logits_of_transformers_class(tmp_path: Path, tied: bool):
    model = some_llama(tied=tied)
    coder = open_coder(written(model, tmp_path / "llama.gguf", gguf.GGMLQuantizationType.F32))
    ids = torch.randint(0, len(TOKENS), (1, 20), generator=torch.Generator().manual_seed(1))
    mask = torch.ones(20, 20, dtype=torch.bool).tril()[None, None]
    hidden = coder.network.run(
        ids, torch.arange(20)[None], lambda _, query, key, value: coder.network.attention(query, key, value, mask)
    )
    torch.testing.assert_close(coder.network.logits(hidden), model(ids).logits, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_rows_in_pairs_are_put_apart_where_they_were_quantized_too(tmp_path: Path):
    model = some_llama(tied=True)
    coder = open_coder(written(model, tmp_path / "llama.gguf", gguf.GGMLQuantizationType.Q8_0))
    for own, theirs in zip(coder.network.layers, model.model.layers, strict=True):
        for name in ("q_proj", "k_proj", "v_proj"):
            found, wanted = (getattr(layer.self_attn, name).weight for layer in (own, theirs))
            assert float((found - wanted).abs().max()) < 0.02


def test_markers_of_starcoder_are_found(tmp_path: Path):
    coder = open_coder(written(some_llama(tied=True), tmp_path / "llama.gguf", gguf.GGMLQuantizationType.F32))
    assert coder.fim.dialect.title == "StarCoder, Granite"
    named = {coder.fim.prefix, coder.fim.suffix, coder.fim.middle, coder.fim.file_separator, coder.fim.repository}
    assert named == {TOKENS.index(each) for each in MARKERS if each not in ("<|endoftext|>", "<fim_pad>")}
