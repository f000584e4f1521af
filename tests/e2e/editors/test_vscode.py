"""The extension in a real VS Code: its own tests inside the extension host, and a person in front of the window."""

from __future__ import annotations

import contextlib
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="playwright is not installed; `make test-editors` brings it.")

from playwright.sync_api import expect

from tests.e2e.cases import BODY
from tests.e2e.editors.capabilities import check_capabilities
from tests.e2e.editors.conftest import bundled_case, model_of
from tests.e2e.editors.edit_cases import BY_TWO, HINTED, LINES
from tests.e2e.editors.install import vscode
from tests.e2e.editors.pictures import keep
from tests.e2e.editors.window import GHOST, IN_VSCODE, LONG_MS, is_ready, opened, saved, toast
from tests.e2e.editors.workbench import workbench
from tests.engine.processes import WAIT_S, Home, home, wait_until
from tests.engine.talking import Talking

pytestmark = IN_VSCODE


def test_what_is_installed_holds_what_it_needs_and_no_more(vsix: Path):
    names = {name.removeprefix("extension/") for name in zipfile.ZipFile(vsix).namelist()}
    assert {"package.json", "dist/extension.js", "media/server.md", "readme.md"} <= {
        name.lower() for name in names
    } | names
    assert not [name for name in names if name.startswith(("src/", "test/", "out/", "node_modules/", "scripts/"))]
    assert vsix.stat().st_size < 1_000_000


@pytest.mark.timeout(2400)  # thirty tests; one that hangs is noticed by its silence
@pytest.mark.usefixtures("vsix")
@pytest.mark.parametrize("version", [vscode.NEWEST, vscode.OLDEST])
def test_inside_the_extension_host(shared: Home, version: str):
    with workbench(shared, {"dg-lsp.engine.model": model_of(shared)}, version=version) as held:
        lines = held.run_host_tests()
    assert any(line.endswith(" passed, 0 failed") for line in lines), "\n".join(lines)


def test_its_capabilities_are_those_of_its_file(vsix: Path, shared: Home):
    with workbench(shared, vsix=vsix, server="recording") as held, held.page() as page:
        path = held.work / "total.py"
        path.write_text("\n")
        opened(held, page, path)
        is_ready(page)
        check_capabilities("vscode", held.programs)


def test_a_person_types_takes_and_rewrites(vsix: Path, shared: Home):
    with workbench(shared, vsix=vsix) as held, held.page() as page:
        path = held.work / "total.py"
        path.write_text("\n")
        opened(held, page, path)
        is_ready(page)
        page.keyboard.press("Control+Home")
        page.keyboard.type("def total(items):\n")
        expect(page.locator(GHOST, has_text="return").first).to_be_visible(timeout=LONG_MS)
        keep(page, "vscode-ghost-text")
        page.keyboard.press("Tab")
        saved(page, path, BODY.replace("▮", "").rstrip())
        path = held.work / "growth.py"
        path.write_text(LINES)
        opened(held, page, path)
        is_ready(page)
        page.keyboard.press("Control+Home")
        for _ in range(2):
            page.keyboard.press("ArrowDown")
        page.keyboard.press("Shift+End")
        page.keyboard.press("Control+Shift+R")
        page.get_by_text("Rewrite Selection…").first.click(timeout=WAIT_S * 1000)
        page.locator(".quick-input-widget input").first.fill("by two")
        page.wait_for_timeout(1000)  # the box fades in
        keep(page, "vscode-rewrite")
        page.keyboard.press("Enter")
        expect(page.get_by_text("Proposal 1 of").first).to_be_visible(timeout=WAIT_S * 1000)
        page.wait_for_timeout(1500)  # the diff is drawn piece by piece
        keep(page, "vscode-proposal")
        page.keyboard.press("Control+Enter")
        expect(page.get_by_text("Proposal 1 of")).to_have_count(0, timeout=WAIT_S * 1000)
        saved(page, path, BY_TWO.rstrip())
        page.keyboard.press("F1")
        page.locator(".quick-input-widget input").first.fill(">dg-lsp: Rewrite Selection")
        page.keyboard.press("Enter")
        asked_before = page.locator(".quick-input-list .monaco-list-row", has_text="by two")
        expect(asked_before).to_be_visible(timeout=WAIT_S * 1000)


