"""What of the clients registries carry: `python -m tests.e2e.clients.install`. What is there already stays."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.editors.install import debian, emacs, neovim
from tests.e2e.editors.install.cache import cache_dir, install

HELIX, LLAMA_VIM = "helix", "llama.vim"


def helix() -> Path:
    """The program; it may not be installed."""
    return cache_dir() / HELIX / "usr" / "lib" / "hx" / "hx"


def main() -> None:
    """Install all of them, and the editors that they run in."""
    neovim.main()
    emacs.main()
    install(HELIX, _helix)
    install(LLAMA_VIM, _llama_vim)


def _helix(folder: Path) -> None:
    debian.unpack(["hx"], folder)
    debian.patch(folder / "usr" / "lib" / "hx" / "hx", folder, cache_dir() / HELIX)


def _llama_vim(folder: Path) -> None:
    # Without Vim and llama.cpp, on which the package depends: it runs in Neovim, and the server is ours.
    debian.unpack(["vim-llama.cpp"], folder, alone=True)


if __name__ == "__main__":
    main()
