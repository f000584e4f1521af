"""The next edit in real Neovims: shown, reached, accepted, undone, dismissed."""

from __future__ import annotations

import pytest

pytest.importorskip("pynvim", reason="pynvim is not installed; `make test-editors` brings it.")

from tests.e2e.cases import BOTH, RENAMED
from tests.e2e.editors.conftest import PATIENT, SERVE
from tests.e2e.editors.neovim import Neovim, neovim
from tests.engine.processes import Home, wait_until

NEW = RENAMED.replace("▮", "")
OLD = NEW.replace("width", "size")
HALF = OLD.replace("size", "width", 1)
SHOWN = "return require('dg.next_edit').is_shown()"
BOTH_HALF, BOTH_NEW = BOTH.replace("size", "width", 1), BOTH.replace("size", "width")
TOLD = """
_G.accepted = {}
local client = vim.lsp.get_clients({ name = "dg" })[1]
local request = client.request
client.request = function(self, method, params, ...)
  if method == "workspace/executeCommand" then
    table.insert(_G.accepted, params.arguments[1].all == true)
  end
  return request(self, method, params, ...)
end
"""


@pytest.fixture
def editor(nvim_program, shared: Home):
    """An editor with the suggested keys, and no ghost text that Tab would take first."""
    with neovim(
        nvim_program, shared, cmd=SERVE, settings=PATIENT, keys=True, ghost={"enabled": False}, next_edit=QUICK
    ) as held:
        yield held


QUICK = {"debounce_ms": 50}


def rename(editor: Neovim, text: str = OLD, name: str = "file.py") -> None:
    """Change the first "size" to "width" as a person does."""
    editor.open("▮" + text, name, insert=False)
    editor.ready()
    editor.input("/size<CR>ciwwidth<Esc>")


def shown(editor: Neovim) -> list[tuple[int, int, str, int]]:
    wait_until(lambda: editor.lua(SHOWN), "a next edit")
    return editor.marks("dg.next_edit")


def cursor(editor: Neovim) -> list[int]:
    return editor.lua("return vim.api.nvim_win_get_cursor(0)")


def test_it_is_shown_reached_accepted_and_undone_in_one_step(editor: Neovim):
    rename(editor)
    at = OLD.splitlines()[1].index("size")
    assert (1, at + 4, "width", 1) in shown(editor)
    assert editor.text == HALF
    editor.input("<Tab>")
    wait_until(lambda: cursor(editor) == [2, at], "the cursor at the place")
    assert editor.text == HALF
    editor.input("<Tab>")
    wait_until(lambda: editor.text == NEW, "the edit in the text")
    assert editor.marks("dg.next_edit") == []
    editor.input("u")
    wait_until(lambda: editor.text == HALF, "the text as it was")


def test_lines_of_a_file_with_carriage_returns_come_without_them(editor: Neovim):
    editor.open("▮first = measured(size)\nsecond = measured(size)\n", insert=False)
    editor.command("setlocal fileformat=dos | write | edit | setlocal indentexpr= noautoindent")
    editor.ready()
    editor.input("/size<CR>ciw<CR>width<CR><Esc>")
    assert [text for _, _, text, _ in shown(editor) if text] == ["\nwidth\n"]
    editor.input("<M-a>")
    wait_until(lambda: "size" not in editor.text, "the edit in the text")
    assert editor.text == "first = measured(\nwidth\n)\nsecond = measured(\nwidth\n)\n"


def test_tab_is_the_user_s_own_while_nothing_is_shown(editor: Neovim):
    editor.lua("vim.keymap.set('n', '<Tab>', function() _G.own = (_G.own or 0) + 1 end)")
    editor.open("▮" + OLD, insert=False)
    editor.ready()
    editor.lua("vim.keymap.set('n', '<Esc>', function() _G.left = true end, { buffer = 0 })")
    editor.input("<Tab>")
    wait_until(lambda: editor.lua("return _G.own") == 1, "the user's own mapping")
    editor.input("/size<CR>ciwwidth<Esc>")
    shown(editor)
    editor.input("<Tab><Tab>")
    wait_until(lambda: editor.text == NEW, "the edit in the text")
    assert editor.lua("return _G.own") == 1
    wait_until(lambda: not editor.lua(SHOWN), "the hint's end")
    editor.input("<Tab><Esc>")
    wait_until(lambda: editor.lua("return _G.own") == 2 and editor.lua("return _G.left"), "the user's own mappings")


def test_a_key_right_behind_tab_is_pressed_at_the_place(editor: Neovim):
    rename(editor)
    shown(editor)
    editor.input("<Tab>~")
    wait_until(lambda: editor.text == HALF.replace("size", "Size"), "the key at the place")


def test_tab_right_behind_a_change_is_a_tab(editor: Neovim):
    rename(editor)
    editor.command("setlocal noexpandtab softtabstop=0")
    shown(editor)
    editor.input("Aabc<Tab>x")
    wait_until(lambda: editor.text == HALF.replace("\n", "abc\tx\n", 1), "a tab in the text")


