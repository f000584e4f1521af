"""Where a key comes from."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from engine.common.credentials import SERVER_KEY, read_key
from engine.common.errors import BadInput


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SERVER_KEY, raising=False)


def test_a_key_comes_from_the_environment_else_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "key"
    file.write_text("of-the-file\n")
    file.chmod(0o600)
    assert read_key(SERVER_KEY, "") == ""
    assert read_key(SERVER_KEY, str(file)) == "of-the-file"
    monkeypatch.setenv(SERVER_KEY, "of-the-environment")
    assert read_key(SERVER_KEY, str(file)) == "of-the-environment"


@pytest.mark.skipif(sys.platform == "win32", reason="files have no such modes there")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int):
    file = tmp_path / "key"
    file.write_text("secret")
    file.chmod(mode)
    with pytest.raises(BadInput, match="can be read by others: run `chmod 600") as caught:
        read_key(SERVER_KEY, str(file))
    assert "secret" not in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_pipe_holds_nobody_up(tmp_path: Path):
    os.mkfifo(tmp_path / "key", 0o600)
    with pytest.raises(BadInput, match="no ordinary file"):
        read_key(SERVER_KEY, str(tmp_path / "key"))


@pytest.mark.parametrize("content", ["", " \n", "two words", "line\nbreak", "k\xe4y"])
def test_what_is_no_key_is_refused(tmp_path: Path, content: str):
    file = tmp_path / "key"
    file.write_text(content)
    file.chmod(0o600)
    with pytest.raises(BadInput, match="write the"):
        read_key(SERVER_KEY, str(file))
    with pytest.raises(BadInput, match="can't be read"):
        read_key(SERVER_KEY, str(tmp_path / "none"))
