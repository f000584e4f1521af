"""What goes wrong in an editor's life, seen from a real Neovim."""

from __future__ import annotations

import os
import signal
import sys
import zlib
from pathlib import Path

import psutil
import pytest

pytest.importorskip("pynvim", reason="pynvim is not installed; `make test-editors` brings it.")

from tests.e2e.cases import ADD, CALL
from tests.e2e.editors.conftest import PATIENT, SERVE
from tests.e2e.editors.edit_cases import SLOW_OLD
from tests.e2e.editors.neovim import Neovim, neovim
from tests.e2e.editors.programs import programs
from tests.engine.processes import Home, home, wait_until

OFF = "vim.lsp.enable('dg', false)"
STARTED = "return #vim.lsp.get_clients({ name = 'dg', _uninitialized = true })"


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """Servers that fail in their own ways."""
    programs(tmp_path)
    return tmp_path


def test_a_missing_server_is_named_once(newest, shared: Home):
    with neovim(newest, shared, cmd=["/nowhere/dg-lsp"]) as editor:
        editor.open(ADD)
        editor.told("/nowhere/dg-lsp, the `cmd` in setup(), can't be run; correct it.")
        editor.open(ADD, "other.py", insert=False)
        editor.input("<Esc>:Dg status<CR>")
        wait_until(lambda: len(editor.messages) == 2, "the answer to :Dg status")
        assert editor.messages[0] == editor.messages[1]


def test_a_server_on_the_path_is_found(nvim_program, shared: Home, odd: Path):
    with neovim(nvim_program, shared, settings=PATIENT) as editor:
        editor.lua("vim.env.VIRTUAL_ENV = nil vim.env.PATH = ...", str(odd))
        editor.open(ADD)
        editor.sees("a + b")


def test_a_crash_loop_ends_with_a_sentence_and_a_restart_helps(nvim_program, shared: Home, odd: Path):
    with neovim(nvim_program, shared, cmd=[str(odd / "crashing"), "serve"], settings=PATIENT, restarts=1) as editor:
        editor.open(ADD)
        editor.told("The server ended 2 times by itself (exit code 3, signal 0)")
        assert editor.lua("return #vim.lsp.get_clients({ name = 'dg' })") == 0
        editor.lua("require('dg.config').current.cmd = ...", SERVE)
        editor.input("<Esc>:Dg restart<CR>A")
        editor.sees("a + b")


@pytest.mark.parametrize(
    ("stop", "hangs"),
    [("client:stop()", False), ("client:stop(true)", False), (OFF, False), (OFF, True)],
)
def test_a_server_that_neovim_was_told_to_stop_stays_so(nvim_program, shared: Home, stop: str, hangs: bool):
    with neovim(nvim_program, shared, cmd=SERVE) as editor:
        editor.open(ADD, insert=False)
        editor.attached()
        server = editor.server_pid()
        if hangs:
            os.kill(server, signal.SIGSTOP)
        editor.lua(f"local client = vim.lsp.get_clients({{ name = 'dg' }})[1] {stop}")
        if hangs:
            os.kill(server, signal.SIGKILL)
        wait_until(lambda: not psutil.pid_exists(server), "the server's end")
        # One that crashed would be started again by then.
        editor.lua("vim.wait(1000)")
        assert editor.lua(STARTED) == 0


@pytest.mark.parametrize("early", [False, True])
def test_a_server_that_hangs_is_killed_for_a_restart(nvim_program, shared: Home, odd: Path, early: bool):
    cmd = [str(odd / "hanging"), "serve"] if early else SERVE
    with neovim(nvim_program, shared, cmd=cmd, settings=PATIENT) as editor:
        editor.open(ADD)
        if early:
            wait_until(lambda: editor.lua(STARTED), "the server's beginning")
            editor.lua("require('dg.config').current.cmd = ...", SERVE)
        else:
            editor.sees("a + b")
        (server,) = editor.lua("return vim.api.nvim_get_proc_children(vim.fn.getpid())")
        os.kill(server, signal.SIGSTOP)
        editor.input("<Esc>:Dg restart<CR>A")
        wait_until(lambda: not psutil.pid_exists(server), "the server's end")
        editor.sees("a + b")
        assert editor.lua(STARTED) == 1


@pytest.mark.parametrize("crashes", [False, True])
def test_a_rewrite_ends_with_its_server(nvim_program, shared: Home, crashes: bool):
    with neovim(nvim_program, shared, cmd=SERVE, settings=PATIENT, edit={"strength": 1}) as editor:
        editor.open("▮" + SLOW_OLD, insert=False)
        editor.ready()
        editor.input(":2Dg rewrite<Space>faster<CR>")
        wait_until(lambda: editor.marks("dg.working"), "the work's beginning")
        if crashes:
            os.kill(editor.server_pid(), signal.SIGKILL)
        else:
            editor.command("Dg restart")
        wait_until(lambda: editor.marks("dg.working") == [], "its end")
        assert not editor.lua("return require('dg.edit').is_busy()")