def test_a_person_rewrites_by_a_coder_and_undoes_it(vsix: Path, coder: tuple[Home, Talking]):
    place, model = coder

    def says(text: str) -> None:
        model.says = f"{text.rstrip()}\n```"

    with workbench(place, vsix=vsix) as held, held.page() as page:
        path = held.work / "growth.py"
        path.write_text(LINES)
        opened(held, page, path)
        is_ready(page)

        def selected(first: int, last: int) -> None:
            page.keyboard.press("Control+Home")
            for _ in range(first - 1):
                page.keyboard.press("ArrowDown")
            for _ in range(last - first):
                page.keyboard.press("Shift+ArrowDown")
            page.keyboard.press("Shift+End")

        def chosen(title: str, first: int, last: int) -> None:
            def clicked() -> bool:
                # The grammar is looked at for a while at the most; a menu that came too early lacks titles.
                selected(first, last)
                page.keyboard.press("Control+Shift+R")
                page.wait_for_timeout(1500)
                if page.get_by_text(title).count():
                    page.get_by_text(title).first.click(timeout=WAIT_S * 1000)
                    return True
                page.keyboard.press("Escape")
                return False

            wait_until(clicked, title, LONG_MS / 1000)

        def instructed(instruction: str) -> None:
            page.locator(".quick-input-widget input").first.fill(instruction)
            page.wait_for_timeout(1000)  # the box fades in
            page.keyboard.press("Enter")

        def taken(text: str) -> None:
            proposal = page.get_by_text("Proposal 1 of")
            expect(proposal.first).to_be_visible(timeout=WAIT_S * 1000)
            assert path.read_text() == LINES

            def accepted() -> bool:
                # The keys are the proposal's once its diff is drawn; before that they do nothing there.
                page.wait_for_timeout(1500)
                page.keyboard.press("Control+Enter")
                with contextlib.suppress(AssertionError):
                    expect(proposal).to_have_count(0, timeout=20_000)
                return not proposal.count()

            wait_until(accepted, "the proposal's end", LONG_MS / 1000)
            saved(page, path, text.rstrip())
            page.keyboard.press("Control+z")
            saved(page, path, LINES.rstrip())

        function = BY_TWO.partition("\n")[2]
        says(function)
        chosen("Rewrite Selection…", 2, 5)
        instructed("by two")
        taken(BY_TWO)
        assert "Rewrite the selected code: by two" in model.heard[0][-1]["content"]

        says(HINTED.partition("\n")[2])
        chosen("Add type hints", 2, 5)
        taken(HINTED)
        assert "Add type hints to all parameters" in model.heard[-1][-1]["content"]

        # Of three lines the first and the last are selected.
        says("size += 2\ntotal = 7\nreturn total - 1")
        page.locator(".view-line", has_text="size = size + 1").first.click()
        page.locator(".view-line", has_text="return total").first.click(modifiers=["Alt"])
        page.keyboard.press("Home")
        page.keyboard.press("Shift+End")
        page.keyboard.press("F1")
        page.locator(".quick-input-widget input").first.fill(">dg-lsp: Rewrite Selection")
        page.keyboard.press("Enter")
        asked_before = page.locator(".quick-input-list .monaco-list-row", has_text="by two")
        expect(asked_before).to_be_visible(timeout=WAIT_S * 1000)
        instructed("by two, and one less")
        taken(BY_TWO.replace("return total", "return total - 1"))

        says("")
        chosen("Rewrite Selection…", 4, 4)
        instructed("remove this")
        taken(LINES.replace("    total = size * 2\n", "\n"))


def test_the_bundled_model_suggests_in_the_window(vsix: Path):
    settings = {"dg-lsp.inline.threshold": 0, "dg-lsp.inline.deadline_ms": 60_000}
    with home() as place, workbench(place, settings, vsix=vsix) as held, held.page() as page:
        path = held.work / "matrix.py"
        path.write_text(f"{bundled_case().split('▮')[0]}\n")
        opened(held, page, path)
        is_ready(page)
        told = toast(page, "`dg-lsp pull coder-1.5b`")
        told.get_by_role("button", name="Download a Model…").click()
        expect(page.locator(".quick-input-list", has_text="coder-0.5b")).to_be_visible(timeout=WAIT_S * 1000)
        page.keyboard.press("Escape")
        page.locator(".monaco-editor .view-lines").first.click()
        page.keyboard.press("Control+End")
        page.keyboard.press("ArrowLeft")

        def suggested() -> bool:
            page.keyboard.type(" ")
            page.keyboard.press("Backspace")
            page.wait_for_timeout(3000)
            return page.locator(GHOST).count() > 0

        wait_until(suggested, "a suggestion of the bundled model", 4 * WAIT_S)
