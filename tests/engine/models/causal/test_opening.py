from collections.abc import Callable
from pathlib import Path

import gguf
import pytest
import torch
from transformers import PreTrainedModel, Qwen2Config, Qwen2ForCausalLM

from engine.common.errors import ModelError
from engine.common.request import FillRequest, Snippet
from engine.fill.pipeline import fill
from engine.models.causal.opening import Coder
from tests.engine.coder import REPOSITORY, open_coder, open_model, write_coder
from tests.engine.models.causal.test_llama import some_llama, written


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


BEFORE, OTHER, AFTER = "x = 1\n", "b.py\nb = 1\n", "\ny = 2\n"


@pytest.mark.parametrize(
    ("tokenizer", "begin", "markers", "laid_out"),
    [
        pytest.param(
            "qwen2",
            "",
            REPOSITORY,
            f"<|repo_name|>workspace\n<|file_sep|>{OTHER}<|file_sep|>"
            f"<|fim_prefix|><|fim_suffix|>{AFTER}<|fim_middle|>{BEFORE}",
            id="Qwen",
        ),
        pytest.param(
            "starcoder",
            "",
            ("<|endoftext|>", "<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>", "<repo_name>", "<file_sep>"),
            f"<repo_name>workspace<file_sep>{OTHER}<file_sep><fim_prefix><fim_suffix>{AFTER}<fim_middle>{BEFORE}",
            id="StarCoder",
        ),
        pytest.param(
            "refact",
            "",
            ("<|endoftext|>", "<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>", "<filename>", "<reponame>"),
            f"<reponame>workspace<filename>{OTHER}<filename><fim_prefix><fim_suffix>{AFTER}<fim_middle>{BEFORE}",
            id="Granite",
        ),
        pytest.param(
            "deepseek-coder",
            "<｜begin▁of▁sentence｜>",
            ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
            f"<｜begin▁of▁sentence｜>{OTHER}<｜fim▁begin｜><｜fim▁hole｜>{AFTER}<｜fim▁end｜>{BEFORE}",
            id="DeepSeek",
        ),
        pytest.param(
            "llama",
            "<s>",
            ("<s>", "</s>", "▁<PRE>", "▁<MID>", "▁<SUF>", "▁<EOT>"),
            f"<s>{OTHER}▁<PRE>▁<SUF>{AFTER}▁<MID>{BEFORE}",
            id="CodeLlama",
        ),
        pytest.param(
            "llama",
            "<s>",
            ("<s>", "</s>", "[SUFFIX]", "[PREFIX]"),
            f"<s>{OTHER}[SUFFIX]{AFTER}[PREFIX]{BEFORE}",
            id="Codestral",
        ),
    ],
)
def test_each_family_has_its_markers_in_its_order(
    tmp_path: Path, tokenizer: str, begin: str, markers: tuple[str, ...], laid_out: str
):
    model = open_model(write_coder(tmp_path / "coder.gguf", markers=markers, tokenizer=tokenizer, begin=begin))
    others = (Snippet(path="b.py", text="b = 1"),)
    context = model.prompt(FillRequest(prefix=BEFORE, suffix=AFTER, snippets=others)).context
    first = model.info.noise.vocab_size - len(markers)
    spelled = (markers[token - first] if token >= first else model.detokenize([token]) for token in context)
    assert "".join(spelled) == laid_out
    ends = {markers[token - first] for token in model.ends}
    assert {marker for marker in markers if marker in laid_out} - {begin} <= ends


def qwen(folder: Path) -> tuple[Path, PreTrainedModel]:
    path = write_coder(folder / "coder.gguf")
    return path, reference(open_coder(path))


def llama(folder: Path) -> tuple[Path, PreTrainedModel]:
    model = some_llama(tied=True)
    return written(model, folder / "coder.gguf", gguf.GGMLQuantizationType.F32), model


@pytest.mark.parametrize("made", [qwen, llama])
def test_safetensors_score_and_fill_as_the_gguf_of_the_same_weights(
    tmp_path: Path, made: Callable[[Path], tuple[Path, PreTrainedModel]]
):
    path, published = made(tmp_path)
    published.save_pretrained(tmp_path / "coder")
    open_coder(path).tokenizer.save(str(tmp_path / "coder" / "tokenizer.json"))
    around = (("def f(x):\n    return ", "\n\nf(1)\n"), ("x = ", ""), ("", "\n\nf(1)\n"))
    requests = [FillRequest(prefix=prefix, suffix=suffix, max_tokens=6) for prefix, suffix in around]
    scores, texts = list[list[list[float]]](), list[list[str]]()
    for model in (open_model(path), open_model(tmp_path / "coder")):
        prompt = model.prompt(requests[0])
        gaps = [model.tokenize(text) for text in ("x", "x + 1", "")]
        scores.append(model.score(model.encode(prompt.context), gaps, prompt.suffix))
        texts.append([each.text for request in requests for each in fill(model, request).candidates])
    for ours, theirs in zip(*scores, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-5)
    assert texts[0] == texts[1] != []