def test_a_server_that_is_too_old_is_named(newest, shared: Home, odd: Path):
    with neovim(newest, shared, cmd=[str(odd / "outdated"), "serve"]) as editor:
        editor.open(ADD)
        editor.told("dg-lsp 0.0.9 is too old, this plugin needs 0.1.0")
        wait_until(lambda: not editor.lua("return #vim.lsp.get_clients({ name = 'dg' })"), "the old server to end")


def test_a_huge_file_a_remote_file_and_a_scratch_buffer_are_left_alone(newest, shared: Home):
    with neovim(newest, shared, cmd=SERVE, max_file_bytes=1000) as editor:
        refused = "return require('dg.guard').refused[vim.api.nvim_get_current_buf()]"
        editor.open("▮" + "x = 1\n" * 300, insert=False)
        assert "more than max_file_bytes (1000)" in editor.lua(refused)
        editor.input(":Dg rewrite shorter<CR>")
        editor.told("This file has 1800 bytes")
        editor.command("enew | file scp://host/file.py | setlocal filetype=python")
        assert "on another machine" in editor.lua(refused)
        editor.command("new | setlocal buftype=nofile filetype=python")
        assert editor.lua("return #vim.lsp.get_clients({ bufnr = 0 })") == 0


@pytest.mark.parametrize("naming", ["file x.py", "write x.py"])
def test_a_buffer_is_served_once_it_has_a_name(nvim_program, shared: Home, naming: str):
    with neovim(nvim_program, shared, cmd=SERVE) as editor:
        editor.command("enew | setlocal filetype=python")
        editor.input(":Dg status<CR>")
        editor.told("This buffer has no name yet; write it to a file to get suggestions.")
        assert editor.lua("return #vim.lsp.get_clients({ bufnr = 0 })") == 0
        editor.command(naming)
        editor.attached()


@pytest.mark.parametrize("naming", ["file other.py", "saveas other.py"])
def test_a_buffer_that_gets_another_name_is_another_document(nvim_program, shared: Home, naming: str):
    with neovim(nvim_program, shared, cmd=SERVE, settings=PATIENT) as editor:
        editor.open(ADD)
        editor.sees("a + b")
        editor.input("<Esc>")
        editor.lua(NOTIFIED)
        editor.command(naming)
        editor.attached()
        editor.input("Aa")
        editor.sees(" + b")
        assert _known(editor) == zlib.crc32(editor.text.encode())
        told = editor.lua("return _G.notified")
        assert ["textDocument/didClose", "file.py"] in told
        assert ["textDocument/didOpen", "other.py"] in told
        assert not [name for method, name in told if name == "file.py" and method != "textDocument/didClose"]


def test_a_proposal_ends_where_its_buffer_gets_another_name(newest, shared: Home):
    with neovim(newest, shared, cmd=SERVE, settings=PATIENT, edit={"strength": 1}) as editor:
        editor.open("▮" + SLOW_OLD, insert=False)
        editor.ready()
        editor.input(":2Dg rewrite<Space>faster<CR>")
        wait_until(lambda: editor.marks("dg.working"), "the work's beginning")
        editor.command("file other.py")
        wait_until(lambda: editor.marks("dg.working") == [], "its end")
        assert not editor.lua("return require('dg.edit').is_busy()")
        assert not editor.lua("return require('dg.preview').is_open()")


NOTIFIED = """
_G.notified = {}
local client = vim.lsp.get_clients({ name = "dg" })[1]
local notify = client.rpc.notify
client.rpc.notify = function(method, params)
  if method:match("^textDocument/did") and params.textDocument then
    table.insert(_G.notified, { method, vim.fs.basename(params.textDocument.uri) })
  end
  return notify(method, params)
end
"""


def test_a_read_only_buffer_is_not_rewritten(newest, shared: Home):
    with neovim(newest, shared, cmd=SERVE) as editor:
        editor.open(ADD, insert=False)
        editor.attached()
        editor.command("setlocal readonly")
        editor.input(":Dg rewrite shorter<CR>")
        editor.told("This buffer is read-only.")


def test_a_model_that_is_not_there_is_told_once(nvim_program):
    settings = {"engine": {"model": "/nowhere/model.gguf"}}
    with home() as place, neovim(nvim_program, place, cmd=SERVE, settings=settings) as editor:
        editor.open(ADD)
        editor.told("dg: There is no model '/nowhere/model.gguf'")
        editor.input("a<BS>")
        editor.command("Dg restart")
        editor.attached()
        wait_until(lambda: editor.status()["state"] == "error", "the same again")
        assert len(editor.messages) == 1


def test_why_nothing_is_shown_is_told_by_the_status(newest, shared: Home):
    with neovim(newest, shared, cmd=SERVE, settings={"inline": {"deadline_ms": 20_000, "threshold": 1}}) as editor:
        editor.open(ADD)
        wait_until(lambda: editor.status().get("silence"), "a request that shows nothing")
        editor.input("<Esc>:Dg status<CR>")
        editor.told("the model's confidence was below inline.threshold")


