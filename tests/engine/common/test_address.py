"""What an engine leaves behind for its clients, and whose it is."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.common.address import Claim


@pytest.fixture(params=["unix", "tcp"])
def address(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # Not pytest's own folder, whose path may be longer than a socket's may be.
    with tempfile.TemporaryDirectory(prefix="dg-") as folder:
        monkeypatch.setenv("DG_LSP_RUNTIME_DIR", f"{folder}/run")
        monkeypatch.setenv("DG_LSP_TRANSPORT", request.param)
        path = Path(folder, "run", "engine.json" if request.param == "tcp" else "engine.sock")
        make(path)
        yield path


def claimed() -> Claim:
    claim = Claim()
    claim.settle()
    return claim


def make(address: Path) -> None:
    address.parent.mkdir()
    for name in ("engine.lock", address.name):
        (address.parent / name).touch()


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.touch()
    other.replace(path)


def test_an_engine_removes_its_own_address(address: Path):
    claim = claimed()
    assert claim.holds()
    claim.forget()
    assert not address.exists()
    assert not claim.holds()
    claim.forget()


@pytest.mark.parametrize("name", ["engine.lock", ""])
def test_where_lock_or_address_is_anothers_the_address_is_left_alone(address: Path, name: str):
    claim = claimed()
    replace(address.parent / (name or address.name))
    assert not claim.holds()
    claim.forget()
    assert address.exists()


def test_a_folder_that_was_made_anew_is_anothers_whatever_numbers_its_files_have(address: Path):
    with (address.parent / "engine.lock").open():
        claim = claimed()
        shutil.rmtree(address.parent)
        assert not claim.holds()
        make(address)
        assert not claim.holds()
        claim.forget()
    assert address.exists()


def test_an_engine_that_is_overtaken_while_it_begins_to_listen_has_nothing(address: Path):
    """Whoever connects may stop it before it has looked at its own address."""
    with (address.parent / "engine.lock").open():
        claim = Claim()
        shutil.rmtree(address.parent)
        make(address)
        claim.settle()
        assert not claim.holds()
        claim.forget()
    assert address.exists()


def test_what_can_not_be_looked_at_is_left_alone(address: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise PermissionError

    claim = claimed()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", fail)
        with pytest.raises(PermissionError):
            claim.holds()
        claim.forget()
    assert claim.holds()
