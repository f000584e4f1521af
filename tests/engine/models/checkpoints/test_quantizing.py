"""Models made four bits wide: what is written, read again, and gone on with after a cut."""

import errno
import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from dg_lsp.cli import run
from engine.common.errors import BadInput, ModelError
from engine.fill.loading import load
from engine.models.checkpoints import quantizing
from engine.models.checkpoints.checkpoint import read_checkpoint
from engine.models.checkpoints.quantizing import quantize
from engine.models.masked.model import Masked
from engine.models.quantized.layers import PackedLinear, PackedWeights, PlainInt4
from tests.engine.coder import write_coder
from tests.engine.models.masked.published import write_published
from tests.engine.quantized import SIZES, write_quantized
from tests.engine.released import write_checkpoint


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("whole"), **SIZES)


def written(path: Path) -> dict[str, Tensor]:
    """All tensors of a directory."""
    return {name: tensor for file in path.glob("*.safetensors") for name, tensor in load_file(file).items()}


def module_of(path: Path) -> Any:
    return load(str(path), "cpu").model.network.module  # pyright: ignore[reportAttributeAccessIssue]


def test_matrices_become_int4_and_all_else_stays(whole: Path, tmp_path: Path):
    errors = quantize(read_checkpoint(whole, "tiny"), tmp_path / "out")
    assert set(errors) == {
        *(f"self_attn.{each}_proj" for each in "qkvo"),
        *(f"{block}.{each}_proj" for block in ("mlp", "experts") for each in ("gate", "up", "down")),
    }
    assert max(errors.values()) < 0.085
    before, after = written(whole), written(tmp_path / "out")
    plain = {name for name in before if "_proj" not in name or "vision" in name or "self_conditioning" in name}
    assert {name for name in after if not name.rpartition(".")[2].startswith("weight_")} == plain
    assert any("vision" in name for name in plain)
    assert all(torch.equal(before[name], after[name]) for name in plain)
    numbers = {name: tensor for name, tensor in module_of(whole).state_dict().items() if "_proj" in name}
    packed = {
        name: each for name, each in module_of(tmp_path / "out").named_modules() if isinstance(each, PackedWeights)
    }
    assert packed
    for name, each in packed.items():
        assert isinstance(each, PlainInt4)
        exact = numbers[name].view(-1, *each.shape[-2:])
        for expert, matrix in enumerate(exact):
            assert float((each.matrix(expert) - matrix).norm() / matrix.norm()) < 0.1


def test_the_published_reader_reads_it(whole: Path, tmp_path: Path):
    package = pytest.importorskip("compressed_tensors", reason="pip install --group dev")
    from compressed_tensors.compressors import BaseCompressor

    quantize(read_checkpoint(whole, "tiny"), tmp_path / "out")
    said = json.loads((tmp_path / "out" / "config.json").read_text())["quantization_config"]
    config = package.quantization.QuantizationConfig.model_validate(said)
    reader, after = BaseCompressor.get_value_from_registry(config.format), written(tmp_path / "out")
    before = {name: tensor for name, tensor in written(whole).items() if "vision" not in name}
    stems = [name.removesuffix(".weight_packed") for name in after if name.endswith(".weight_packed")]
    assert stems
    for stem in stems:
        parts = {own: after[f"{stem}.{own}"] for own in quantizing.PARTS}
        read = reader.decompress(parts, config.config_groups["group_0"])["weight"].float()
        holder, number, part = stem.rsplit(".", 2)
        if number.isdecimal():
            fused = before[f"{holder}.{'down' if part == 'down_proj' else 'gate_up'}_proj"][int(number)]
            exact = fused if part == "down_proj" else fused.chunk(2)[part == "up_proj"]
        else:
            exact = before[f"{stem}.weight"]
        assert float((read - exact).norm() / exact.norm()) < 0.1
    modules = {name.removesuffix(".weight") for name, tensor in after.items() if tensor.dim() == 2}
    assert (
        modules - set(config.ignore) - {each for each in modules if each.rpartition(".")[2].startswith("weight_")}
        == set()
    )


