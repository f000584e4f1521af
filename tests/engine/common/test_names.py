from pathlib import Path

import pytest

from engine.common.names import rooted


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("m", "bundled", "owner/m"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "oracle.json").write_text("{}")
    return tmp_path


@pytest.mark.parametrize("name", ["m", "./m", "m/", "owner/m", "../{}/m"])
def test_a_folder_has_its_whole_path(folder: Path, name: str):
    name = name.format(folder.name)
    whole = Path(rooted(name, folder))
    assert whole.is_absolute()
    assert whole.samefile(folder / name)


def test_the_file_of_an_oracle_has_its_whole_path(folder: Path):
    assert rooted("oracle:oracle.json", folder) == f"oracle:{folder}/oracle.json"


@pytest.mark.parametrize(
    "name",
    ["", "bundled", "other/m", "oracle.json", "~/m", "oracle:none.json", "oracle:", "/m/", "m" * 300, "m\0"],
    ids=lambda name: repr(name[:20]),
)
def test_all_else_stays_as_it_is(folder: Path, name: str):
    assert rooted(name, folder) == name
