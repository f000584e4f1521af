"""Checkpoints whose files lie: each is one sentence, before anything of the size they claim is allocated."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.cli import run
from engine.common.errors import ModelError
from engine.fill.loading import load
from tests.engine.models.masked.published import write_published


def change(path: Path, *where: str, **values: Any) -> None:
    """Set fields of the object at `where` in a JSON file."""
    whole = json.loads(path.read_text())
    part = whole
    for name in where:
        part = part[name]
    part.update(values)
    path.write_text(json.dumps(whole))


def text_config(path: Path, **values: Any) -> None:
    change(path / "config.json", "text_config", **values)


def write_facts(path: Path, **facts: Any) -> None:
    (path / "dg_lsp.json").write_text(json.dumps(facts))


def widen_vocabulary(path: Path) -> None:
    change(path / "tokenizer.json", "model", "vocab", surplus=30_000_000)


MASKED = {"mask": "<M>", "end": "<M>", "shifted": True, "context": 64, "temperature": 1, "top_p": 1, "entropy_bound": 0}
FAR = {**MASKED, "mask": "<far>"}
PRIOR = {"fast": 0, "fast_rate": 1, "slow": 0, "slow_rate": 1, "floor": 1}
DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda path: text_config(path, num_hidden_layers=200_000_000),
            "says 200000000 layers, but its weights have 4",
        ),
        (lambda path: text_config(path, num_hidden_layers=3), "says 3 layers, but its weights have 4"),
        (lambda path: text_config(path, num_hidden_layers="four"), "tiny can't be loaded"),
        (lambda path: change(path / "config.json", text_config="none"), "tiny can't be loaded"),
        (lambda path: text_config(path, vocab_size=2_000_000_000), "vocab_size of tiny is 2,000,000,000"),
        (lambda path: text_config(path, vocab_size=2_000_000), "embed_tokens.weight of tiny is"),
        (lambda path: text_config(path, head_dim=1 << 40), "of tiny is"),
        (lambda path: text_config(path, rope_parameters=7), "tiny can't be loaded"),
        (lambda path: (path / "config.json").write_text(DEEP), "tiny has a config.json that can't be read"),
        (
            lambda path: (path / "config.json").write_text('{"a": ' + "9" * 9_999 + "}"),
            "config.json that can't be read",
        ),
        (widen_vocabulary, "The tokenizer of tiny has the token 30000000"),
        (lambda path: change(path / "config.json", canvas_length=1 << 40), "canvas_length"),
        (lambda path: change(path / "generation_config.json", max_denoising_steps=1 << 40), "max_steps"),
        (lambda path: (path / "dg_lsp.json").write_text('{"length": "guess"}'), "guess"),
        (lambda path: (path / "dg_lsp.json").write_text('{"widths": [4, "all"]}'), "widths"),
        (lambda path: (path / "dg_lsp.json").write_text('{"context": 1e300}'), "context"),
        (lambda path: (path / "dg_lsp.json").write_text('{"threshold": 40}'), "threshold"),
        (lambda path: (path / "dg_lsp.json").write_text('{"sure": "quite"}'), "sure"),
        (lambda path: change(path / "tokenizer_config.json", bos_token=[1]), "tiny can't be loaded"),
        (lambda path: change(path / "tokenizer_config.json", bos_token="unheard"), "has not all of the control tokens"),
        (lambda path: text_config(path, hidden_activation="relu"), "says hidden_activation is 'relu'"),
        (
            lambda path: text_config(path, use_bidirectional_attention="all"),
            "says use_bidirectional_attention is 'all'",
        ),
        (lambda path: text_config(path, rope_parameters={"sliding_attention": {"rope_type": "yarn"}}), "is 'yarn'"),
        (lambda path: text_config(path, sliding_window="16"), "Expected `int`, got `str` - at `$.sliding_window`"),
        (lambda path: text_config(path, sliding_window=10**40), "at `$.sliding_window`"),
        (lambda path: text_config(path, rms_norm_eps=[]), "at `$.rms_norm_eps`"),
        (lambda path: text_config(path, final_logit_softcapping=math.nan), "at `$.final_logit_softcapping`"),
        (lambda path: text_config(path, top_k_experts=2.0), "at `$.top_k_experts`"),
        (lambda path: text_config(path, top_k_experts=5), "top_k_experts is 5, which contradicts its 4 experts"),
        (lambda path: (path / "chat_template.jinja").write_text("{{ nothing.at.all }}"), "tiny can't be loaded"),
        (lambda path: (path / "adapter_config.json").write_text("{}"), "adapter"),
    ],
)
def test_a_checkpoint_that_lies_is_a_sentence(changeable: Path, damage: Callable[[Path], None], message: str):
    damage(changeable)
    (changeable.parent / "tiny").symlink_to(changeable)
    with pytest.raises(ModelError) as error:
        load(str(changeable.parent / "tiny"), "cpu")
    said = str(error.value).replace(f"{changeable.parent}{os.sep}", "")
    assert message in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: change(path / "config.json", num_hidden_layers=200_000_000), "says 200000000 layers, but its"),
        (lambda path: change(path / "config.json", vocab_size=2_000_000_000), "embed_tokens.weight of"),
        (lambda path: change(path / "config.json", rope_parameters="x"), "can't be loaded"),
        (lambda path: change(path / "config.json", num_key_value_heads="x"), "can't be loaded"),
        (lambda path: change(path / "config.json", rms_norm_eps=math.nan), "norm_eps"),
        (lambda path: change(path / "config.json", rope_theta=0), "rope_theta"),
        (lambda path: (path / "added_tokens.json").write_text('{"<far>": -9}') and write_facts(path, masked=FAR), "-9"),
        (lambda path: write_facts(path, masked={**MASKED, "shifted": -1_000}), "shifted"),
        (lambda path: write_facts(path, masked={**MASKED, "unheard_of": 1}), "unheard_of"),
        (lambda path: write_facts(path, prior={**PRIOR, "fast_rate": -1e9}), "fast_rate"),
        (lambda path: change(path / "tokenizer_config.json", added_tokens_decoder=[1]), "can't be loaded"),
    ],
)
def test_a_masked_checkpoint_that_lies_is_a_sentence(tmp_path: Path, damage: Callable[[Path], None], message: str):
    path = write_published(tmp_path / "model", "open-dcoder")
    damage(path)
    with pytest.raises(ModelError, match=message):
        load(str(path), "cpu")


def test_what_is_said_of_a_value_of_megabytes_is_no_longer_than_a_message(changeable: Path):
    text_config(changeable, hidden_activation="x" * 10**7)
    with pytest.raises(ModelError, match="which dg-lsp can't compute") as refused:
        load(str(changeable), "cpu")
    assert len(str(refused.value)) <= 2_000


def test_a_tensor_that_is_a_mere_list_is_a_sentence(changeable: Path):
    from safetensors.torch import load_file, save_file

    for file in changeable.glob("*.safetensors"):
        tensors = {
            name: each.flatten() if name.endswith("embed_tokens.weight") else each
            for name, each in load_file(file).items()
        }
        save_file(tensors, file, metadata={"format": "pt"})
    with pytest.raises(ModelError, match="can't be loaded"):
        load(str(changeable), "cpu")


def test_vision_parts_that_are_not_loaded_cost_nothing(changeable: Path):
    change(changeable / "config.json", "vision_config", num_hidden_layers=200_000_000)
    assert load(str(changeable), "cpu").model.info.family == "diffusion_gemma"


def test_a_checkpoint_chooses_no_implementation(changeable: Path):
    expected = load(str(changeable), "cpu").fill("x = ", "\n", width=3)
    implementations = {"attn_implementation": "org/kernel", "_attn_implementation": "org/kernel"}
    change(changeable / "config.json", use_kernels=True, **implementations)
    text_config(changeable, experts_implementation="org/kernel", **implementations)
    assert load(str(changeable), "cpu").fill("x = ", "\n", width=3).candidates == expected.candidates


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model-00001-of-00007.safetensors"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(changeable: Path, name: str):
    (changeable / name).unlink()
    os.mkfifo(changeable / name)
    with pytest.raises(ModelError):
        load(str(changeable), "cpu")


PANICS: dict[str, dict[str, Any]] = {
    "at the load": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}},
    "at a text": {"pre_tokenizer": {"type": "FixedLength", "length": 0}},
}


@pytest.mark.parametrize("when", PANICS)
def test_a_tokenizer_that_panics_is_a_sentence(changeable: Path, when: str):
    change(changeable / "tokenizer.json", **PANICS[when])
    with pytest.raises(ModelError, match=r"The tokenizer of .* can't be loaded"):
        load(str(changeable), "cpu")


@pytest.mark.parametrize("layout", ["gemma", "llada"])
def test_a_tokenizer_neither_cuts_nor_pads(changeable: Path, tmp_path: Path, layout: str):
    path = changeable if layout == "gemma" else write_published(tmp_path / "masked", "llada")
    direction = {"direction": "Right"}
    padding = {**direction, "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "<pad>"}
    change(
        path / "tokenizer.json",
        truncation={**direction, "max_length": 2, "strategy": "LongestFirst", "stride": 0},
        padding={**padding, "strategy": {"Fixed": 1 << 50}},
    )
    model = load(str(path), "cpu").model
    assert model.detokenize(model.tokenize("return self.x")) == "return self.x"


def test_one_bad_model_is_one_line_of_the_list(
    changeable: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    from huggingface_hub import constants

    cache = tmp_path / "cache"
    for name in ("good", "deep", "many"):
        repo = cache / f"models--someone--{name}"
        snapshot = repo / "snapshots" / ("0" * 40)
        snapshot.mkdir(parents=True)
        (repo / "refs").mkdir()
        (repo / "refs" / "main").write_text("0" * 40)
        (repo / "blobs").mkdir()
        for file in changeable.iterdir():
            blob = repo / "blobs" / file.name
            blob.write_bytes(file.read_bytes())
            (snapshot / file.name).symlink_to(blob)
    (cache / "models--someone--deep" / "blobs" / "config.json").write_text(DEEP)
    change(cache / "models--someone--many" / "blobs" / "config.json", text_config={"num_hidden_layers": [200_000_000]})
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    assert run(["models"]) == 0
    out = capsys.readouterr().out
    assert "\nsomeone/good\n    cache, " in out
    for name, said in (("deep", "can't be read"), ("many", "can't be loaded")):
        (line,) = [line for line in out.splitlines() if f"someone/{name}" in line]
        assert said in line
