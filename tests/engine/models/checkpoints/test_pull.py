import dataclasses
import json
import re
import shutil
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from huggingface_hub import constants

from dg_lsp.cli import run
from engine.common.errors import EngineError, ModelError
from engine.common.sizes import decimal_bytes
from engine.models.checkpoints import fetching
from engine.models.checkpoints.catalog import find, hub_folder
from engine.models.checkpoints.checkpoint import read_checkpoint
from engine.models.checkpoints.pull import plan_pull, pull
from tests.engine.coder import write_coder, write_parts
from tests.engine.hub import Hub, serve_hub

HUB_ID = "someone/tiny"
FIRST_SHARD = "model-00001-of-00007.safetensors"


@pytest.fixture
def hub(changeable: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Hub]:
    """A Hub with the tiny model, and an empty cache."""
    with serve_hub(changeable, HUB_ID) as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "home" / "cache"))
        yield hub


def shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def test_a_model_is_downloaded_and_then_found_by_its_id(hub: Hub, capsys: pytest.CaptureFixture[str]):
    assert run(["pull", HUB_ID]) == 0
    checkpoint = find(HUB_ID)
    assert [file.read_bytes() for file in shards(checkpoint.path)] == [file.read_bytes() for file in shards(hub.folder)]
    out = capsys.readouterr().out
    assert re.search(r"someone/tiny: \d+\.\d kB to download, \d+\.\d GB of disk free; about 0\.3 MiB of memory", out)
    assert "Ready: dg-lsp fill FILE --at LINE:COL --model someone/tiny" in out


def test_only_weights_settings_and_tokenizer_are_downloaded(hub: Hub):
    for name in ("pytorch_model.bin", "modeling_custom.py", "README.md", "picture.png"):
        (hub.folder / name).write_bytes(b"x")
    pull(plan_pull(HUB_ID))
    assert {Path(name).suffix for name in hub.downloads} == {".safetensors", ".json", ".jinja"}


def test_a_second_pull_downloads_nothing(hub: Hub):
    pull(plan_pull(HUB_ID))
    hub.downloads.clear()
    plan = plan_pull(HUB_ID)
    pull(plan)
    assert plan.download_nbytes == 0
    assert not hub.downloads


def test_a_broken_connection_is_taken_up_where_it_broke(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 2)  # a part of a chunk is not kept
    shard = max(shards(hub.folder), key=lambda file: file.stat().st_size)
    hub.cut_once.add(shard.name)
    checkpoint = pull(plan_pull(HUB_ID))
    assert hub.ranges == [f"{shard.name} bytes={shard.stat().st_size // 2}-"]
    assert (checkpoint.path / shard.name).read_bytes() == shard.read_bytes()


def test_an_interrupted_pull_keeps_finished_files(hub: Hub, capsys: pytest.CaptureFixture[str]):
    last = shards(hub.folder)[-1].name
    hub.broken.add(last)
    assert run(["pull", HUB_ID]) == 1
    assert "The Hub refused someone/tiny (status 500): try again later." in capsys.readouterr().err
    hub.broken.clear()
    hub.downloads.clear()
    plan = plan_pull(HUB_ID)
    assert plan.download_nbytes < sum(file.stat().st_size for file in shards(hub.folder))
    pull(plan)
    assert FIRST_SHARD not in hub.downloads
    assert last in hub.downloads


def test_too_small_a_disk_is_noticed_before_the_download(hub: Hub):
    plan = dataclasses.replace(plan_pull(HUB_ID), download_nbytes=52_000_000_000, free_nbytes=20_000_000_000)
    with pytest.raises(
        EngineError,
        match=r"someone/tiny needs 53\.1 GB of disk, and .*cache has 20\.0 GB: free some, or set HF_HUB_CACHE",
    ):
        pull(plan)
    assert not hub.downloads


def check_refused(capsys: pytest.CaptureFixture[str], hub_id: str, code: int, message: str) -> None:
    assert run(["pull", hub_id]) == code
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_pickle_weights_are_refused(hub: Hub, capsys: pytest.CaptureFixture[str]):
    for file in shards(hub.folder):
        file.rename(file.with_suffix(".bin"))
    check_refused(capsys, HUB_ID, 2, "someone/tiny has neither safetensors nor GGUF, and pickle weights can run")


def test_weights_that_can_not_be_read_are_not_downloaded(hub: Hub, capsys: pytest.CaptureFixture[str]):
    config = hub.folder / "config.json"
    quantization = {"quant_method": "modelopt", "quant_algo": "FP8"}
    config.write_text(json.dumps({**json.loads(config.read_text()), "quantization_config": quantization}))
    check_refused(capsys, HUB_ID, 2, "The weights of someone/tiny are quantized as modelopt with quant_algo 'FP8'")
    assert set(hub.downloads) == {"config.json"}


