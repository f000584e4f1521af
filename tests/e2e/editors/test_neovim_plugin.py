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
from tests.engine.processes import WAIT_S, Home, wait_until

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


def test_suggestions_are_switched_where_a_file_is_kept_from_the_model_too(newest: Path, shared: Home):
    with neovim(newest, shared, cmd=SERVE) as editor:
        editor.open("▮KEY=1\n", ".env", insert=False)
        editor.ready()
        for state in ("off", "on", "off"):
            editor.lua("_G.told = {}")
            editor.command("Dg toggle")
            editor.told(f"Suggestions are {state}.")
        assert editor.status()["enabled"] is False


def test_what_was_switched_off_stays_so_when_the_server_starts_again(nvim_program: Path, shared: Home):
    with neovim(nvim_program, shared, cmd=SERVE) as editor:
        editor.open(ADD, insert=False)
        editor.ready()
        editor.command("Dg toggle")
        editor.told("Suggestions are off.")
        editor.command("Dg restart")
        editor.attached()
        wait_until(lambda: editor.status().get("enabled") is False, "the switch")
        editor.command("Dg toggle")
        editor.told("Suggestions are on.")


def test_settings_that_change_reach_a_server_that_runs(newest: Path, shared: Home):
    with neovim(newest, shared, cmd=SERVE) as editor:
        editor.open(ADD, insert=False)
        editor.ready()
        assert editor.status()["enabled"]
        changed = "vim.tbl_extend('force', require('dg.config').current, { settings = { enabled = false } })"
        editor.lua(f"require('dg').setup({changed})")
        wait_until(lambda: editor.status()["enabled"] is False, "the other setting")


def test_a_selection_that_ends_before_the_cursor_does(newest: Path, shared: Home):
    with neovim(newest, shared, cmd=SERVE) as editor:
        editor.open("▮alpha beta\n", insert=False)
        for selection, ends in (("inclusive", 4), ("exclusive", 3)):
            editor.command(f"set selection={selection}")
            editor.input("0v3l")
            wait_until(lambda: editor.nvim.api.get_mode()["mode"] == "v", "the selection")
            assert editor.lua("return (require('dg.place').selection())")["end_col"] == ends


def test_a_buffer_of_another_language_is_one_for_the_server(nvim_program: Path, shared: Home):
    with neovim(nvim_program, shared, cmd=SERVE) as editor:
        editor.open("▮a: 1\n", "settings.conf", insert=False)
        editor.ready()
        editor.command("Dg toggle language")
        editor.told("Suggestions are off for this language.")
        assert editor.status()["enabled"] is False
        editor.command("set filetype=yaml")
        wait_until(lambda: editor.status()["enabled"], "the other language")
        assert editor.status()["document"]["off"] == ""


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("{ acept = '<C-y>' }", "keys has no action"),
        ("{ accept = true }", "keys.accept is a key or false, not a boolean"),
        ("{ '<Tab>' }", "keys has no action"),
    ],
)
def test_keys_that_are_none_are_refused(newest: Path, shared: Home, keys: str, problem: str):
    with neovim(newest, shared, cmd=SERVE) as editor:
        ran, message = editor.lua(f"return {{ pcall(require('dg').setup, {{ keys = {keys} }}) }}")
        assert not ran
        assert problem in message


def test_health_names_a_program_that_can_not_be_started(nvim_program: Path, shared: Home, tmp_path: Path):
    broken = tmp_path / "dg-lsp"
    broken.write_text("#!/nonexistent\n")
    broken.chmod(0o755)
    with neovim(nvim_program, shared, cmd=[str(broken), "serve"]) as editor:
        editor.command("checkhealth dg")
        report = editor.text
        assert "failed" in report
        assert "Install dg-lsp again." in report
        assert "stack traceback" not in report


LINES = ["a = 1", "b = 2", "c = 9", "d = 4"]


def test_a_proposal_opens_the_fold_that_it_is_in(newest: Path, shared: Home):
    with neovim(newest, shared, cmd=SERVE) as editor:
        editor.open("▮a = 1\nb = 2\nc = 3\nd = 4\n", insert=False)
        editor.command("2,3fold")
        assert editor.lua("return vim.fn.foldclosed(2)") == 2
        editor.lua("require('dg.view.inline').show(...)", editor.nvim.current.buffer.number, LINES, "taken by a key")
        assert editor.lua("return vim.fn.foldclosed(2)") == -1
        assert any("c = 9" in text for *_, text, _ in editor.marks("dg.preview"))


def test_the_log_is_a_command_away(newest: Path, shared: Home):
    with neovim(newest, shared, cmd=SERVE) as editor:
        editor.open(ADD, insert=False)
        editor.attached()
        editor.command("Dg log")
        assert editor.nvim.current.buffer.name.endswith("lsp.log")
