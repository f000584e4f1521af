"""A real VS Code: its server and extension host here, its window in a headless Chromium."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Page, sync_playwright

from tests.e2e.editors.install import vscode
from tests.e2e.editors.programs import programs
from tests.engine.processes import WAIT_S, Home, wait_until

EXTENSION = Path(__file__).parents[3] / "editors" / "vscode"
QUIET = {
    "security.workspace.trust.enabled": False,  # else the extension is quietly off
    "chat.disableAIFeatures": True,
    "workbench.startupEditor": "none",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.colorTheme": "Default Dark Modern",
    "telemetry.telemetryLevel": "off",
    "editor.inlineSuggest.enabled": True,
    "editor.minimap.enabled": False,
    "editor.wordBasedSuggestions": "off",
    "editor.quickSuggestions": {"other": "off", "comments": "off", "strings": "off"},
    "files.autoSave": "off",
    "git.enabled": False,
    "dg-lsp.inline.deadline_ms": 20_000,
}


class Workbench:
    """One window's server; `page()` opens it."""

    def __init__(self, folder: Path, port: int, process: subprocess.Popen[bytes]) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.programs = folder / "programs"
        self.process = process
        self._authority = f"127.0.0.1:{port}"

    def remote(self, path: Path) -> str:
        """A file's name as the window says it."""
        return f"vscode-remote://{self._authority}{path}"

    def url(self, payload: dict[str, str]) -> str:
        held = quote(json.dumps(list(payload.items())))
        return f"http://{self._authority}/?folder={quote(str(self.work))}&payload={held}"

    @contextmanager
    def page(self) -> Iterator[Page]:
        """A window without a URL yet."""
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=str(vscode.chromium()), args=["--no-sandbox", "--disable-gpu"]
            )
            try:
                yield browser.new_page(viewport={"width": 960, "height": 460})
            finally:
                browser.close()

    def run_host_tests(self) -> list[str]:
        """Run the extension's own tests in its host; returns what they printed."""
        lines: list[str] = []
        codes: list[int] = []
        with self.page() as page:
            page.expose_function("codeAutomationLog", lambda kind, arguments: lines.append(_joined(arguments)))
            page.expose_function("codeAutomationExit", lambda code, *_: codes.append(code))
            payload = {
                "extensionDevelopmentPath": self.remote(EXTENSION),
                "extensionTestsPath": self.remote(EXTENSION / "out" / "test" / "index.js"),
            }
            page.goto(self.url(payload), timeout=SILENT_S * 1000)
            told, since_s = 0, time.monotonic()
            while not codes:
                if len(lines) > told:
                    told, since_s = len(lines), time.monotonic()
                waited_s = time.monotonic() - since_s
                assert waited_s < SILENT_S, "\n".join([f"Nothing came for {waited_s:.0f} s.", *lines])
                # Events are delivered while the page is waited for.
                page.wait_for_timeout(250)
        return lines


SILENT_S = 300.0
"""A window takes minutes to load on a busy machine, and a test of the extension may wait for several things."""


@contextmanager
def workbench(
    home: Home,
    settings: dict[str, Any] | None = None,
    *,
    vsix: Path | None = None,
    server: str | None = "dg-lsp",
    version: str = vscode.NEWEST,
) -> Iterator[Workbench]:
    """A VS Code server from start to end, with these settings; it leaves no process behind.

    `server` is one of the programs in place of the server that the extension is told of; None: it has to find one.
    """
    folder = Path(tempfile.mkdtemp(prefix="dg-code-"))
    programs(folder / "programs")
    data = folder / "data" / "data"
    for path in (folder / "work", folder / "extensions", data / "User", data / "Machine"):
        path.mkdir(parents=True)
    user = {**QUIET, **(settings or {})}
    # What is of scope "machine" counts in a window only where the machine that its files are on says it.
    machine = {name: user.pop(name) for name in list(user) if name in _of_machine()}
    if server is not None:
        machine["dg-lsp.serverPath"] = str(folder / "programs" / server)
    (data / "User" / "settings.json").write_text(json.dumps(user))
    (data / "Machine" / "settings.json").write_text(json.dumps(machine))
    command = [str(vscode.node(version)), str(vscode.server(version)), "--accept-server-license-terms"]
    places = ["--server-data-dir", str(folder / "data"), "--extensions-dir", str(folder / "extensions")]
    environment = {
        **home.environment,
        "EXTENSIONS_GALLERY": '{"serviceUrl":""}',
        "DG_TEST_PROGRAMS": str(folder / "programs"),
        "HOME": str(folder),
    }
    if vsix:
        subprocess.run(
            [*command, *places, "--install-extension", str(vsix)], env=environment, check=True, timeout=WAIT_S
        )
    port = _free_port()
    listen = ["--host", "127.0.0.1", "--port", str(port), "--without-connection-token", "--enable-smoke-test-driver"]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, *places, *listen], env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        wait_until(lambda: _listens(port) or process.poll() is not None, "the workbench's server")
        assert process.poll() is None, (folder / "server.log").read_text()
        yield Workbench(folder, port, process)
    finally:
        _end(process)
        shutil.rmtree(folder, ignore_errors=True)


def _of_machine() -> set[str]:
    declared = json.loads((EXTENSION / "package.json").read_text())["contributes"]["configuration"]["properties"]
    return {name for name, held in declared.items() if held.get("scope") == "machine"}


def _joined(arguments: Any) -> str:
    return " ".join(str(held) for held in arguments) if isinstance(arguments, list) else str(arguments)


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def _listens(port: int) -> bool:
    with socket.socket() as held:
        held.settimeout(1)
        return held.connect_ex(("127.0.0.1", port)) == 0


def _end(process: subprocess.Popen[bytes]) -> None:
    # Its extension hosts are in its group.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
