"""The extension in a real VS Code: its own tests inside the extension host, and a person in front of the window."""

from __future__ import annotations

import shutil
import subprocess

import pytest

pytest.importorskip("playwright", reason="playwright is not installed; `make test-editors` brings it.")

from tests.e2e.editors.install import vscode
from tests.e2e.editors.workbench import EXTENSION, workbench
from tests.engine.processes import Home

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not (vscode.server().exists() and vscode.chromium().exists()),
        reason="VS Code is not installed; `make test-editors` brings it.",
    ),
]


@pytest.fixture(scope="module")
def built() -> None:
    """The extension and its tests, bundled."""
    assert shutil.which("npm"), "npm builds the extension."
    if not (EXTENSION / "node_modules").is_dir():
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=EXTENSION, check=True)
    subprocess.run(["npm", "run", "--silent", "build"], cwd=EXTENSION, check=True)


@pytest.mark.usefixtures("built")
def test_inside_the_extension_host(shared: Home):
    with workbench(shared) as held:
        lines = held.run_host_tests()
    print("\n".join(lines))
    assert any(line.endswith(" passed, 0 failed") for line in lines), "\n".join(lines)
