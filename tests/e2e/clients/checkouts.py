"""Where plugins for tests are: in `DG_LSP_CLIENTS`, a folder with a checkout of each; llama.vim is in Debian, too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.e2e.clients.install import LLAMA_VIM
from tests.e2e.editors.install.cache import installed

FOLDER = "DG_LSP_CLIENTS"


def checkout(name: str) -> Path:
    """The folder of a plugin; where there is none the test is skipped."""
    given = os.environ.get(FOLDER)
    if given and (Path(given) / name).is_dir():
        return Path(given) / name
    packaged = installed(LLAMA_VIM) if name == "llama.vim" else None
    if packaged is None:
        pytest.skip(f"There is no {name}: name a folder that holds its checkout as {name}/ in {FOLDER}.")
    return next(packaged.rglob("autoload/llama.vim")).parents[1]


def checkouts(*names: str) -> list[Path]:
    """The folders of several plugins that go together."""
    return [checkout(name) for name in names]
