"""A repository's own settings make git run nothing."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from dg_lsp.commands.files import changed_at
from dg_lsp.config.git import ignore_files, run_git
from dg_lsp.replay.generate import edited_files
from dg_lsp.replay.session import SessionError
from engine.common.errors import NotRead
from tests.dg_lsp.replay.repository import commit
from tests.engine.processes import wait_until

_FAKE_GPG = """#!/bin/sh
touch '{mark}'
case "$*" in *--verify*) exit 0;; esac
cat > /dev/null
echo '[GNUPG:] SIG_CREATED ' >&2
printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nnonsense\\n-----END PGP SIGNATURE-----\\n'
"""


@pytest.fixture
def hostile(tmp_path):
    """A repository whose settings name a command wherever git takes one, and what tells whether it was run."""
    top, mark, evil = tmp_path / "repository", tmp_path / "mark", tmp_path / "evil"
    evil.write_text(_FAKE_GPG.format(mark=mark))
    evil.chmod(evil.stat().st_mode | stat.S_IXUSR)
    top.mkdir()
    commit(top, {"a.py": "x = 1\n", ".gitattributes": "*.py diff=evil\n"})
    (top / "a.py").write_text("x = 1\ny = 2\n")
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", f"gpg.program={evil}"]
    subprocess.run(["git", "-C", top, *identity, "commit", "-q", "-S", "-a", "-m", "signed"], check=True)
    assert mark.exists()
    mark.unlink()
    for name, value in {
        "core.fsmonitor": str(evil),
        "core.pager": str(evil),
        "pager.log": str(evil),
        "core.editor": str(evil),
        "core.sshCommand": str(evil),
        "core.hooksPath": str(tmp_path / "hooks"),
        "core.askPass": str(evil),
        "credential.helper": str(evil),
        "diff.external": str(evil),
        "diff.evil.textconv": str(evil),
        "diff.evil.command": str(evil),
        "gpg.program": str(evil),
        "log.showSignature": "true",
        "alias.rev-list": f"!{evil}",
    }.items():
        subprocess.run(["git", "-C", top, "config", name, value], check=True)
    return top, mark, evil


def test_a_history_is_read_and_nothing_is_run(hostile):
    top, mark, _ = hostile
    (edited,) = edited_files(top, 1)
    assert (edited.before, edited.after) == ("x = 1\n", "x = 1\ny = 2\n")
    assert not mark.exists()


def test_a_log_is_read_and_nothing_is_run(hostile):
    top, mark, _ = hostile
    assert {*changed_at(top)} == {"a.py", ".gitattributes"}
    assert not mark.exists()


def test_no_hook_is_run(hostile, tmp_path):
    top, mark, evil = hostile
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "post-index-change").symlink_to(evil)

    def touch() -> None:
        mark.unlink(missing_ok=True)
        (top / "a.py").write_text("x = 1\ny = 2\n")
        os.utime(top / "a.py", (0, time.time()))

    touch()
    subprocess.run(["git", "-C", top, "-c", "core.fsmonitor=false", "update-index", "--refresh"], check=True)
    assert mark.exists()
    touch()
    run_git(top, "update-index", "--refresh", timeout_s=10)
    assert not mark.exists()


def test_what_a_partial_clone_lacks_is_not_fetched(hostile):
    top, mark, evil = hostile
    for name, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::{evil}",
        "protocol.ext.allow": "always",
    }.items():
        subprocess.run(["git", "-C", top, "config", name, value], check=True)
    blob = run_git(top, "rev-parse", "HEAD:a.py", timeout_s=10).stdout.decode().strip()
    (top / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(SessionError, match="git can't read"):
        edited_files(top, 1)
    assert not mark.exists()


def test_the_settings_are_read_and_nothing_is_run(hostile):
    top, mark, _ = hostile
    subprocess.run(["git", "-C", top, "config", "core.excludesFile", "mine"], check=True)
    assert ignore_files(top) == (top / ".git" / "info" / "exclude", top / "mine")
    assert not mark.exists()


def test_another_repository_of_the_environment_is_left_alone(hostile, tmp_path, monkeypatch):
    """As in an editor that git has started."""
    top, _, _ = hostile
    subprocess.run(["git", "init", "-q", tmp_path / "other"], check=True)
    subprocess.run(["git", "-C", tmp_path / "other", "config", "core.excludesFile", "theirs"], check=True)
    subprocess.run(["git", "-C", top, "config", "core.excludesFile", "mine"], check=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    assert ignore_files(top)[1] == top / "mine"
    assert {*changed_at(top)} == {"a.py", ".gitattributes"}


def test_a_git_in_the_working_directory_is_left_alone(hostile, monkeypatch):
    top, mark, evil = hostile
    evil.rename(top / "git")
    monkeypatch.chdir(top)
    monkeypatch.setenv("PATH", os.pathsep.join([".", "", os.environ["PATH"]]))
    assert run_git(top, "rev-parse", "HEAD", timeout_s=10).returncode == 0
    assert not mark.exists()
    monkeypatch.setenv("PATH", os.pathsep.join([".", ""]))
    with pytest.raises(SessionError, match=r"git can't be run \(No git is on the PATH\)"):
        edited_files(top, 1)


_ASKED = """
import sys
from pathlib import Path
import dg_lsp.config.git as git

git.ignore_files(Path(sys.argv[1]))
"""


def cloned(tmp_path: Path) -> Path:
    (top := tmp_path / "repository").mkdir()
    commit(top, {"a.py": "x = 1\n"})
    return top


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("name", ["config", "HEAD", "commondir"])
def test_a_repository_whose_settings_are_a_pipe_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    top = cloned(tmp_path)
    monkeypatch.setattr(subprocess, "Popen", lambda *arguments, **options: pytest.fail("git was asked"))
    (top / ".git" / name).unlink(missing_ok=True)
    os.mkfifo(top / ".git" / name)
    with pytest.raises(NotRead):
        ignore_files(top)


@pytest.mark.skipif(not hasattr(os, "mkfifo") or not shutil.which("timeout"), reason="needs named pipes and coreutils")
def test_a_git_that_hangs_ends_in_time_though_its_window_is_gone(tmp_path: Path):
    """Whatever it hangs at: what its settings include, say."""
    top = cloned(tmp_path)
    os.mkfifo(tmp_path / "included")
    with (top / ".git" / "config").open("a") as config:
        config.write(f"[include]\n\tpath = {tmp_path / 'included'}\n")
    with subprocess.Popen([sys.executable, "-c", _ASKED, str(top)]) as window:

        def left() -> list[psutil.Process]:
            return [each for each in psutil.process_iter(["cmdline"]) if str(top) in (each.info["cmdline"] or ())[3:]]

        wait_until(left, "git")
        window.kill()
        window.wait()
        wait_until(lambda: not left(), "the end of git", timeout_s=20)
