"""Adapters on disk: whole or not at all, in peft's names."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest
import torch
from safetensors.torch import load_file

from engine.common.errors import EngineError, ModelError
from engine.models.adapters.files import CONFIG_FILE, WEIGHTS_FILE, Adapter, read_adapter, write_adapter
from engine.models.adapters.metadata import (
    AdapterFigures,
    AdapterMetadata,
    adapter_path,
    adapters_dir,
    fingerprint_of,
    read_metadata,
)
from engine.models.checkpoints.checkpoint import read_checkpoint

needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
LAYER = "model.decoder.layers.0.self_attn.q_proj"
FIGURES = AdapterFigures(gaps=9, exact=0.5, similarity=0.75, clean=None, silent=0.0, forwards=3.5, p50_ms=12.0)
METADATA = AdapterMetadata(
    model="bundled",
    fingerprint="0123456789abcdef",
    folder="/somewhere",
    commit=None,
    created=1.5,
    rank=2,
    alpha=4.0,
    before={"held out": FIGURES},
    after={"held out": FIGURES},
    max_steps=4,
    sure=0.75,
    threshold=None,
    on=True,
)


def made(seed: int = 0) -> Adapter:
    generator = torch.Generator().manual_seed(seed)
    pair = torch.randn(2, 6, generator=generator), torch.randn(5, 2, generator=generator)
    return Adapter(metadata=METADATA, tensors={LAYER: pair})


def same(a: Adapter, b: Adapter) -> bool:
    pairs = zip(a.tensors.items(), b.tensors.items(), strict=True)
    return a.metadata == b.metadata and all(
        n == m and all(torch.equal(x, y) for x, y in zip(p, q, strict=True)) for (n, p), (m, q) in pairs
    )


def test_what_is_written_is_read(tmp_path: Path):
    write_adapter(tmp_path / "a", made())
    assert same(read_adapter(tmp_path / "a"), made())
    assert read_metadata(tmp_path / "a") == METADATA
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_its_files_are_pefts(tmp_path: Path):
    write_adapter(tmp_path / "a", made())
    assert {*load_file(tmp_path / "a" / WEIGHTS_FILE)} == {
        f"base_model.model.{LAYER}.lora_{side}.weight" for side in "AB"
    }
    config = json.loads((tmp_path / "a" / CONFIG_FILE).read_text())
    assert (config["peft_type"], config["r"], config["lora_alpha"]) == ("LORA", 2, 4.0)
    assert config["target_modules"] == [LAYER]


@pytest.mark.skipif(find_spec("peft") is None, reason="peft is not installed")
def test_peft_reads_the_configuration(tmp_path: Path):
    from peft import PeftConfig  # type: ignore[import-not-found]

    write_adapter(tmp_path / "a", made())
    assert PeftConfig.from_pretrained(str(tmp_path / "a")).r == 2


def test_a_later_one_takes_the_place_of_an_earlier_one(tmp_path: Path):
    write_adapter(tmp_path / "a", made())
    write_adapter(tmp_path / "a", made(seed=1))
    assert same(read_adapter(tmp_path / "a"), made(seed=1))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_cut_between_two_moves_loses_nothing(tmp_path: Path):
    write_adapter(tmp_path / "a", made())
    (tmp_path / "a").rename(tmp_path / "a.old")
    assert same(read_adapter(tmp_path / "a"), made())
    write_adapter(tmp_path / "a", made(seed=1))
    assert same(read_adapter(tmp_path / "a"), made(seed=1))


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on a file's size there")
def test_a_disk_that_refuses_leaves_the_last_good_one(tmp_path: Path):
    write_adapter(tmp_path / "a", made())
    script = (
        "import resource, signal, sys, torch\n"
        "from pathlib import Path\n"
        "from dataclasses import replace\n"
        "from engine.models.adapters.files import read_adapter, write_adapter\n"
        "path = Path(sys.argv[1])\n"
        "large = replace(read_adapter(path), tensors={'x': (torch.ones(2, 90_000), torch.ones(90_000, 2))})\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "try:\n"
        "    write_adapter(path, large)\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "a")], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.startswith(f"{EngineError.__name__} The adapter could not be written to {tmp_path / 'a'}"), done
    assert "last good one is as it was" in done.stdout
    assert same(read_adapter(tmp_path / "a"), made())
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def damaged_weights(path: Path) -> None:
    file = path / WEIGHTS_FILE
    file.write_bytes(file.read_bytes()[:-7])


def no_number(path: Path) -> None:
    adapter = made()
    adapter.tensors[LAYER][0][0, 0] = torch.nan
    write_adapter(path, adapter)


def half_a_pair(path: Path) -> None:
    from safetensors.torch import save_file

    save_file({f"base_model.model.{LAYER}.lora_A.weight": torch.ones(2, 6)}, path / WEIGHTS_FILE)


def other_shapes(path: Path) -> None:
    write_adapter(path, replace(made(), tensors={LAYER: (torch.ones(3, 6), torch.ones(5, 3))}))


def no_description(path: Path) -> None:
    (path / "dg_lsp.json").write_text('{"model": 3}')


def a_pipe(folder: Path) -> None:
    """To open one that nobody writes to takes for ever."""
    weights = folder / WEIGHTS_FILE
    weights.unlink()
    os.mkfifo(weights)


def a_later_format(path: Path) -> None:
    write_adapter(path, replace(made(), metadata=msgspec.structs.replace(METADATA, version=2)))


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (damaged_weights, "is damaged"),
        (no_number, "holds what is no number"),
        (half_a_pair, "lacks .*lora_B"),
        (other_shapes, "do not go together"),
        (no_description, "is damaged"),
        (a_later_format, "another format"),
        pytest.param(a_pipe, "no ordinary file", marks=needs_pipes),
    ],
)
def test_a_damaged_one_is_refused_in_a_sentence(tmp_path: Path, harm: Callable[[Path], None], said: str):
    write_adapter(tmp_path / "a", made())
    harm(tmp_path / "a")
    with pytest.raises(ModelError, match=said):
        read_adapter(tmp_path / "a")


def test_adapters_lie_in_the_users_folder_one_for_a_folder_and_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("DG_LSP_STATE_DIR", str(tmp_path / "state"))
    paths = {adapter_path(tmp_path / folder, weights) for folder in ("a", "b") for weights in ("x", "y")}
    assert len(paths) == 4
    assert all(path.parent == adapters_dir() == tmp_path / "state" / "adapters" for path in paths)
    assert adapter_path(tmp_path / "a", "x") == adapter_path(tmp_path / "b" / ".." / "a", "x")


@pytest.mark.parametrize("name", ["n" * 255, "日" * 85, "😋" * 63], ids=["1 byte", "3 bytes", "4 bytes"])
def test_a_folder_may_have_the_longest_name_there_is(tmp_path: Path, name: str):
    adapter = made()
    directory = tmp_path / adapter_path(tmp_path / name, "x").name
    for _ in range(2):
        write_adapter(directory, adapter)
    assert same(read_adapter(directory), adapter)


def test_other_weights_have_another_fingerprint():
    toys = Path(__file__).parents[3] / "models"
    found = [fingerprint_of(read_checkpoint(toys / name, name)) for name in ("toy-absorbing", "toy-experts")]
    assert len({*found}) == 2
    assert fingerprint_of(read_checkpoint(toys / "toy-experts", "again")) == found[1]
