"""What a person does in VS Code's window again and again."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.editors.install import vscode
from tests.e2e.editors.workbench import Workbench
from tests.engine.processes import WAIT_S, wait_until

IN_VSCODE = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not all(path.exists() for path in (vscode.server(), vscode.server(vscode.OLDEST), vscode.chromium())),
        reason="VS Code is not installed; `make test-editors` brings it.",
    ),
]
"""Marks of tests that need it."""
GHOST = "[class*='ghost-text']"
LONG_MS = 4 * WAIT_S * 1000
"""A window is a lot of code to load; it takes minutes on a busy machine."""


def opened(held: Workbench, page: Page, path: Path) -> None:
    """Open a window with a file, and click into its text."""
    page.goto(held.url({"openFile": held.remote(path)}), timeout=LONG_MS)
    page.locator(".monaco-editor .view-lines").first.click(timeout=LONG_MS)


def is_ready(page: Page) -> None:
    """Wait until the status bar says so: VS Code asks for suggestions only while somebody types."""
    expect(page.get_by_role("button", name="dg-lsp is ready.")).to_be_visible(timeout=LONG_MS)


def saved(page: Page, path: Path, text: str) -> None:
    """Save, and look at the file."""

    def holds() -> bool:
        page.keyboard.press("Control+s")
        page.wait_for_timeout(500)
        return path.read_text().rstrip() == text

    wait_until(holds, f"{text!r} in the file, not {path.read_text()!r}")


def toast(page: Page, sentence: str) -> Locator:
    """The notification that says so, in the list of all: the toast itself goes away after a while."""
    told = page.locator(".notifications-center .notification-list-item", has_text=sentence)

    def listed() -> bool:
        if not page.locator(".notifications-center.visible").count():
            page.locator("[id='status.notifications'] a").click()
            page.mouse.move(0, 0)  # what the bell says of itself would lie over the buttons
            page.wait_for_timeout(1000)
        return told.count() > 0

    wait_until(listed, f"a notification with {sentence!r}", LONG_MS / 1000)
    return told
