"""Pictures of real runs, for the documentation: `DG_LSP_PICTURES=docs/images` keeps them."""

from __future__ import annotations

import os
from pathlib import Path

from playwright.sync_api import Page


def keep(page: Page, name: str) -> None:
    """A picture of a page."""
    folder = os.environ.get("DG_LSP_PICTURES")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder) / f"{name}.png")