def test_a_gguf_is_pulled_by_its_repository_and_found_by_the_same_name(hub: Hub, capsys: pytest.CaptureFixture[str]):
    for file in hub.folder.iterdir():
        file.unlink()
    (hub.folder / "config.json").write_text("{}")
    for kind, seed in (("q4_k_m", 1), ("q8_0", 2), ("f16", 3)):
        write_coder(hub.folder / f"tiny-{kind}.gguf", seed=seed)
    with pytest.raises(ModelError, match="not in the local Hugging Face cache: run `dg-lsp pull someone/tiny:q8_0`"):
        find(f"{HUB_ID}:q8_0")
    assert run(["pull", f"{HUB_ID}:q8_0"]) == 0
    assert set(hub.downloads) == {"tiny-q8_0.gguf"}
    assert find(f"{HUB_ID}:q8_0").path.name == "tiny-q8_0.gguf"
    assert run(["pull", HUB_ID]) == 0
    assert find(HUB_ID).path.name == "tiny-q4_k_m.gguf"
    capsys.readouterr()
    check_refused(capsys, f"{HUB_ID}:q2_k", 2, "someone/tiny has no GGUF q2_k (it has: f16, q4_k_m, q8_0): name one")


@pytest.fixture
def gguf(hub: Hub) -> str:
    """A Hub with one GGUF; its name."""
    for file in hub.folder.iterdir():
        file.unlink()
    (hub.folder / "config.json").write_text("{}")
    return write_coder(hub.folder / "tiny-q8_0.gguf").name


def blobs() -> list[Path]:
    return list((hub_folder(HUB_ID) / "blobs").glob("*"))


def test_a_gguf_goes_on_where_its_download_broke_off(hub: Hub, gguf: str, capsys: pytest.CaptureFixture[str]):
    nbytes = (hub.folder / gguf).stat().st_size
    hub.cut_once.add(gguf)
    assert run(["pull", HUB_ID]) == 1
    assert "The connection broke off: run the same command again" in capsys.readouterr().err
    assert plan_pull(HUB_ID).download_nbytes == nbytes - nbytes // 2
    hub.ranges.clear()
    assert run(["pull", HUB_ID]) == 0
    assert f"100% of {decimal_bytes(nbytes)}" in capsys.readouterr().err
    assert hub.ranges == [f"{gguf} bytes={nbytes // 2}-"]
    assert find(HUB_ID).path.read_bytes() == (hub.folder / gguf).read_bytes()
    assert [blob.suffix for blob in blobs()] == [""]


def test_ctrl_c_keeps_the_part_of_a_gguf(hub: Hub, gguf: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fetching, "_BLOCK", 10_000)

    def stop(nbytes: int) -> None:
        if nbytes >= 20_000:
            raise KeyboardInterrupt

    plan = plan_pull(HUB_ID)
    with pytest.raises(KeyboardInterrupt):
        pull(plan, stop)
    assert plan_pull(HUB_ID).download_nbytes == plan.download_nbytes - 20_000
    assert pull(plan_pull(HUB_ID)).path.name == gguf


def test_a_gguf_with_other_bytes_is_not_kept(hub: Hub, gguf: str, capsys: pytest.CaptureFixture[str]):
    hub.headers = {"ETag": f'"{"0" * 64}"'}
    assert run(["pull", HUB_ID]) == 2
    assert f"What came is not the published {gguf} (SHA-256 " in capsys.readouterr().err
    assert not blobs()


@pytest.mark.parametrize("sends_parts", [True, False])
@pytest.mark.parametrize("architecture", ["mamba", "qwen2"])
def test_a_gguf_that_can_not_be_run_is_refused_by_its_header(
    hub: Hub, gguf: str, architecture: str, sends_parts: bool, capsys: pytest.CaptureFixture[str]
):
    file = hub.folder / gguf
    if architecture == "qwen2":
        write_coder(file, markers=("<|endoftext|>",))
    else:
        file.write_bytes(file.read_bytes().replace(b"qwen2", architecture.encode()))
    with pytest.raises(ModelError) as opened:
        read_checkpoint(file, HUB_ID)
    hub.sends_parts = sends_parts
    assert run(["pull", HUB_ID]) == 2
    assert str(opened.value) in capsys.readouterr().err
    assert bool(blobs()) is not sends_parts
    assert len(hub.ranges) == sends_parts


def test_a_gguf_in_parts_is_pulled_whole_after_a_look_at_each(hub: Hub, gguf: str, capsys: pytest.CaptureFixture[str]):
    whole = hub.folder / gguf
    parts = [hub.folder / f"{whole.stem}-0000{number}-of-00002.gguf" for number in (1, 2)]
    write_parts(whole, parts)
    whole.unlink()
    hub.cut_once.add(parts[1].name)
    assert run(["pull", HUB_ID]) == 1
    assert run(["pull", HUB_ID]) == 0
    assert "100% of" in capsys.readouterr().err
    looked_at, (resumed,) = hub.ranges[:2], hub.ranges[2:]
    assert [each.split()[0] for each in looked_at] == [part.name for part in parts]
    assert resumed == f"{parts[1].name} bytes={parts[1].stat().st_size // 2}-"
    assert len(find(HUB_ID).tensors) == 26


