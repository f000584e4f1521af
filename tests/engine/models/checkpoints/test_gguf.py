"""What people have: a GGUF is a model by its path or its name, and a damaged one is a sentence."""

import random
import struct
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

from engine.common.errors import ModelError
from engine.models.checkpoints.catalog import find, models_dir
from engine.models.checkpoints.checkpoint import read_checkpoint
from engine.models.checkpoints.coders import CODERS
from engine.models.checkpoints.gguf import BLOCKS, read_gguf
from engine.models.checkpoints.gguf_blocks import decoded
from engine.models.checkpoints.placement import Machine, memory_plan, place
from tests.engine.coder import write_coder, write_parts

COUNTS = 8
"""Where a file says how many tensors and fields it has."""


@pytest.fixture(scope="module")
def coder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_coder(tmp_path_factory.mktemp("coder") / "tiny.gguf")


def random_blocks(dtype: str, count: int) -> np.ndarray:
    """Any bits, but scales that are numbers."""
    rng = np.random.default_rng(7)
    block, nbytes = BLOCKS[dtype]
    if dtype in ("F32", "F16", "BF16"):
        numbers = rng.normal(size=(count, block)).astype(np.float32)
        return gguf.quants.quantize(numbers, gguf.GGMLQuantizationType[dtype]).view(np.uint8).reshape(count, nbytes)
    raw = rng.integers(0, 256, (count, nbytes), dtype=np.uint8)
    scales = rng.normal(size=(count, 2)).astype(np.float16).view(np.uint8)
    if dtype == "Q6_K":
        raw[:, 208:] = scales[:, :2]
    elif dtype in ("Q4_1", "Q5_1", "Q4_K", "Q5_K"):
        raw[:, :4] = scales
    else:
        raw[:, :2] = scales[:, :2]
    return raw


@pytest.mark.parametrize("dtype", BLOCKS)
def test_blocks_of_each_type_are_the_numbers_that_the_published_package_makes_of_them(dtype: str):
    raw = random_blocks(dtype, 50)
    stored = {"F32": np.float32, "F16": np.float16}.get(dtype, np.uint8)
    published = gguf.quants.dequantize(raw.view(stored), gguf.GGMLQuantizationType[dtype])
    np.testing.assert_array_equal(decoded(torch.from_numpy(raw), dtype).numpy(), published.reshape(50, -1))


@pytest.mark.parametrize("named", ["the file", "its folder"])
def test_a_gguf_is_a_checkpoint(coder: Path, named: str):
    path = coder if named == "the file" else coder.parent
    found = find(str(path))
    assert (found.family, found.length, found.layers) == ("causal", "causal", 2)
    assert found.name == str(path)
    assert found.config["hidden_size"] == 32
    shapes = {tensor.name: tensor.shape for tensor in found.tensors}
    assert shapes["model.layers.1.mlp.down_proj.weight"] == (32, 64)
    assert shapes["model.layers.0.self_attn.k_proj.weight"] == (16, 32)
    assert found.sizes.hidden == 32
    assert found.sizes.token_features == 2 * 2 * 16


def test_a_coder_of_the_catalogue_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DG_LSP_STATE_DIR", str(tmp_path))
    with pytest.raises(ModelError, match=r"coder-0\.5b is not on this machine: run `dg-lsp pull coder-0.5b` first"):
        find("coder-0.5b")
    models_dir().mkdir()
    write_coder(models_dir() / CODERS["coder-0.5b"].file)
    assert find("coder-0.5b").family == find("Coder-0.5B").family == "causal"


def test_its_matrices_are_planned_in_eight_bits_on_a_processor(coder: Path):
    checkpoint = find(str(coder))
    plan = memory_plan(checkpoint, place(checkpoint, "cpu", Machine(cpu=1 << 34, gpus=())))
    matrices = sum(tensor.elements for tensor in checkpoint.tensors if len(tensor.shape) == 2)
    vectors = checkpoint.parameters - matrices
    assert plan.weights == matrices + 4 * vectors


def test_a_folder_with_two_models_asks_for_one(coder: Path, tmp_path: Path):
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(coder.read_bytes())
    with pytest.raises(ModelError, match=r"holds several models \(a.gguf, b.gguf\): name the file"):
        find(str(tmp_path))
    assert find(str(tmp_path / "b.gguf")).layers == 2


