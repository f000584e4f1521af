"""Where source code lies on a machine: the standard library, installed Python packages, npm packages."""

from __future__ import annotations

import json
import re
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path, PurePath
from typing import Any, cast

from engine.train.licences import is_permissive, permissive_licence
from engine.train.screening import LANGUAGES

STANDARD_LIBRARY = "python-stdlib"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The folders to collect from, in order of preference: a package found twice is taken from the first."""

    standard_library: Path | None = field(default_factory=lambda: Path(sysconfig.get_path("stdlib")))
    site_packages: tuple[Path, ...] = ()
    node_modules: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePackage:
    """One package under a permissive licence. `files` are relative to `root`."""

    name: str
    version: str
    licence: str
    ecosystem: str
    """"python" or "npm"."""
    root: Path
    files: tuple[PurePath, ...]


def find_packages(sources: Sources) -> Iterator[SourcePackage]:
    """Each permissively licensed package once, with its source files."""
    if sources.standard_library is not None:
        yield _standard_library(sources.standard_library)
    seen: set[str] = set()
    for package in (*_installed(sources.site_packages), *_npm(sources.node_modules)):
        key = f"{package.ecosystem}/{package.name}"
        if key not in seen and package.files:
            seen.add(key)
            yield package


def _standard_library(root: Path) -> SourcePackage:
    inside = (path.relative_to(root) for path in root.rglob("*.py"))
    return SourcePackage(
        name=STANDARD_LIBRARY,
        version=sysconfig.get_python_version(),
        licence="PSF-2.0",
        ecosystem="python",
        root=root,
        files=tuple(sorted(path for path in inside if path.parts[0] not in ("site-packages", "dist-packages"))),
    )


def _installed(folders: tuple[Path, ...]) -> Iterator[SourcePackage]:
    for folder in folders:
        for found in sorted(distributions(path=[str(folder)]), key=lambda distribution: distribution.name):
            if licence := permissive_licence(found.metadata):
                listed = (PurePath(file) for file in found.files or ())
                yield SourcePackage(
                    name=re.sub(r"[-_.]+", "-", found.metadata["Name"]).lower(),
                    version=found.version,
                    licence=licence,
                    ecosystem="python",
                    root=folder,
                    files=tuple(sorted(path for path in listed if path.suffix == ".py" and ".." not in path.parts)),
                )


def _npm(folders: tuple[Path, ...]) -> Iterator[SourcePackage]:
    for folder in folders:
        for manifest in sorted({*folder.glob("*/package.json"), *folder.glob("@*/*/package.json")}):
            if package := _npm_package(manifest):
                yield package
            yield from _npm((manifest.parent / "node_modules",))


def _npm_package(manifest: Path) -> SourcePackage | None:
    try:
        loaded = json.loads(manifest.read_text(encoding="utf-8"))
    except ValueError:
        return None
    facts = cast(dict[str, Any], loaded) if isinstance(loaded, dict) else {}
    licence = facts.get("license")
    if not (isinstance(licence, str) and is_permissive(licence) and facts.get("name")):
        return None
    root = manifest.parent
    inside = (path.relative_to(root) for path in root.rglob("*") if path.suffix in LANGUAGES and path.suffix != ".py")
    return SourcePackage(
        name=str(facts["name"]),
        version=str(facts.get("version", "")),
        licence=licence,
        ecosystem="npm",
        root=root,
        files=tuple(sorted(path for path in inside if not {"node_modules", "Build", "build"} & set(path.parts))),
    )
