"""Opens wheels and npm tarballs without running anything in them."""

from __future__ import annotations

import stat
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from engine.common.errors import BadInput

_LARGEST_MEMBER_NBYTES = 50_000_000


def unpack(archive: Path, folder: Path, endings: tuple[str, ...]) -> None:
    """Write those files of `archive` (.whl, .zip or a tarball) into `folder` whose names end in one of `endings`.

    Raises BadInput for a member that would land outside of `folder`, is a link or is too large, before any is written.
    """
    with zipfile.ZipFile(archive) if archive.suffix in (".whl", ".zip") else tarfile.open(archive) as opened:
        members = list(_zip_members(opened) if isinstance(opened, zipfile.ZipFile) else _tar_members(opened))
        for name, regular, nbytes, _ in members:
            path = PurePosixPath(name)
            if not regular or path.is_absolute() or ".." in path.parts or "\\" in name or ":" in path.parts[0]:
                raise BadInput(f"{archive.name} holds {name!r}, which is a link or leads out of its folder: refused.")
            if nbytes > _LARGEST_MEMBER_NBYTES and name.endswith(endings):
                raise BadInput(f"{archive.name} holds {name!r} of {nbytes:,} bytes: refused as too large.")
        for name, _, _, member in members:
            if name.endswith(endings):
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                if isinstance(opened, zipfile.ZipFile):
                    target.write_bytes(opened.read(name))
                elif member is not None and (file := opened.extractfile(member)):
                    target.write_bytes(file.read())


def announce(count: int, where: str = "the package index") -> None:
    """Say on stderr that so many packages are about to be downloaded."""
    sys.stderr.write(f"Downloading {count} {'package' if count == 1 else 'packages'} from {where}, once.\n")
    sys.stderr.flush()


def run_client(command: Sequence[str], what: str, folder: Path) -> None:
    """Run a package registry's client in `folder`. Raises BadInput with its last words where it fails."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise BadInput(f"{what} can't be fetched, {command[0]} doesn't start ({error.strerror}): install it.") from None
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()] or ["no reason given"]
        last = next((line for line in reversed(said) if "rror" in line), said[-1])
        raise BadInput(f"{what} can't be fetched ({last[:200]}): a package registry has to be in reach, once.")


_Member = tuple[str, bool, int, tarfile.TarInfo | None]
"""Name, whether it is a plain file, size in bytes, and the member of a tarball."""


def _zip_members(opened: zipfile.ZipFile) -> Iterator[_Member]:
    for member in opened.infolist():
        mode = stat.S_IFMT(member.external_attr >> 16)
        if not member.is_dir():
            yield member.orig_filename, mode in (0, stat.S_IFREG), member.file_size, None


def _tar_members(opened: tarfile.TarFile) -> Iterator[_Member]:
    for member in opened:
        if not member.isdir():
            yield member.name, member.isreg(), member.size, member
