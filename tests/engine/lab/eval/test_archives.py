import io
import stat
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from engine.common.errors import BadInput
from engine.lab.eval.archives import run_client, unpack


def wheel(path: Path, *names: str, link: bool = False) -> Path:
    with zipfile.ZipFile(path, "w") as opened:
        for name in names:
            member = zipfile.ZipInfo(name)
            member.external_attr = ((stat.S_IFLNK if link else stat.S_IFREG) | 0o644) << 16
            opened.writestr(member, "x = 1\n")
    return path


def tarball(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as opened:
        for member in members:
            member.size = 6 if member.isreg() else 0
            opened.addfile(member, io.BytesIO(b"x = 1\n") if member.isreg() else None)
    return path


def link(name: str, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, "/etc/passwd"
    return member


def test_only_the_wanted_files_are_written(tmp_path: Path):
    unpack(wheel(tmp_path / "a.whl", "a/b.py", "a/c.so"), tmp_path / "wheel", (".py",))
    unpack(tarball(tmp_path / "a.tgz", tarfile.TarInfo("package/b.py")), tmp_path / "tarball", (".py",))
    files = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*") if path.parent != tmp_path}
    assert files == {"wheel/a/b.py", "tarball/package/b.py"}


@pytest.mark.parametrize("name", ["../out.py", "a/../../out.py", "/out.py", "a\\..\\..\\out.py", "C:/out.py"])
def test_a_member_that_leads_out_is_refused_before_anything_is_written(tmp_path: Path, name: str):
    for archive in (
        wheel(tmp_path / "a.whl", "fine.py", name),
        tarball(tmp_path / "a.tgz", tarfile.TarInfo("fine.py"), tarfile.TarInfo(name)),
    ):
        with pytest.raises(BadInput, match="leads out of its folder"):
            unpack(archive, tmp_path / "inside", (".py",))
    assert not (tmp_path / "inside").exists()
    assert not (tmp_path / "out.py").exists()


def test_links_are_refused(tmp_path: Path):
    for archive in (
        wheel(tmp_path / "a.whl", "a.py", link=True),
        tarball(tmp_path / "a.tgz", link("a.py", tarfile.SYMTYPE)),
        tarball(tmp_path / "b.tgz", link("a.py", tarfile.LNKTYPE)),
        tarball(tmp_path / "c.tgz", link("a.py", tarfile.CHRTYPE)),
    ):
        with pytest.raises(BadInput, match="is a link"):
            unpack(archive, tmp_path / "inside", (".py",))
    assert not (tmp_path / "inside").exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            [sys.executable, "-c", "import sys; sys.exit('ERROR: no such host')"],
            "The list can't be fetched .*no such host",
        ),
        ([sys.executable, "-c", "import sys; sys.exit('nothing here')"], "nothing here"),
        ([sys.executable, "-c", "import sys; sys.exit(1)"], "no reason given"),
        (["no-such-program-at-all"], "no-such-program-at-all doesn't start"),
    ],
)
def test_a_client_that_fails_says_why_in_one_line(tmp_path: Path, command: list[str], message: str):
    with pytest.raises(BadInput, match=message) as raised:
        run_client(command, "The list", tmp_path)
    assert "\n" not in str(raised.value)
