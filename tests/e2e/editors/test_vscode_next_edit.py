"""The next edit in a real VS Code: shown, reached, accepted, undone, dismissed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="playwright is not installed; `make test-editors` brings it.")

from playwright.sync_api import Page, expect

from tests.e2e.cases import BOTH, RENAMED
from tests.e2e.editors.install import vscode
from tests.e2e.editors.pictures import keep
from tests.e2e.editors.window import IN_VSCODE, LONG_MS, is_ready, opened, saved
from tests.e2e.editors.workbench import Workbench, workbench
from tests.engine.processes import Home, wait_until

pytestmark = IN_VSCODE
NEW = RENAMED.replace("▮", "")
OLD = NEW.replace("width", "size")
HALF = OLD.replace("size", "width", 1)
DRAWN = """() => [...document.querySelectorAll(".view-lines span")].flatMap((span) => {
    const struck = getComputedStyle(span).textDecorationLine === "line-through" && !span.children.length;
    const after = getComputedStyle(span, "::after").content.replaceAll("\\u00a0", " ");
    return [
        ...(struck ? [`-${span.textContent}`] : []),
        ...(after !== "none" && after !== "normal" ? [`+${JSON.parse(after)}`] : []),
    ];
})"""
"""What is struck out, and what is drawn behind text."""


@pytest.fixture(scope="module", params=[vscode.NEWEST, vscode.OLDEST])
def window(request: pytest.FixtureRequest, vsix: Path, shared: Home) -> Iterator[tuple[Workbench, Page]]:
    """No ghost text that Tab would take first."""
    settings = {"editor.inlineSuggest.enabled": False, "editor.wordBasedSuggestions": "currentDocument"}
    with workbench(shared, settings, vsix=vsix, version=request.param) as held, held.page() as page:
        yield held, page


def begin(window: tuple[Workbench, Page], name: str, text: str) -> Path:
    """Open a file of this text, with the cursor at its begin."""
    held, page = window
    path = held.work / name
    path.write_text(text)
    opened(held, page, path)
    is_ready(page)
    page.keyboard.press("Control+Home")
    return path


def rename(page: Page, text: str) -> None:
    """Change the first "size", in the cursor's line, to "width" as a person does."""
    for _ in range(text.index("size")):
        page.keyboard.press("ArrowRight")
    for _ in "size":
        page.keyboard.press("Shift+ArrowRight")
    page.keyboard.type("width")


def shows(page: Page, *drawn: str) -> None:
    wait_until(lambda: set(page.evaluate(DRAWN)) == set(drawn), f"{drawn}, not {page.evaluate(DRAWN)}")


def test_it_is_shown_reached_accepted_and_undone_in_one_step(window: tuple[Workbench, Page]):
    path = begin(window, "scaled.py", OLD)
    page = window[1]
    rename(page, OLD)
    shows(page, "-size", "+width")
    keep(page, "vscode-next-edit")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Ln 2, Col 12")).to_be_visible(timeout=LONG_MS)
    saved(page, path, HALF.rstrip())
    page.keyboard.press("Tab")
    saved(page, path, NEW.rstrip())
    shows(page)
    page.keyboard.press("Control+z")
    saved(page, path, HALF.rstrip())


def test_tab_is_the_user_s_own_while_nothing_is_shown_and_what_is_dismissed_does_not_come_again(
    window: tuple[Workbench, Page],
):
    path = begin(window, "own.py", OLD)
    page = window[1]
    page.keyboard.press("Tab")
    saved(page, path, f"    {OLD}".rstrip())
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+Home")
    rename(page, OLD)
    shows(page, "-size", "+width")
    page.keyboard.press("Control+End")
    page.keyboard.press("Control+Space")
    words = page.locator(".suggest-widget.visible")
    expect(words).to_be_visible(timeout=LONG_MS)
    page.keyboard.press("Escape")
    expect(words).to_have_count(0, timeout=LONG_MS)
    shows(page, "-size", "+width")
    page.keyboard.press("Escape")
    shows(page)
    page.keyboard.press("Alt+n")
    expect(page.get_by_text("Nothing follows from the last change.").first).to_be_visible(timeout=LONG_MS)
    page.keyboard.press("Control+End")
    page.keyboard.press("Tab")
    saved(page, path, HALF.rstrip())
    assert path.read_text() == f"{HALF}    "


def test_what_is_linked_is_accepted_one_by_one_or_at_once(window: tuple[Workbench, Page]):
    path = begin(window, "both.py", BOTH)
    page = window[1]
    all_done, half = BOTH.replace("size", "width"), BOTH.replace("size", "width", 1)
    rename(page, BOTH)
    shows(page, "-size", "+width")
    wait_until(lambda: len(page.evaluate(DRAWN)) == 4, "both places")
    page.keyboard.press("Alt+a")
    saved(page, path, all_done.rstrip())
    shows(page)
    page.keyboard.press("Control+z")
    saved(page, path, half.rstrip())
    path = begin(window, "one_by_one.py", BOTH)
    rename(page, BOTH)
    wait_until(lambda: len(page.evaluate(DRAWN)) == 4, "both places")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    wait_until(lambda: len(page.evaluate(DRAWN)) == 2, "the place that is left")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    saved(page, path, all_done.rstrip())
    shows(page)


def test_it_comes_only_when_asked_where_it_is_set_so_and_is_told_at_the_edge(window: tuple[Workbench, Page]):
    held, page = window
    told = held.work / ".vscode" / "settings.json"
    told.parent.mkdir()
    # So that only the first line is on screen.
    told.write_text(json.dumps({"dg-lsp.next_edit": "on_key", "editor.lineHeight": 150}))
    page.set_viewport_size({"width": 960, "height": 300})
    path = begin(window, "on_key.py", OLD)
    rename(page, OLD)
    saved(page, path, HALF.rstrip())
    page.wait_for_timeout(2000)
    shows(page)
    page.keyboard.press("Alt+n")
    wait_until(lambda: "+↓ line 2 Tab" in page.evaluate(DRAWN), "the hint below")
    page.keyboard.press("Tab")
    shows(page, "-size", "+width")
    for _ in range(2):
        page.keyboard.press("Control+ArrowDown")
    wait_until(lambda: "+↑ line 2 Tab" in page.evaluate(DRAWN), "the hint above")
    page.keyboard.press("Tab")
    saved(page, path, NEW.rstrip())
    page.keyboard.press("Control+z")
    page.keyboard.press("Alt+n")
    shows(page, "-size", "+width")
    page.keyboard.type(" ")
    shows(page)
