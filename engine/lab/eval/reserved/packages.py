"""The reserved packages and repositories: their list, their sources from the package registry, and gaps in these.

Only wheels for any platform are taken, by their hashes: every machine gets the same files, and nothing in them is run.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import platformdirs

from engine.common.errors import BadInput
from engine.common.processes import python_module
from engine.lab.eval.archives import announce, run_client, unpack
from engine.lab.eval.tasks import EvalTask, code_holes

Role = Literal["reported", "development"]
HoleKind = Literal["whole_line", "line", "rest_of_line", "arguments", "block"]
HOLES = Path(__file__).parent / "holes.jsonl"
_LIST = Path(__file__).parent / "packages.json"
_MORE = 60
"""Further gaps in each package."""
_ANYWHERE = ("--only-binary=:all:", "--platform=any", "--python-version=3.11", "--implementation=py", "--abi=none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """A package, or a repository's worth of code, at one or two releases."""

    name: str
    version: str
    earlier: str | None
    """An older release whose Python sources differ."""
    licence: str
    role: Role
    """Development: settings are chosen on it. Reported: figures are reported on it, and nothing is chosen."""
    modules: tuple[str, ...]
    """Names that it is imported by, and that a copy inside another package has."""
    sha256: dict[str, str]
    """The hash of each release's wheel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedFile:
    """A Python file of a release. `text` is as it is on disk, line ends included."""

    package: str
    version: str
    path: str
    text: str


def reserved_sources() -> tuple[Reserved, ...]:
    """Packages, then repositories, which are larger."""
    listed: Any = json.loads(_LIST.read_text(encoding="utf-8"))
    entries = [*listed["packages"], *listed["repositories"]]
    return tuple(Reserved(**(entry | {"modules": tuple(entry["modules"])})) for entry in entries)


def reserved_names() -> frozenset[str]:
    """Normalised distribution names of packages and repositories."""
    return frozenset(each.name for each in reserved_sources())


def reserved_modules() -> frozenset[str]:
    """Names of folders and files that a copy inside another package has."""
    return frozenset(name for each in reserved_sources() for name in each.modules)


def fetch(folder: Path | None = None) -> Path:
    """Download each release into a folder NAME-VERSION of `folder` (the user's cache), where it is missing; downloads
    are announced on stderr. Raises BadInput when no package registry is reached."""
    folder = folder or _cached()
    later = _missing([(each, each.version) for each in reserved_sources()], folder)
    earlier = _missing([(each, each.earlier) for each in reserved_sources()], folder)
    if later or earlier:
        announce(len({each.name for each, _ in (*later, *earlier)}))
    # pip takes one release of a package at a time.
    _fetch(later, folder)
    _fetch(earlier, folder)
    return folder


def reserved_files(folder: Path | None = None, *, earlier: bool = True) -> Iterator[ReservedFile]:
    """Every Python file of the fetched releases, in a fixed order; files that are not UTF-8 are left out."""
    root = fetch(folder)
    for each in reserved_sources():
        for version in (each.version, each.earlier if earlier else None):
            if version:
                folder_of_it = _release(root, each, version)
                for path in sorted(folder_of_it.rglob("*.py")):
                    with suppress(UnicodeDecodeError):
                        yield ReservedFile(
                            package=each.name,
                            version=version,
                            path=path.relative_to(folder_of_it).as_posix(),
                            text=path.read_bytes().decode(),
                        )


def _cached() -> Path:
    return platformdirs.user_cache_path("dg-lsp") / "reserved"


def _missing(releases: Sequence[tuple[Reserved, str | None]], folder: Path) -> list[tuple[Reserved, str]]:
    return [(each, version) for each, version in releases if version and not _release(folder, each, version).is_dir()]


def _release(folder: Path, each: Reserved, version: str) -> Path:
    return folder / f"{each.name}-{version}"


def _fetch(missing: Sequence[tuple[Reserved, str]], folder: Path) -> None:
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
            (unpacked / each.name).rename(_release(folder, each, version))


def _name_and_version(wheel: Path) -> tuple[str, str]:
    name, version = wheel.name.split("-")[:2]
    return name.replace("_", "-").replace(".", "-").lower(), version


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedHole:
    """A gap `text[start:end]` of a release's file; offsets count characters."""

    split: Role
    package: str
    version: str
    path: str
    start: int
    end: int
    kind: HoleKind
    sha: str
    """The fingerprint of the gap's text, see `truth_sha`."""


def reserved_tasks(split: Role, folder: Path | None = None) -> list[EvalTask]:
    """The gaps of one split, their text read from `folder` (the user's cache) and fetched where it is missing.

    Raises BadInput when no package registry is reached, or where a text is not the one that was cut.
    """
    root = fetch(folder)
    return [_task(hole, root) for hole in reserved_holes() if hole.split == split]


def development_gaps(folder: Path | None = None) -> Iterator[EvalTask] | None:
    """The development holes, then further gaps in the same packages; None where these were never fetched."""
    root = folder or _cached()
    if _missing([(each, version) for each in reserved_sources() for version in (each.version, each.earlier)], root):
        return None
    development = [each for each in reserved_sources() if each.role == "development"]
    more = (code_holes(_release(root, each, each.version), "python", _MORE, seed=0) for each in development)
    return chain(reserved_tasks("development", root), chain.from_iterable(more))


def reserved_holes() -> list[ReservedHole]:
    return [ReservedHole(**json.loads(line)) for line in HOLES.read_text(encoding="utf-8").splitlines()]


def truth_sha(text: str) -> str:
    """A fingerprint of a text: sixteen hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _task(hole: ReservedHole, root: Path) -> EvalTask:
    file = f"{hole.path} of {hole.package} {hole.version}"
    try:
        text = (root / f"{hole.package}-{hole.version}" / hole.path).read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        raise BadInput(f"{file} is not in {root}: delete that folder to fetch it again.") from None
    truth = text[hole.start : hole.end]
    if truth_sha(truth) != hole.sha:
        raise BadInput(f"{file} is not as it was: delete {root} to fetch it again.")
    return EvalTask(
        name=f"{hole.package}-{hole.version}/{hole.path}:{hole.start}-{hole.end}",
        kind=hole.kind,
        language="python",
        prefix=text[: hole.start],
        suffix=text[hole.end :],
        truth=truth,
    )
