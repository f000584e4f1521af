"""The editors, where they are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cases import CASES
from tests.e2e.editors.edit_cases import EDITS
from tests.engine.processes import Home, home, running
from tests.engine.server.test_server import serving
from tests.engine.talking import Talking, loads

ROOT = Path(__file__).parents[3]
PATIENT = {"inline": {"deadline_ms": 20_000}}
"""On a loaded machine the usual deadline would cut answers short."""
EAGER = {"inline": {"deadline_ms": 60_000, "threshold": 0}}
"""For the bundled model, which may be slow here and unsure."""
SERVE = [sys.executable, "-m", "dg_lsp", "serve"]


def model_of(place: Home) -> str:
    """The name of the oracle that was made in a home, for an engine that is started anew."""
    return f"oracle:{place.folder / 'oracle.json'}"


def bundled_case() -> str:
    """A text that the bundled model fills; its own answer stands between two ▮."""
    return (ROOT / "tests" / "cases" / "bundled" / "return_statement.py").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def shared() -> Iterator[Home]:
    """A home whose engine runs with the oracle."""
    with home() as place, running(place, "--model", place.oracle(*CASES, *EDITS)):
        yield place


@pytest.fixture(scope="module")
def coder() -> Iterator[tuple[Home, Talking]]:
    """A home whose engine runs with a coder that says the same to everybody, and that."""
    with pytest.MonkeyPatch.context() as patch, home() as place:
        for name in ("DG_LSP_RUNTIME_DIR", "DG_LSP_STATE_DIR"):
            patch.setenv(name, place.environment[name])
        talking = Talking(says="")
        with serving(place, loads(talking)):
            yield place, talking


@pytest.fixture(scope="session")
def vsix() -> Path:
    """VS Code's extension as it is installed, and its tests, both built."""
    from tests.e2e.editors.install import vscode

    extension = ROOT / "editors" / "vscode"
    assert shutil.which("npm"), "npm builds the extension."
    environment = {**os.environ, "PATH": f"{vscode.node().parent}:{os.environ['PATH']}"}

    def npm(*arguments: str) -> None:
        subprocess.run(["npm", *arguments], cwd=extension, env=environment, check=True, timeout=500)

    if not (extension / "node_modules").is_dir():
        npm("ci", "--ignore-scripts", "--no-audit", "--no-fund")
    npm("run", "--silent", "package")
    return extension / "dg-lsp.vsix"


@pytest.fixture(params=["0.12", "0.11"])
def nvim_program(request: pytest.FixtureRequest) -> Path:
    """Both versions of Neovim."""
    return neovim_program(request.param)


@pytest.fixture
def newest() -> Path:
    """The newer Neovim, for what does not depend on the version."""
    return neovim_program("0.12")


def neovim_program(version: str) -> Path:
    from tests.e2e.editors.install.neovim import program

    pytest.importorskip("pynvim", reason="pynvim is not installed; `make test-editors` brings it.")
    found = program(f"neovim-{version}")
    if found is None:
        pytest.skip(f"Neovim {version} is not installed; `make test-editors` brings it.")
    return found
