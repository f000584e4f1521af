from pathlib import Path

import gguf
import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from engine.common.errors import ModelError
from engine.models.causal.opening import Coder
from tests.engine.coder import MARKERS, open_coder, write_coder


def reference(coder: Coder) -> Qwen2ForCausalLM:
    """transformers' class of the same weights."""
    shape = coder.network.config
    config = Qwen2Config(
        vocab_size=shape.vocab,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        rms_norm_eps=shape.norm_eps,
        rope_parameters={"rope_type": "default", "rope_theta": shape.rope_theta},
        tie_word_embeddings=shape.tied,
    )
    model = Qwen2ForCausalLM(config).eval()
    model.load_state_dict(coder.network.module.state_dict(), strict=False)
    return model


@pytest.mark.parametrize("tied", [True, False])
@torch.no_grad()
def test_a_file_gives_the_logits_of_transformers_class(tmp_path: Path, tied: bool):
    coder = open_coder(write_coder(tmp_path / "coder.gguf", tied=tied))
    ids = torch.randint(0, coder.network.config.vocab, (1, 20))
    mask = torch.ones(20, 20, dtype=torch.bool).tril()[None, None]
    hidden = coder.network.run(
        ids,
        torch.arange(20)[None],
        lambda _, query, key, value: coder.network.attention(query, key, value, mask),
    )
    # The same sums in another order, in float32.
    torch.testing.assert_close(coder.network.logits(hidden), reference(coder)(ids).logits, atol=1e-5, rtol=1e-5)


def test_a_text_is_cut_into_tokens_and_put_together_again_and_markers_in_it_are_text(tmp_path: Path):
    coder = open_coder(write_coder(tmp_path / "coder.gguf"))
    for text in ("def f(x):\n    return x\n", "😋 'quoted'\r\n\t", "<|fim_prefix|>"):
        ids = coder.encode(text)
        assert coder.tokenizer.decode(ids) == text
        assert not {coder.fim.prefix, coder.fim.pad} & set(ids)
    assert len(coder.encode("return")) == 1


def test_what_is_no_coder_is_refused_by_a_sentence(tmp_path: Path):
    path = tmp_path / "other.gguf"
    path.write_bytes(b"GGUF and nothing else")
    with pytest.raises(ModelError, match="is GGUF of version 1684955424"):
        open_coder(path)
    writer = gguf.GGUFWriter(path, "mamba")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ModelError, match=r"'mamba': dg-lsp runs .*, qwen2, llama"):
        open_coder(path)


def test_markers_of_the_file_are_found(tmp_path: Path):
    coder = open_coder(write_coder(tmp_path / "coder.gguf"))
    names = [coder.tokenizer.id_to_token(each) for each in (coder.fim.prefix, coder.fim.suffix, coder.fim.middle)]
    assert names == list(MARKERS[1:4])
