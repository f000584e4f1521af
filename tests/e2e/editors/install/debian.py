"""Programs from a Debian suite, unpacked beside their own libraries: nothing on the machine is installed or upgraded.

The mirror and the keys are those of the machine's own apt.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.e2e.editors.install.cache import run

SUITE = "forky"
"""It moves, so tests ask for a lowest version, never for an exact one."""
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


def unpack(packages: Sequence[str], into: Path, *, alone: bool = False) -> None:
    """Unpack packages and, unless they are wanted alone, all that they depend on, glibc included, into one folder."""
    _check_tools()
    private = into / "apt"
    options = _private_apt(private)
    run("apt-get", *options, "-qq", "update")
    downloads = private / "downloads"
    downloads.mkdir()
    wanted = packages if alone else _closure(packages, options)
    run("apt-get", *options, "-qq", "download", *wanted, cwd=downloads)
    for archive in sorted(downloads.glob("*.deb")):
        run("dpkg-deb", "--extract", archive, into)
    shutil.rmtree(private)


def patch(program: Path, root: Path, final: Path) -> None:
    """Let a program below `root` run on the libraries there once the folder is called `final`.

    A search path in the environment would leak the newer glibc into the program's children.
    """
    loader = next(path for folder in _library_folders(root) for path in folder.glob("ld-linux-*.so.*"))
    folders = [_moved(folder, root, final) for folder in _library_folders(root)]
    for library in _libraries(root):
        # A search path of its own makes a library deaf to the program's.
        if run("patchelf", "--print-rpath", library).strip():
            run("patchelf", "--remove-rpath", library)
    target = program.with_suffix(".patched")
    run(
        *("patchelf", "--set-interpreter", _moved(loader, root, final)),
        *("--force-rpath", "--set-rpath", ":".join(map(str, folders)), "--output", target, program),
    )
    target.chmod(0o755)
    target.replace(program)


def _check_tools() -> None:
    missing = [tool for tool in ("apt-get", "apt-cache", "dpkg-deb", "patchelf") if not shutil.which(tool)]
    if missing:
        raise SystemExit(f"{', '.join(missing)} not found: this editor can be installed for tests only on Debian.")


def _private_apt(folder: Path) -> list[str]:
    """Options that point apt at folders of its own and at one suite."""
    for name in ("lists/partial", "cache/archives/partial", "parts"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    source = folder / "sources.list"
    source.write_text(f"deb [signed-by={KEYS}] {_mirror()} {SUITE} main\n")
    settings = {
        "Dir::Etc::sourcelist": source,
        "Dir::Etc::sourceparts": folder / "parts",
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "",
        "APT::Install-Recommends": "false",
    }
    return [f"-o{key}={value}" for key, value in settings.items()]


def _mirror() -> str:
    listed = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian")
    mirrors = listed.split()
    if not mirrors:
        raise SystemExit("apt knows no mirror of Debian: this editor can be installed for tests only on Debian.")
    return mirrors[0]


def _closure(packages: Sequence[str], options: Sequence[str]) -> list[str]:
    told = run("apt-get", *options, "--simulate", "install", *packages)
    return sorted({line.split()[1] for line in told.splitlines() if line.startswith("Inst ")})


def _library_folders(root: Path) -> list[Path]:
    folders = {path.parent for path in _libraries(root)}
    return sorted(folder for folder in folders if len(folder.relative_to(root).parts) <= 4)


def _libraries(root: Path) -> list[Path]:
    found = (path for path in (root / "usr" / "lib").rglob("*.so*") if path.is_file() and not path.is_symlink())
    return [path for path in found if path.open("rb").read(4) == b"\x7fELF"]


def _moved(path: Path, root: Path, final: Path) -> Path:
    return final / path.relative_to(root)