def test_what_is_off_screen_is_told_at_the_edge(editor: Neovim):
    editor.command("new | wincmd p | resize 1")
    rename(editor)
    shown(editor)
    assert wait_until(lambda: editor.lua(HINTS), "the hint at the edge") == [[0, " ↓ line 2 <Tab> "]]
    editor.input("<Tab>")
    wait_until(lambda: cursor(editor)[0] == 2, "the jump")
    wait_until(lambda: not editor.lua(HINTS), "the hint's end")
    editor.input("gg")
    wait_until(lambda: editor.lua(HINTS), "the hint again")


HINTS = """
local namespace = vim.api.nvim_get_namespaces()["dg.next_edit.hint"]
return vim.tbl_map(function(mark)
  return { mark[2], mark[4].virt_text[1][1] }
end, vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true }))
"""


def test_what_is_dismissed_does_not_come_again(editor: Neovim):
    rename(editor)
    shown(editor)
    editor.input("<Esc>")
    wait_until(lambda: not editor.lua(SHOWN), "the hint's end")
    assert editor.marks("dg.next_edit") == []
    editor.input(":Dg next_edit<CR>")
    editor.told("Nothing follows from the last change.")
    assert editor.text == HALF


def test_it_comes_only_when_asked_where_it_is_set_so_and_ends_with_a_change(nvim_program, shared: Home):
    options = {"settings": PATIENT, "keys": True, "next_edit": {"enabled": False}}
    with neovim(nvim_program, shared, cmd=SERVE, **options) as editor:
        rename(editor)
        wait_until(lambda: editor.text == HALF, "the change")
        editor.lua("vim.wait(400)")
        assert not editor.lua(SHOWN)
        editor.input("<M-n>")
        shown(editor)
        editor.input("o# Below.<Esc>")
        wait_until(lambda: not editor.lua(SHOWN), "its end with the change")
        assert editor.marks("dg.next_edit") == []
        editor.input("u")
        editor.command("Dg next_edit")
        shown(editor)
        editor.command("Dg next_edit")
        editor.lua("vim.wait(50)")
        editor.command("Dg next_edit")
        wait_until(lambda: editor.text == NEW, "the edit in the text")


def both_are_shown(editor: Neovim) -> None:
    rename(editor, BOTH)
    marks = shown(editor)
    new = [(row, column) for row, column, text, _ in marks if text == "width"]
    assert sorted(new) == [(row, BOTH.splitlines()[row].index("size") + 4) for row in (1, 2)]
    editor.lua(TOLD)


def test_all_places_are_accepted_in_one_step_wherever_the_cursor_is(editor: Neovim):
    both_are_shown(editor)
    editor.input("gg<M-a>")
    wait_until(lambda: editor.text == BOTH_NEW, "all places in the text")
    assert editor.lua("return _G.accepted") == [True]
    assert editor.marks("dg.next_edit") == []
    editor.input("u")
    wait_until(lambda: editor.text == BOTH_HALF, "the text as it was")


def calls_are_shown(editor: Neovim) -> str:
    """What only puts something in has no old text: of a parameter that came, in two calls of one line."""
    text = "def scaled(size):\n    pass\n\n\ndef use(unit):\n    '😋', scaled(1), scaled(2)\n"
    editor.open("▮" + text, insert=False)
    editor.ready()
    editor.input("/size<CR>ea, unit<Esc>")
    line = text.splitlines()[5]
    places = [(5, len(line[: line.index(each)].encode()) + 1) for each in ("1)", "2)")]
    assert sorted(mark[:2] for mark in shown(editor) if mark[2] == ", unit") == places
    return text.replace("(size", "(size, unit")


def test_what_is_only_put_in_is_accepted_one_by_one_or_in_one_step(editor: Neovim):
    half = calls_are_shown(editor)
    done = half.replace("(1)", "(1, unit)").replace("(2)", "(2, unit)")
    editor.input("<M-a>")
    wait_until(lambda: editor.text == done, "both calls in the text")
    editor.input("u")
    wait_until(lambda: editor.text == half, "the text as it was")
    calls_are_shown(editor)
    editor.input("<Tab><Tab>")
    wait_until(lambda: editor.text.count(", unit)") == 2, "one call in the text")
    editor.input("<Tab>")
    wait_until(lambda: editor.text == done, "the other call in the text")
    wait_until(lambda: not editor.lua(SHOWN), "the hint's end")


def test_places_are_accepted_one_by_one_as_they_move(editor: Neovim):
    both_are_shown(editor)
    editor.input("<Tab><Tab>")
    wait_until(lambda: editor.text.count("size") == 1, "one place in the text")
    one = editor.text
    row = next(row for row, line in enumerate(one.splitlines()) if "size" in line)
    at = one.splitlines()[row].index("size")
    assert [mark[:3] for mark in editor.marks("dg.next_edit") if mark[2]] == [(row, at + 4, "width")]
    editor.input("<Tab>")
    wait_until(lambda: cursor(editor) == [row + 1, at], "the cursor at the other place")
    editor.input("<Tab>")
    wait_until(lambda: editor.text == BOTH_NEW, "the other place in the text")
    wait_until(lambda: not editor.lua(SHOWN), "the hint's end")
    assert editor.lua("return _G.accepted") == [False]
    editor.input("u")
    wait_until(lambda: editor.text == one, "the text with one place")
    editor.input("u")
    wait_until(lambda: editor.text == BOTH_HALF, "the text as it was")
