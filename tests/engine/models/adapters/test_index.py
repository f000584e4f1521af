"""Which adapter serves which folder, whatever lies where adapters are kept, and what happens to it meanwhile."""

import logging
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.fill.loading import load
from engine.models.adapters import index
from engine.models.adapters.files import WEIGHTS_FILE
from engine.models.adapters.index import MOST_LOADED, Adapters
from engine.models.adapters.metadata import adapter_path, adapters_dir, remove_adapter
from engine.models.checkpoints.directory import METADATA_FILE
from engine.models.oracle.model import Case, Oracle
from tests.engine.adapters import put_adapter

TOY = Path(__file__).parents[3] / "models" / "toy-uniform"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DG_LSP_STATE_DIR", str(tmp_path / "data"))
    assert adapters_dir().is_relative_to(tmp_path)
    return tmp_path


@pytest.fixture
def model(data: Path) -> Any:
    return load(str(TOY), "cpu").model


def folder(data: Path, name: str) -> Path:
    made = data / "code" / name
    made.mkdir(parents=True, exist_ok=True)
    return made


def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_SETTLES_NS", 0)


def serves(adapters: Adapters, at: Path) -> str:
    return adapters.model_for(str(at)).info.adapter


def test_the_nearest_folder_above_serves(data: Path, model: Any):
    outer, inner, other = folder(data, "repo"), folder(data, "repo/part"), folder(data, "repository")
    put_adapter(model, outer, seed=1)
    put_adapter(model, inner, seed=2)
    adapters = Adapters(model)
    assert serves(adapters, outer) == serves(adapters, folder(data, "repo/docs/deep")) == str(outer)
    assert serves(adapters, inner) == serves(adapters, folder(data, "repo/part/deep")) == str(inner)
    assert serves(adapters, other) == serves(adapters, data) == ""
    assert adapters.model_for("") is model
    assert {each.folder for each in adapters.used} == {str(outer), str(inner)}
    assert not any(each.trouble for each in adapters.used)


def test_a_link_to_a_folder_is_that_folder(data: Path, model: Any):
    real = folder(data, "real")
    put_adapter(model, real)
    (data / "link").symlink_to(real)
    assert serves(Adapters(model), data / "link") == str(real)


def test_what_no_folder_can_be_has_none(data: Path, model: Any):
    put_adapter(model, folder(data, "a"))
    loop = data / "loop"
    loop.symlink_to(loop)
    assert [serves(Adapters(model), at) for at in (loop, Path("/a\0b"), Path("a" * 5000))] == ["", "", ""]


def test_one_is_read_once_and_again_when_it_was_trained_again(data: Path, model: Any, monkeypatch: pytest.MonkeyPatch):
    settled(monkeypatch)
    repo = folder(data, "repo")
    put_adapter(model, repo, seed=1)
    adapters = Adapters(model)
    first = adapters.model_for(str(repo))
    assert adapters.model_for(str(repo)) is first
    put_adapter(model, folder(data, "elsewhere"), seed=1)
    assert adapters.model_for(str(repo)) is first, "another one is no reason to read it again"
    put_adapter(model, repo, seed=2, created=2.5)
    second = adapters.model_for(str(repo))
    assert second is not first
    assert second.info.adapter == str(repo)
    assert first not in adapters.models


def test_what_was_written_a_moment_ago_is_seen_though_the_time_is_the_same(data: Path, model: Any):
    repo = folder(data, "repo")
    adapters = Adapters(model)
    for name in "abc":
        put_adapter(model, folder(data, name))
        stamp = adapters_dir().stat().st_mtime_ns
        assert serves(adapters, repo) == ""
        put_adapter(model, repo)
        os.utime(adapters_dir(), ns=(stamp, stamp))
        assert serves(adapters, repo) == str(repo)
        remove_adapter(adapter_path(repo, model.info.fingerprint))
        assert serves(adapters, repo) == ""


def test_one_that_is_off_or_gone_is_used_no_more(data: Path, model: Any, monkeypatch: pytest.MonkeyPatch):
    settled(monkeypatch)
    repo = folder(data, "repo")
    directory = put_adapter(model, repo)
    adapters = Adapters(model)
    assert serves(adapters, repo)
    put_adapter(model, repo, on=False)
    assert serves(adapters, repo) == ""
    assert adapters.models == (model,)
    put_adapter(model, repo)
    assert serves(adapters, repo)
    remove_adapter(directory)
    assert serves(adapters, repo) == ""
    assert not adapters.used


