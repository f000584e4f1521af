"""Neovims with the plugins of others, and the settings that our documents give for them."""

from __future__ import annotations

from typing import Any

from tests.e2e.editors.conftest import PATIENT, SERVE
from tests.e2e.editors.lua import as_lua


def server(name: str = "dg", **more: Any) -> str:
    """Neovim's own way to name a language server."""
    config = {"cmd": SERVE, "filetypes": ["python"], "root_markers": ["dg-lsp.toml"], **more}
    return f"vim.lsp.config({as_lua(name)}, {as_lua(config)})\nvim.lsp.enable({as_lua(name)})\n"


def in_menu() -> dict[str, Any]:
    """What has suggestions in the completion menu, too, where Neovim has ghost text of its own."""
    return {"init_options": {**PATIENT, "completion": "on"}}