def test_a_cut_costs_one_layer(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    checkpoint = read_checkpoint(whole, "tiny")
    expected = quantize(checkpoint, tmp_path / "at once")
    calls, exact = iter(range(1000)), quantizing.quantize_int4

    def cut(weights: Tensor) -> tuple[dict[str, Tensor], float]:
        if next(calls) == 40:
            raise KeyboardInterrupt
        return exact(weights)

    monkeypatch.setattr(quantizing, "quantize_int4", cut)
    with pytest.raises(KeyboardInterrupt):
        quantize(checkpoint, tmp_path / "cut")
    with pytest.raises(ModelError, match=r"has no config\.json"):
        load(str(tmp_path / "cut"), "cpu")
    finished = {file: file.stat().st_mtime_ns for file in (tmp_path / "cut").glob("*.safetensors")}
    assert 1 < len(finished) < 5
    assert quantize(checkpoint, tmp_path / "cut") == expected
    assert {file: file.stat().st_mtime_ns for file in finished} == finished
    assert sorted(file.name for file in (tmp_path / "cut").iterdir()) == sorted(
        file.name for file in (tmp_path / "at once").iterdir()
    )
    for file in (tmp_path / "cut").iterdir():
        assert file.read_bytes() == (tmp_path / "at once" / file.name).read_bytes()


def test_a_cut_in_the_first_file_can_be_gone_on_with(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    checkpoint = read_checkpoint(whole, "tiny")
    with monkeypatch.context() as patched:
        patched.setattr(quantizing, "_chunks", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            quantize(checkpoint, tmp_path / "cut")
    assert not list((tmp_path / "cut").glob("*.safetensors"))
    assert quantize(checkpoint, tmp_path / "cut")


@pytest.mark.skipif(sys.platform == "win32", reason="no file can be kept from growing there")
@pytest.mark.parametrize("nbytes", [10, 1000])
def test_a_full_disk_is_named_and_can_be_gone_on_with(whole: Path, tmp_path: Path, nbytes: int):
    """Full at once, or in the first file."""
    import resource

    checkpoint = read_checkpoint(whole, "tiny")
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, unlimited[1]))
    try:
        with pytest.raises(
            BadInput, match=r"out can't be written to \(File too large\): make room on its disk"
        ) as raised:
            quantize(checkpoint, tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert not isinstance(raised.value, ModelError)
    assert quantize(checkpoint, tmp_path / "out")


def test_a_model_that_can_not_be_read_is_blamed_itself(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(quantizing, "read_numbers", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "Broken disk")))
    with pytest.raises(ModelError, match=r"tiny can't be loaded \(.*Broken disk\): pull or copy it again"):
        quantize(read_checkpoint(whole, "tiny"), tmp_path / "out")


def test_another_directory_is_left_alone(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(BadInput, match="holds something else: name a directory that is empty"):
        quantize(read_checkpoint(whole, "tiny"), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]
    other, out = write_checkpoint(tmp_path / "other", seed=1, **SIZES), tmp_path / "out"
    monkeypatch.setattr(quantizing, "quantize_int4", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        quantize(read_checkpoint(whole, "tiny"), out)
    with pytest.raises(BadInput, match="holds something else"):
        quantize(read_checkpoint(other, "tiny"), out)


def test_a_directory_that_can_not_take_it_is_a_sentence(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "file").write_text("")
    assert run(["quantize", str(whole), "--out", str(tmp_path / "file")]) == 2
    assert f"{tmp_path / 'file'} can't be made (File exists): name another directory." in capsys.readouterr().err
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    assert run(["quantize", str(whole), "--out", str(tmp_path / "out")]) == 2
    assert "kB of disk, and 1.0 kB are free: free some, or name another directory." in capsys.readouterr().err


def test_what_is_packed_is_not_packed_again(tmp_path: Path):
    packed, _ = write_quantized(tmp_path, "modelopt")
    with pytest.raises(ModelError, match="tiny is in 4 bit already: name the model in bfloat16"):
        quantize(read_checkpoint(packed, "tiny"), tmp_path / "out")


def test_what_is_no_number_is_named(changeable: Path, tmp_path: Path):
    name = "model.decoder.layers.2.self_attn.q_proj.weight"
    shard = next(file for file in changeable.glob("*.safetensors") if name in load_file(file))
    tensors = load_file(shard)
    tensors[name][3, 5] = torch.nan
    save_file(tensors, shard)
    with pytest.raises(ModelError, match=rf"{name} in .* holds what is no number"):
        quantize(read_checkpoint(changeable, "tiny"), tmp_path / "out")


@pytest.mark.parametrize("layout", ["dreamon", "llada", "open-dcoder"])
@torch.inference_mode()
def test_masked_coders_run_in_int4(layout: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path, out = write_published(tmp_path / "model", layout), tmp_path / "out"
    assert run(["quantize", str(path), "--out", str(out), "--gaps", "0"]) == 0
    told = capsys.readouterr().out
    assert "mlp.up_proj: relative error 0.0" in told
    assert f"Ready: dg-lsp fill FILE --at LINE:COL --model {out}" in told
    model = load(str(out), "cpu").model
    assert isinstance(model, Masked)
    ids = torch.arange(20, 40)[None]
    found = model.network.logits(model.network.run(ids, torch.arange(20)[None]))
    unpacked = 0
    for layer in model.network.layers:
        for block in (layer.self_attn, layer.mlp):
            for name, part in list(block.named_children()):
                if isinstance(part, PackedLinear):
                    plain = torch.nn.Linear(*reversed(part.weight.shape), bias=part.bias is not None)
                    plain.weight, plain.bias = torch.nn.Parameter(part.weight.matrix(0)), part.bias
                    setattr(block, name, plain)
                    unpacked += 1
    # The tiny one's last matrix of a block is no multiple of a group wide.
    assert unpacked == 2 * 6
    expected = model.network.logits(model.network.run(ids, torch.arange(20)[None]))
    assert float((found - expected).norm() / expected.norm()) <= 1e-5


def test_a_coder_in_a_gguf_is_run_as_it_is(tmp_path: Path):
    with pytest.raises(ModelError, match="is a coder's GGUF, which is run as it is: name it to --model"):
        quantize(read_checkpoint(write_coder(tmp_path / "coder.gguf"), "coder"), tmp_path / "out")
