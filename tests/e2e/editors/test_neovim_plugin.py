"""The plugin as such: loaded late, documented, its commands."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("pynvim", reason="pynvim is not installed; `make test-editors` brings it.")

from tests.e2e.cases import ADD
from tests.e2e.editors.capabilities import check_capabilities
from tests.e2e.editors.conftest import SERVE
from tests.e2e.editors.neovim import PLUGIN, neovim
from tests.e2e.editors.programs import programs
from tests.engine.processes import WAIT_S, Home

LOADED = """
local modules = vim.tbl_filter(function(name) return name:match("^dg") end, vim.tbl_keys(package.loaded))
io.stdout:write(vim.json.encode({ modules = #modules, command = vim.fn.exists(":Dg") }))
"""


def test_nothing_is_loaded_before_it_is_used(nvim_program: Path, tmp_path: Path):
    script = tmp_path / "loaded.lua"
    script.write_text(LOADED)
    done = subprocess.run(
        [nvim_program, "--clean", "--headless", "--cmd", f"set rtp+={PLUGIN}", "-c", f"luafile {script}", "-c", "qa!"],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=True,
    )
    assert json.loads(done.stdout) == {"modules": 0, "command": 2}


def test_the_capabilities_of_the_newest_are_those_of_its_file(newest: Path, shared: Home, tmp_path: Path):
    programs(tmp_path)
    with neovim(newest, shared, cmd=[str(tmp_path / "recording"), "serve"]) as held:
        held.open(ADD)
        held.attached()
    check_capabilities("neovim", tmp_path)


def test_the_help_has_every_option_and_command(newest: Path, shared: Home, tmp_path: Path):
    shutil.copytree(PLUGIN / "doc", tmp_path / "doc")
    help_text = (PLUGIN / "doc" / "dg.txt").read_text()
    options = re.findall(r'^  (?:\["(?:\w+\.)?)?(\w+)(?:"\])? = \{ "', (PLUGIN / "lua/dg/config.lua").read_text(), re.M)
    assert {"cmd", "restarts", "debounce_ms", "strength"} <= set(options)
    assert [option for option in options if not re.search(rf"\b{option}\b", help_text)] == []
    with neovim(newest, shared, cmd=SERVE) as editor:
        commands = editor.lua("return require('dg.command').complete('', 'Dg ')")
        assert [name for name in commands if f"Dg {name}" not in help_text] == []
        assert {"rewrite", "fix", "fill", "status", "restart", "log"} <= set(commands)
        # Complains of a tag that is there twice.
        editor.command(f"helptags {tmp_path / 'doc'}")
        tags = {line.split("\t")[0] for line in (tmp_path / "doc" / "tags").read_text().splitlines()}
        assert set(re.findall(r"\|((?:dg-|:Dg)[\w-]*)\|", help_text)) <= tags


def test_the_log_is_a_command_away(newest: Path, shared: Home):
    with neovim(newest, shared, cmd=SERVE) as editor:
        editor.open(ADD, insert=False)
        editor.attached()
        editor.command("Dg log")
        assert editor.nvim.current.buffer.name.endswith("lsp.log")
