"""What people install holds what they need and nothing else."""

import tarfile
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[1]
MAX_NBYTES = 60_000_000


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    return Path(path)


def in_tree(*packages: str) -> set[str]:
    files = (file for package in packages for file in (ROOT / package).rglob("*") if file.is_file())
    kept = (file for file in files if "__pycache__" not in file.parts)
    return {str(file.relative_to(ROOT)) for file in kept}


def test_the_wheel_is_the_two_packages_with_all_their_files(wheel: Path):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == in_tree("dg_lsp", "engine")
    assert {"dg_lsp/py.typed", "engine/py.typed"} <= names


def test_the_wheel_brings_the_command_and_the_licence(wheel: Path):
    archive = zipfile.ZipFile(wheel)
    (entry_points,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
    assert "dg-lsp = dg_lsp.__main__:main" in archive.read(entry_points).decode()
    assert any(name.endswith("licenses/LICENSE") for name in archive.namelist())


def test_the_wheel_is_small_enough_to_download(wheel: Path):
    assert wheel.stat().st_size < MAX_NBYTES


def test_the_sources_can_be_tested(tmp_path: Path):
    (path,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "Makefile",
        "tests/test_packaging.py",
        "engine/fill/loading.py",
    } <= names
    unwanted = (".venv", ".git/", ".ci", "dist")
    assert not {name for name in names if name.startswith(unwanted)}
