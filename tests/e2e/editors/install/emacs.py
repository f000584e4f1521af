"""Emacs with lsp-mode for tests: `python -m tests.e2e.editors.install.emacs`."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.editors.install import debian
from tests.e2e.editors.install.cache import cache_dir, install

EMACS = "emacs"


def root() -> Path:
    """The folder that its files are in; it may not be installed."""
    return cache_dir() / EMACS


def main() -> None:
    """Install it."""
    install(EMACS, _from_debian)


def _from_debian(folder: Path) -> None:
    debian.unpack(["emacs-nox", "elpa-lsp-mode"], folder)
    program = next(path for path in sorted(folder.glob("usr/bin/emacs*")) if path.is_file() and not path.is_symlink())
    debian.patch(program, folder, root())


if __name__ == "__main__":
    main()