def test_one_that_was_being_replaced_when_the_power_went_serves(data: Path, model: Any):
    repo = folder(data, "repo")
    directory = put_adapter(model, repo)
    directory.rename(directory.with_name(f"{directory.name}.old"))
    directory.with_name(f"{directory.name}.new").mkdir()
    assert serves(Adapters(model), repo) == str(repo)


def test_one_of_other_weights_is_off_and_that_is_said_once(data: Path, model: Any, caplog: pytest.LogCaptureFixture):
    repo = folder(data, "repo")
    put_adapter(model, repo, fingerprint="0" * 16)
    adapters = Adapters(model)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert serves(adapters, repo) == ""
    (used,) = adapters.used
    assert used.folder == str(repo)
    assert f"dg-lsp tune {repo}" in used.trouble
    assert len(caplog.records) == 1


def test_one_of_another_model_is_no_trouble(data: Path, model: Any):
    repo = folder(data, "repo")
    put_adapter(model, repo, fingerprint="0" * 16, model="another")
    adapters = Adapters(model)
    assert serves(adapters, repo) == ""
    assert not adapters.used


@pytest.mark.parametrize("file", [METADATA_FILE, WEIGHTS_FILE])
@pytest.mark.parametrize("damage", [b"", b"{}", b"\0" * 100, None])
def test_a_damaged_one_costs_no_answer_and_is_named(data: Path, model: Any, file: str, damage: bytes | None):
    repo, well = folder(data, "repo"), folder(data, "well")
    directory = put_adapter(model, repo)
    put_adapter(model, well)
    if damage is None:
        (directory / file).unlink()
    else:
        (directory / file).write_bytes(damage)
    adapters = Adapters(model)
    for _ in range(2):
        assert serves(adapters, repo) == ""
        assert serves(adapters, well) == str(well)
    (trouble,) = (each.trouble for each in adapters.used if each.trouble)
    assert str(directory) in trouble


def test_one_for_other_layers_costs_no_answer(data: Path, model: Any):
    repo = folder(data, "repo")
    directory = put_adapter(model, repo)
    other = put_adapter(load(str(TOY.parent / "toy-masked"), "cpu").model, folder(data, "other"))
    shutil.copy(other / WEIGHTS_FILE, directory / WEIGHTS_FILE)
    adapters = Adapters(model)
    assert serves(adapters, repo) == ""
    assert "train it again" in adapters.used[0].trouble


def test_memory_that_is_short_costs_no_answer(data: Path, model: Any, monkeypatch: pytest.MonkeyPatch):
    def short(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    repo = folder(data, "repo")
    put_adapter(model, repo)
    adapters = Adapters(model)
    with monkeypatch.context() as patch:
        patch.setattr(index, "with_adapter", short)
        assert serves(adapters, repo) == ""
    assert "no memory" in adapters.used[0].trouble
    # Not at each key, but others may well be done with it in a while.
    assert serves(adapters, repo) == ""
    now_s = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now_s + index.SHORT_S)
    assert serves(adapters, repo) == str(repo)
    assert adapters.used[0].trouble == ""


def test_few_are_in_memory_at_once(data: Path, model: Any):
    folders = [folder(data, f"repo{number}") for number in range(MOST_LOADED + 2)]
    for seed, each in enumerate(folders):
        put_adapter(model, each, seed=seed)
    adapters = Adapters(model)
    for each in folders:
        assert serves(adapters, each) == str(each)
    assert [each.info.adapter for each in adapters.models] == ["", *map(str, folders[-MOST_LOADED:])]
    assert serves(adapters, folders[0]) == str(folders[0])
    adapters.drop()
    assert adapters.models == (model,)
    assert serves(adapters, folders[0]) == str(folders[0])


def test_one_that_a_repository_brings_is_never_read(data: Path, model: Any, monkeypatch: pytest.MonkeyPatch):
    repo = folder(data, "repo")
    put_adapter(model, repo)
    for place in ("adapters", ".dg-lsp/adapters", ".local/share/dg-lsp/adapters"):
        shutil.copytree(adapters_dir(), repo / place)
    shutil.rmtree(adapters_dir())
    monkeypatch.chdir(repo)
    adapters = Adapters(model)
    assert serves(adapters, repo) == serves(adapters, repo / "adapters") == ""
    assert not adapters.used


def test_a_model_without_weights_of_its_own_has_none(data: Path):
    oracle = Oracle("oracle", [Case(text="x = ▮1▮\n")])
    assert Adapters(oracle).model_for(str(data)) is oracle
