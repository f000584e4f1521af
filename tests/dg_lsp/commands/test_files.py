"""`dg-lsp files`: what may be shown to the model, and when it last changed."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dg_lsp.cli import run
from dg_lsp.commands.files import changed_at, commit_of
from dg_lsp.config import walking

DAY_S = 86_400
EARLY = int(time.time()) - 60 * DAY_S
LATE = EARLY + 31 * DAY_S


def git(folder: Path, *arguments: str, date: int = EARLY) -> None:
    environment = {
        **os.environ,
        "GIT_AUTHOR_DATE": f"{date} +0000",
        "GIT_COMMITTER_DATE": f"{date} +0000",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    named = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    subprocess.run(["git", "-C", str(folder), *named, *arguments], check=True, env=environment, capture_output=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = ("a.py", "inner/b c.py", "inner/😋.py", ".env", "id_rsa", "out/made.py", ".gitignore", ".git2/x.py")
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("out/\n" if name == ".gitignore" else "x = 1\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "a.py", "inner")
    git(tmp_path, "commit", "-qm", "First")
    (tmp_path / "a.py").write_text("x = 2\n")
    git(tmp_path, "commit", "-qam", "Second", date=LATE)
    return tmp_path


def test_what_is_excluded_is_not_listed(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["files", str(folder)]) == 0
    assert capsys.readouterr().out.splitlines() == ["a.py", "inner/b c.py", "inner/😋.py"]


def test_an_ignore_file_that_can_not_be_heeded_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "a.py").touch()
    (tmp_path / ".gitignore").write_text("a\n" * 5_000)
    assert run(["files", str(tmp_path)]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert ".gitignore has more than 4000 patterns: no file that it applies to is listed." in told.err
    assert len(told.err.splitlines()) == 1
    assert run(["files", str(tmp_path), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["unheeded"]) == 1


def test_a_folder_is_read_no_further_than_the_bound(tmp_path: Path, capsys, monkeypatch):
    monkeypatch.setattr(walking, "MAX_ENTRIES", 3)
    for number in range(9):
        (tmp_path / f"{number}.py").touch()
    assert run(["files", str(tmp_path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name is text")
def test_names_are_printed_as_they_are(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]):
    (tmp_path / os.fsdecode(b"\xe9.py")).touch()
    assert run(["files", str(tmp_path)]) == 0
    assert capsysbinary.readouterr().out == b"\xe9.py\n"


def test_it_tells_commit_and_last_changes(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["files", str(folder), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["folder"], len(said["commit"])) == (str(folder.resolve()), 40)
    changed = {each["path"]: each["changed"] for each in said["files"]}
    assert changed["a.py"] - changed["inner/b c.py"] == LATE - EARLY
    assert changed["inner/😋.py"] == changed["inner/b c.py"]


def test_paths_begin_at_the_folder(folder: Path):
    assert {*changed_at(folder / "inner")} == {"b c.py", "😋.py"}


@pytest.mark.skipif(sys.platform == "win32", reason="there a name holds no such characters")
def test_a_name_may_hold_whatever_a_system_takes(folder: Path, capsys: pytest.CaptureFixture[str]):
    names = ("\x01name.py", "\x011.py", "\nline.py", "two\nlines.py", "12")
    for name in names:
        (folder / name).touch()
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Third", date=LATE + DAY_S)
    git(folder, "commit", "-qm", "Fourth", "--allow-empty", date=LATE + 2 * DAY_S)
    assert run(["files", str(folder), "--json"]) == 0
    changed = {each["path"]: each["changed"] for each in json.loads(capsys.readouterr().out)["files"]}
    assert changed == dict.fromkeys(names, LATE + DAY_S) | {
        "a.py": LATE,
        "inner/b c.py": EARLY,
        "inner/😋.py": EARLY,
    }


def test_without_git_nobody_knows(tmp_path: Path):
    (tmp_path / "code").mkdir()
    assert commit_of(tmp_path / "code") is None
    assert changed_at(tmp_path / "code") == {}


@pytest.mark.skipif(os.name == "nt", reason="where somebody stands can't be removed there")
def test_a_folder_that_is_gone_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    assert run(["files"]) == 2
    assert "name a folder with code in it" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["nowhere", "n" * 300])
def test_what_is_no_folder_is_refused(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]):
    assert run(["files", str(tmp_path / name)]) == 2
    assert "is no folder: name one with code in it" in capsys.readouterr().err