def test_a_model_in_parts_is_read_whole_or_not_at_all(tmp_path: Path):
    write_coder(tmp_path / "whole.gguf")
    parts = [tmp_path / f"split-0000{number}-of-00002.gguf" for number in (1, 2)]
    write_parts(tmp_path / "whole.gguf", parts)
    whole, split = find(str(tmp_path / "whole.gguf")), find(str(parts[0]))
    assert {each.name: each.shape for each in split.tensors} == {each.name: each.shape for each in whole.tensors}
    parts[1].unlink()
    with pytest.raises(ModelError, match=r"incomplete, split-00002-of-00002.gguf is missing \(1 of 2\)"):
        find(str(parts[0]))


def numbers(at: int, form: str, *values: int) -> Callable[[bytearray], None]:
    return lambda data: struct.pack_into(form, data, at, *values)


def cut(end: int) -> Callable[[bytearray], None]:
    def change(data: bytearray) -> None:
        del data[end:]

    return change


def in_tensor(form: str, behind: int, value: int) -> Callable[[bytearray], None]:
    """Change what is said of the table of tokens, `behind` bytes after its name."""

    def change(data: bytearray) -> None:
        at = data.index(b"token_embd.weight") + len(b"token_embd.weight") + behind
        struct.pack_into(form, data, at, value)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (numbers(0, "<4s", b"GGML"), "is no GGUF"),  # type: ignore[arg-type]
        (numbers(4, "<I", 1), "GGUF of version 1, and dg-lsp reads 2 and 3"),
        (numbers(COUNTS, "<Q", 1 << 60), "it counts more than it holds"),
        (numbers(COUNTS + 8, "<Q", 1 << 60), "it counts more than it holds"),
        (numbers(COUNTS + 16, "<Q", 1 << 62), "it counts more than it holds"),
        (in_tensor("<I", 0, 90), "has 90 dimensions"),
        (in_tensor("<Q", 4, 1 << 50), "can't be"),
        (in_tensor("<Q", 4, 0), "can't be"),
        (in_tensor("<I", 20, 16), "is of the type IQ2_XXS, which dg-lsp can't read: take a file in Q4_K_M"),
        (in_tensor("<I", 20, 77), "is of the type 77, which dg-lsp can't read"),
        (in_tensor("<I", 20, 12), "can't be .* in Q4_K"),
        (in_tensor("<Q", 24, 1 << 40), "lies in another tensor|is cut off"),
        (in_tensor("<Q", 24, 32), "lies in another tensor"),
        (cut(-100), r"is cut off, it has [\d,]+ of [\d,]+ bytes"),
        (cut(300), "it counts more than it holds"),
        (cut(0), "it counts more than it holds"),
    ],
)
def test_what_lies_is_refused_by_a_sentence(
    coder: Path, tmp_path: Path, change: Callable[[bytearray], None], message: str
):
    data = bytearray(coder.read_bytes())
    change(data)
    path = tmp_path / "bad.gguf"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=message):
        read_checkpoint(path, "bad")


def test_any_damage_to_a_header_is_a_sentence_or_changes_nothing_that_is_planned_by(coder: Path, tmp_path: Path):
    rng = random.Random(3)
    whole = coder.read_bytes()
    header = whole.index(b"token_embd.weight") + 2000
    path = tmp_path / "bad.gguf"
    refused = 0
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(header)] = rng.choice((0, 1, 255, rng.randrange(256)))
        path.write_bytes(data[: rng.choice((len(data), rng.randrange(len(data))))])
        try:
            checkpoint = read_checkpoint(path, "bad")
        except ModelError:
            refused += 1
            continue
        assert checkpoint.parameters < 4 * len(whole)
    assert refused > 200


def test_an_architecture_that_nothing_runs_is_named(tmp_path: Path):
    path = tmp_path / "other.gguf"
    writer = gguf.GGUFWriter(path, "mamba")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ModelError, match="is of the architecture 'mamba': dg-lsp runs diffusion-gemma, qwen2, llama"):
        read_checkpoint(path, "other")
    assert not read_gguf(path).tensors


def test_a_file_that_is_no_gguf_is_no_model(tmp_path: Path):
    (tmp_path / "model.bin").write_bytes(b"")
    with pytest.raises(ModelError, match="is a file, but no GGUF: name the directory of the model"):
        find(str(tmp_path / "model.bin"))