def test_two_editors_share_an_engine(newest, shared: Home):
    options = {"cmd": SERVE, "settings": PATIENT}
    with neovim(newest, shared, **options) as one, neovim(newest, shared, **options) as other:
        one.open(ADD)
        other.open(ADD)
        one.sees("a + b")
        other.sees("a + b")
        assert _engine_pid(one) == _engine_pid(other)
        assert one.server_pid() != other.server_pid()


def test_an_engine_that_is_killed_comes_back(nvim_program):
    with home() as place:
        settings = {**PATIENT, "engine": {"model": place.oracle(ADD, CALL)}}
        with neovim(nvim_program, place, cmd=SERVE, settings=settings) as editor:
            editor.open(ADD)
            editor.ready()
            editor.sees("a + b")
            first = _engine_pid(editor)
            os.kill(first, signal.SIGKILL)
            wait_until(lambda: not psutil.pid_exists(first), "the engine's end")
            editor.input("<Esc>")
            # Something new: what was suggested before is known without a model.
            editor.open(CALL, "other.py")
            editor.sees("compute(first, second)")
            editor.ready()
            assert _engine_pid(editor) != first


def test_a_document_that_the_server_lost_track_of_is_sent_again(nvim_program, shared: Home):
    with neovim(nvim_program, shared, cmd=SERVE, settings=PATIENT) as editor:
        editor.open(ADD)
        editor.sees("a + b")
        editor.lua(_UNREADABLE_CHANGE)
        # Typed before anything is known to be wrong.
        editor.input("a")
        wait_until(lambda: _known(editor) == zlib.crc32(editor.text.encode()), "the text as it is")
        editor.sees(" + b")
        assert editor.lua("return require('dg.status').current.state") in ("ready", "busy")


def test_a_buffer_that_was_changed_without_a_server_is_followed_by_the_next(nvim_program, shared: Home):
    with neovim(nvim_program, shared, cmd=SERVE, settings=PATIENT, restarts=0) as editor:
        editor.open(ADD)
        editor.sees("a + b")
        os.kill(editor.server_pid(), signal.SIGKILL)
        editor.told("The server ended 1 times by itself")
        editor.input("a")
        wait_until(lambda: "return a" in editor.text, "the key without a server")
        editor.command("Dg restart")
        editor.sees(" + b")
        editor.input(" +")
        wait_until(lambda: _known(editor) == zlib.crc32(editor.text.encode()), "the text as it is")
        editor.sees(" b")


def test_leaving_the_editor_ends_the_server(newest, shared: Home):
    with neovim(newest, shared, cmd=SERVE, settings=PATIENT) as editor:
        editor.open(ADD)
        editor.sees("a + b")
        server = psutil.Process(editor.server_pid())
    wait_until(lambda: not server.is_running(), "the server's end")


def test_a_wrong_option_is_named(newest, shared: Home):
    with neovim(newest, shared, cmd=SERVE) as editor:
        given = "return { pcall(require('dg').setup, ...) }"
        assert (
            editor.lua(given, {"cmds": ["x"]})[1] == 'dg.setup: unknown option "cmds"; `:help dg-options` has them all'
        )
        assert editor.lua(given, {"ghost": {"enabled": 1}})[1] == "dg.setup: ghost.enabled is a boolean, not a number"
        assert (
            editor.lua(given, {"edit": {"view": "popup"}})[1]
            == 'dg.setup: edit.view is "inline" or "split", not "popup"'
        )


def test_the_health_check_knows_it_all(nvim_program, shared: Home):
    with neovim(nvim_program, shared, cmd=SERVE, settings=PATIENT) as editor:
        editor.open(ADD)
        editor.sees("a + b")
        editor.input("<Esc>")
        editor.command("checkhealth dg")
        report = editor.text
        assert "ERROR" not in report
        assert f"OK dg-lsp 0.1.0: {sys.executable} -m dg_lsp serve" in report.replace("✅ ", "")
        assert "The server is ready, the engine runs oracle:" in report


def test_the_status_is_told_in_words(newest, shared: Home):
    with neovim(newest, shared, cmd=SERVE, settings=PATIENT) as editor:
        editor.open(ADD, insert=False)
        editor.ready()
        editor.input(":Dg status<CR>")
        assert editor.told("ready · oracle:").endswith(" on cpu")
        wait_until(lambda: editor.lua("return require('dg').statusline()") == "dg", "the status line")
        loading = "require('dg.status').set({ state = 'loading', percent = %s }) return require('dg').statusline()"
        assert editor.lua(loading % "vim.NIL") == "dg …"
        assert editor.lua(loading % "40.0") == "dg 40%%"
        editor.input(":Dg nonsense<CR>")
        editor.told("There is no `:Dg nonsense`")
        editor.input(":Dg toggle langauge<CR>")
        editor.told("There is no `:Dg toggle langauge`; name folder or language")


_UNREADABLE_CHANGE = """
vim.lsp.get_clients({ name = "dg" })[1]:notify("textDocument/didChange", {
  textDocument = { uri = vim.uri_from_bufnr(0), version = 1000 },
  contentChanges = 3,
})
"""


def _known(editor: Neovim) -> int | None:
    return editor.status()["document"].get("crc32")


def _engine_pid(editor: Neovim) -> int:
    return editor.status(engine=True)["engine"]["pid"]