def test_another_family_is_refused(hub: Hub, capsys: pytest.CaptureFixture[str]):
    (hub.folder / "config.json").write_text(json.dumps({"model_type": "mamba"}))
    check_refused(capsys, HUB_ID, 2, "someone/tiny is a model of type 'mamba': dg-lsp runs diffusion_gemma")


def test_an_unknown_model_is_refused(hub: Hub, capsys: pytest.CaptureFixture[str]):
    check_refused(capsys, "someone/else", 2, "The Hub has no model someone/else that you may see")


def test_a_gated_model_says_where_to_ask(hub: Hub, capsys: pytest.CaptureFixture[str]):
    hub.refusal = (403, "GatedRepo")
    check_refused(capsys, HUB_ID, 2, "someone/tiny asks you to accept its terms")


@pytest.mark.parametrize("name", ["bundled", "foo/bar.git", "a--b/c", "a/b..c", "é/b"])
def test_what_is_no_hub_id_is_refused(hub: Hub, name: str, capsys: pytest.CaptureFixture[str]):
    check_refused(capsys, name, 2, f"{name!r} is no Hub id: give OWNER/MODEL, or coder-1.5b or")


def test_no_network_is_one_line(hub: Hub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    check_refused(capsys, HUB_ID, 1, "The Hub can't be reached (ConnectError): check the network and try again.")


@pytest.mark.skipif(sys.platform == "win32", reason="says it in other words")
def test_a_cache_that_can_not_be_used_is_a_sentence(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "file").touch()
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "file"))
    check_refused(capsys, HUB_ID, 1, "file/models--someone--tiny can't be written to (")
    assert run(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "bundled" in lines
    assert f"The cache {tmp_path / 'file'} can't be read (it is no folder)" in "".join(lines)


def test_the_cache_is_listed(hub: Hub, changeable: Path, capsys: pytest.CaptureFixture[str]):
    pull(plan_pull(HUB_ID))
    other = Path(constants.HF_HUB_CACHE) / "models--other--kind"
    shutil.copytree(Path(constants.HF_HUB_CACHE) / "models--someone--tiny", other, symlinks=True)
    for config in other.glob("snapshots/*/config.json"):
        config.unlink()
        config.write_text(json.dumps({"model_type": "mamba"}))
    assert run(["models"]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    size = decimal_bytes(sum(file.stat().st_size for file in shards(changeable)))
    about = f"    cache, {size}, 0.1 M parameters"
    assert lines[lines.index("someone/tiny") + 1] == about
    assert "1 more in the cache are incomplete or of unsupported families." in out


@pytest.mark.skipif(sys.platform == "win32", reason="needs names that Windows has not")
def test_a_name_in_the_listing_widens_nothing(hub: Hub):
    (hub.folder / "inner").mkdir()
    for name in ("*.json", "[!x]*", "inner/other.json", "inner/huge.safetensors"):
        (hub.folder / name).write_text("{}")
    pull(plan_pull(HUB_ID))
    expected = set(plan_pull(HUB_ID).files)
    assert set(hub.downloads) == expected
    assert not any(name in expected for name in ("*.json", "[!x]*", "inner/other.json", "inner/huge.safetensors"))


OUTSIDE = "../../../../outside"


@pytest.mark.parametrize(
    "headers",
    [
        {"ETag": f'"{OUTSIDE}"'},
        {"ETag": OUTSIDE},
        {"X-Linked-ETag": f'"{OUTSIDE}"'},
        {"X-Repo-Commit": OUTSIDE},
    ],
)
def test_an_endpoint_chooses_no_path(
    hub: Hub, headers: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    hub.headers = headers
    check_refused(capsys, HUB_ID, 1, f"The endpoint {hub.url} answers with a ")
    assert not list(tmp_path.rglob("outside*"))
    assert not hub.downloads


def test_a_commit_that_is_none_is_refused(hub: Hub, capsys: pytest.CaptureFixture[str]):
    hub.commit = "../../outside"
    check_refused(capsys, HUB_ID, 1, f"The endpoint {hub.url} answers with a ")


def test_a_model_that_changes_meanwhile_is_not_mixed(hub: Hub):
    plan = plan_pull(HUB_ID)
    hub.commit = "d" * 40
    with pytest.raises(EngineError, match="someone/tiny changed on the Hub meanwhile: run `dg-lsp pull someone/tiny`"):
        pull(plan)
