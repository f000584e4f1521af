"""A real VS Code whose suggestions come from a server's model: its status bar says where text goes, always."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="playwright is not installed; `make test-editors` brings it.")

from playwright.sync_api import expect

from tests.e2e.editors.remote import PROGRAM, settings
from tests.e2e.editors.window import GHOST, IN_VSCODE, LONG_MS, opened, saved
from tests.e2e.editors.workbench import workbench
from tests.engine.models.remote.fake_server import KEY, fake_server
from tests.engine.processes import home

pytestmark = IN_VSCODE


def test_the_status_bar_says_where_text_goes_also_when_the_server_is_away(vsix: Path):
    with home(DG_LSP_SERVER_KEY=KEY) as place, ExitStack() as serving:
        server = serving.enter_context(fake_server())
        told = settings(f"http://127.0.0.1:{server.port}")
        flat = {f"dg-lsp.{part}.{name}": value for part, held in told.items() for name, value in held.items()}
        with workbench(place, flat, vsix=vsix) as held, held.page() as page:
            path = held.work / "toy.py"
            path.write_text(PROGRAM.replace("▮", ""))
            opened(held, page, path)
            where = f"dg → 127.0.0.1:{server.port}"
            item = page.get_by_role("button", name=f"Text around the cursor is sent to http://127.0.0.1:{server.port}.")
            expect(item).to_have_text(where, timeout=LONG_MS)
            page.keyboard.press("Control+Home")
            for key in ("ArrowDown", "ArrowDown", "End"):
                page.keyboard.press(key)
            page.keyboard.type("=")
            expect(page.locator(GHOST).first).to_be_visible(timeout=LONG_MS)
            page.keyboard.press("Tab")
            saved(page, path, PROGRAM.replace("▮", "= d * 7").rstrip())
            serving.close()
            page.keyboard.type(" ")
            away = page.get_by_role(
                "button", name="`dg-lsp engine restart --model bundled` switches to the model of this"
            )
            expect(away).to_have_text(where, timeout=LONG_MS)
