"""The reserved packages and repositories: the list, and their sources as the package registry has them.

Only wheels for any platform are taken, by their hashes: every machine gets the same files, and nothing in them is run.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import platformdirs

from engine.core.processes import python_module
from engine.eval.archives import run_client, unpack

Role = Literal["reported", "development"]
_LIST = Path(__file__).parent / "packages.json"
_ANYWHERE = ("--only-binary=:all:", "--platform=any", "--python-version=3.11", "--implementation=py", "--abi=none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """One package, or a repository's worth of code, at one or two releases."""

    name: str
    version: str
    earlier: str | None
    """An older release whose Python sources differ."""
    licence: str
    role: Role
    """Figures are reported on some; thresholds, widths and the like are chosen on the others only."""
    modules: tuple[str, ...]
    """What it is imported as, and so what a copy inside another package is called."""
    sha256: dict[str, str]
    """Of each release's wheel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedFile:
    """A Python file of a release. `text` is as it is on disk, line ends included."""

    package: str
    version: str
    path: str
    text: str


def reserved_sources() -> tuple[Reserved, ...]:
    """Packages, then repositories, which are larger: each a repository's worth of code."""
    listed: Any = json.loads(_LIST.read_text(encoding="utf-8"))
    entries = [*listed["packages"], *listed["repositories"]]
    return tuple(Reserved(**(entry | {"modules": tuple(entry["modules"])})) for entry in entries)


def reserved_names() -> frozenset[str]:
    """Distribution names, normalised, of packages and repositories."""
    return frozenset(each.name for each in reserved_sources())


def reserved_modules() -> frozenset[str]:
    """Names of the folders and files that a copy inside another package has."""
    return frozenset(name for each in reserved_sources() for name in each.modules)


def fetch(folder: Path | None = None) -> Path:
    """Bring every release into `folder` (the user's cache), a folder NAME-VERSION each, where it is not there yet.

    Raises BadInput when no package registry is reached.
    """
    folder = folder or platformdirs.user_cache_path("dg-lsp") / "reserved"
    # pip takes one release of a package at a time.
    _fetch([(each, each.version) for each in reserved_sources()], folder)
    _fetch([(each, each.earlier) for each in reserved_sources() if each.earlier], folder)
    return folder


def reserved_files(folder: Path | None = None, *, earlier: bool = True) -> Iterator[ReservedFile]:
    """Every Python file of the fetched releases, in a fixed order. What is not UTF-8 is left out."""
    root = fetch(folder)
    for each in reserved_sources():
        for version in (each.version, each.earlier if earlier else None):
            if version:
                folder_of_it = root / f"{each.name}-{version}"
                for path in sorted(folder_of_it.rglob("*.py")):
                    with suppress(UnicodeDecodeError):
                        yield ReservedFile(
                            package=each.name,
                            version=version,
                            path=path.relative_to(folder_of_it).as_posix(),
                            text=path.read_bytes().decode(),
                        )


def _fetch(releases: Sequence[tuple[Reserved, str]], folder: Path) -> None:
    missing = [(each, version) for each, version in releases if not (folder / f"{each.name}-{version}").is_dir()]
    if not missing:
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        wheels, unpacked = Path(scratch, "wheels"), Path(scratch, "unpacked")
        wheels.mkdir()
        wanted = [f"{each.name}=={version} --hash=sha256:{each.sha256[version]}\n" for each, version in missing]
        Path(scratch, "wanted.txt").write_text("".join(wanted), encoding="utf-8")
        command = [*python_module("pip"), "download", "--quiet", "--no-deps", "--require-hashes", *_ANYWHERE]
        run_client([*command, f"--dest={wheels}", "-r", "wanted.txt"], "The reserved packages", Path(scratch))
        found = {_name_and_version(wheel): wheel for wheel in wheels.iterdir()}
        for each, version in missing:
            unpack(found[each.name, version], unpacked / each.name, (".py",))
            (unpacked / each.name).rename(folder / f"{each.name}-{version}")


def _name_and_version(wheel: Path) -> tuple[str, str]:
    name, version = wheel.name.split("-")[:2]
    return name.replace("_", "-").replace(".", "-").lower(), version
