"""What goes wrong, as a person sees it in VS Code: sentences with buttons, and what an untrusted folder may."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="playwright is not installed; `make test-editors` brings it.")

from playwright.sync_api import expect

from tests.e2e.editors.conftest import model_of
from tests.e2e.editors.pictures import keep
from tests.e2e.editors.window import IN_VSCODE, LONG_MS, is_ready, opened, toast
from tests.e2e.editors.workbench import workbench
from tests.engine.processes import WAIT_S, Home, home

pytestmark = IN_VSCODE


def test_a_missing_server_comes_with_a_button_that_says_how_to_install_it(vsix: Path, shared: Home):
    with workbench(shared, vsix=vsix, server="nowhere/dg-lsp") as held, held.page() as page:
        path = held.work / "file.py"
        path.write_text("x = 1\n")
        opened(held, page, path)
        told = toast(page, "the setting dg-lsp.serverPath, can't be run")
        keep(page, "vscode-missing-server")
        told.get_by_role("button", name="Install…").click()
        # The page of the walkthrough: there is no release that a command could install.
        expect(page.get_by_text("Install the server").first).to_be_visible(timeout=LONG_MS)


def test_a_crash_loop_ends_with_a_button_that_starts_the_server_again(vsix: Path, shared: Home):
    with (
        workbench(shared, {"dg-lsp.engine.model": model_of(shared)}, vsix=vsix, server="crashing") as held,
        held.page() as page,
    ):
        path = held.work / "file.py"
        path.write_text("x = 1\n")
        opened(held, page, path)
        told = toast(page, "ended 4 times by itself")
        # What is started again is another program by now.
        (held.programs / "crashing").write_text((held.programs / "dg-lsp").read_text())
        told.get_by_role("button", name="Restart").click()
        is_ready(page)


def test_a_model_that_is_not_there_comes_with_a_button_that_chooses_another(vsix: Path):
    settings = {"dg-lsp.engine.model": "/nowhere/model.gguf"}
    with home() as place, workbench(place, settings, vsix=vsix) as held, held.page() as page:
        path = held.work / "file.py"
        path.write_text("x = 1\n")
        opened(held, page, path)
        told = toast(page, "There is no model '/nowhere/model.gguf'")
        told.get_by_role("button", name="Choose Model…").click()
        # In a window on another machine, as this one is, such a setting is on that machine's page alone.
        setting = page.locator(".setting-item-contents", has_text="A model's name or folder")
        expect(setting.first).to_be_visible(timeout=WAIT_S * 1000)


def test_a_folder_that_nobody_trusts_starts_no_program_of_its_own(vsix: Path, shared: Home):
    settings = {"security.workspace.trust.enabled": True, "security.workspace.trust.startupPrompt": "never"}
    with workbench(shared, settings, vsix=vsix, server=None) as held, held.page() as page:
        own = held.work / ".venv" / "bin" / "dg-lsp"
        own.parent.mkdir(parents=True)
        own.write_text(f"#!/bin/sh\ntouch {held.work}/started\n")
        own.chmod(0o755)
        # Where pipx and uv put the server; a project's own is not asked.
        good = held.folder / ".local" / "bin" / "dg-lsp"
        good.parent.mkdir(parents=True)
        shutil.copy(held.programs / "dg-lsp", good)
        (held.work / ".vscode").mkdir()
        (held.work / ".vscode" / "settings.json").write_text(json.dumps({"dg-lsp.serverPath": str(own)}))
        path = held.work / "file.py"
        path.write_text("x = 1\n")
        opened(held, page, path)
        expect(page.get_by_text("Restricted Mode").first).to_be_visible(timeout=LONG_MS)
        is_ready(page)
        assert not (held.work / "started").exists()
