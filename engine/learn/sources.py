"""Finds source code and its licences on this machine: the standard library, installed packages, npm packages, and those
pinned in python-packages.txt and npm-packages.json, which are fetched into the user's cache and never run."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from importlib.metadata import PackageMetadata, distributions
from pathlib import Path, PurePath
from typing import Literal

import msgspec

from engine.common.processes import python_module
from engine.lab.eval.archives import announce, run_client, unpack
from engine.learn.screening import LANGUAGES

STANDARD_LIBRARY = "python-stdlib"
_SPDX = re.compile(r"MIT(-0)?|ISC|0BSD|BSD-[234]-Clause|Apache-2\.0|PSF-2\.0|Python-2\.0(\.\d)?", re.IGNORECASE)
_NAMED = re.compile(
    r"\b(MIT|ISC|BSD|PSF|Python Software Foundation|ASL 2|Apache(-| )(Software )?(Licen[sc]e,? ?)?(Version )?2?)\b",
    re.IGNORECASE,
)
_OTHER_TERMS = re.compile(
    r"GPL|MPL|EPL|CDDL|CC-|CC0|Zlib|BSL|Mozilla|Eclipse|Affero|GNU|public domain|proprietary|commercial", re.IGNORECASE
)
_CLASSIFIER = re.compile(r"License :: (?:OSI|DFSG) [Aa]pproved(?: :: (?P<name>.+))?|License :: (?P<other>.+)")
_LONGEST_NAME = 100
"""Characters. A longer licence field has the text of a licence, which names many things."""
_PYTHON, _NPM = (Path(__file__).with_name(name) for name in ("python-packages.txt", "npm-packages.json"))


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
    ecosystem: Literal["python", "npm"]
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


class _NpmManifest(msgspec.Struct):
    license: str
    name: str
    version: str = ""


def _npm_package(manifest: Path) -> SourcePackage | None:
    try:
        found = msgspec.json.decode(manifest.read_bytes(), type=_NpmManifest)
    except ValueError:
        return None
    if not (found.name and is_permissive(found.license)):
        return None
    root = manifest.parent
    inside = (path.relative_to(root) for path in root.rglob("*") if path.suffix in LANGUAGES and path.suffix != ".py")
    return SourcePackage(
        name=found.name,
        version=found.version,
        licence=found.license,
        ecosystem="npm",
        root=root,
        files=tuple(sorted(path for path in inside if not {"node_modules", "Build", "build"} & set(path.parts))),
    )


def is_permissive(expression: str) -> bool:
    """Whether an SPDX expression can be met with terms of MIT, BSD, Apache-2.0, PSF or ISC alone."""
    parts = re.split(r"\s+(?:OR|AND)\s+", expression, flags=re.IGNORECASE)
    allowed = [bool(_SPDX.fullmatch(re.split(r"\s+WITH\s+", part.strip("() "))[0])) for part in parts]
    # An expression that mixes AND with OR would need its brackets read: every part has to be allowed there.
    either = re.search(r"\sOR\s", expression, re.IGNORECASE) and not re.search(r"\sAND\s", expression, re.IGNORECASE)
    return any(allowed) if either else all(allowed)


def permissive_licence(metadata: PackageMetadata | Message) -> str | None:
    """The permissive licence in a distribution's metadata, or None. The expression counts before the classifiers, and
    these before the free text."""
    expression = metadata["License-Expression"]
    if expression:
        return expression if is_permissive(expression) else None
    text = (metadata["License"] or "").strip()
    text = text if len(text) <= _LONGEST_NAME else ""
    if _OTHER_TERMS.search(text):
        return None
    matches = [_CLASSIFIER.fullmatch(classifier) for classifier in metadata.get_all("Classifier") or []]
    names = [name for match in matches if match and (name := match["name"] or match["other"])]
    if names:
        return " / ".join(names) if all(map(_is_named_permissive, names)) else None
    return text if _is_named_permissive(text) else None


def _is_named_permissive(name: str) -> bool:
    return bool(is_permissive(name) or (_NAMED.search(name) and not _OTHER_TERMS.search(name)))


def fetch_pinned(cache: Path) -> tuple[Path, Path]:
    """The folders (site-packages, node_modules) with every pinned package, fetched where they are not there yet.

    Raises BadInput where no package registry is reached.
    """
    python = [line for line in _PYTHON.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    npm: dict[str, str] = json.loads(_NPM.read_text(encoding="utf-8"))
    pins = json.dumps([sorted(python), sorted(npm.items()), sys.version_info[:2], sys.platform])
    folder = cache / f"packages-{hashlib.sha256(pins.encode()).hexdigest()[:12]}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        announce(len(python) + len(npm), "the package indexes of Python and npm")
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            whole = Path(scratch, "whole")
            whole.mkdir()
            options = ("--quiet", "--no-deps", "--no-compile", "--only-binary=:all:", "--disable-pip-version-check")
            command = [*python_module("pip"), "install", *options, f"--target={whole / 'site-packages'}"]
            run_client([*command, "--requirement", str(_PYTHON)], f"The packages of {_PYTHON.name}", whole)
            _fetch_npm(npm, whole / "node_modules")
            whole.rename(folder)
    return folder / "site-packages", folder / "node_modules"


def _fetch_npm(packages: dict[str, str], folder: Path) -> None:
    for name, version in packages.items():
        root = folder / name
        root.mkdir(parents=True)
        command = ["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination=.", f"{name}@{version}"]
        run_client(command, f"The npm package {name}", root)
        for tarball in root.glob("*.tgz"):
            unpack(tarball, root, (*LANGUAGES, "package.json"))
            tarball.unlink()
        # A tarball holds one folder, mostly named "package".
        (inside,) = (path for path in root.iterdir() if path.is_dir())
        for path in inside.iterdir():
            path.rename(root / path.name)
        inside.rmdir()
