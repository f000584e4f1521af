import shutil
from pathlib import Path

import pytest

from dg_lsp.cli import run
from engine.common.errors import ModelError
from engine.models.checkpoints import catalog
from engine.models.checkpoints.catalog import find


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))


def test_bundled_is_listed_and_found(
    changeable: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(catalog, "BUNDLED_PATH", changeable)
    assert find("bundled").path == changeable
    assert run(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[lines.index("bundled") + 1].startswith("    package, ")
    assert lines[lines.index("bundled") + 1].endswith(" parameters")


def test_a_package_that_lost_its_model_says_so_and_lists_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(catalog, "BUNDLED_PATH", tmp_path / "nowhere")
    message = "The bundled model is missing from this installation: install dg-lsp again."
    with pytest.raises(ModelError, match=message):
        find("bundled")
    assert run(["models"]) == 0
    assert message in capsys.readouterr().err


def test_a_directory_goes_before_a_hub_id(changeable: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(changeable.parent)
    shutil.copytree(changeable, "owner/model")
    assert find("owner/model").path == Path("owner/model")


def test_a_home_directory_is_understood(changeable: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(changeable.parent))
    assert find("~/model").path == changeable


@pytest.mark.parametrize("name", ["", "nonsense", "a/b/c", "../nothing", "/no/such", "owner/", "/model", "a" * 300])
def test_what_names_nothing_is_refused(name: str):
    with pytest.raises(ModelError, match="There is no model"):
        find(name)
