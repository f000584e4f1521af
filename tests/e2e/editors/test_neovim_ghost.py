"""Ghost text in real Neovims, by Neovim itself (0.12) and by the plugin (0.11)."""

from __future__ import annotations

import pytest

pytest.importorskip("pynvim", reason="pynvim is not installed; `make test-editors` brings it.")

from tests.e2e.cases import ADD, ASTRAL, BODY, CALL, SEVERAL, text_of
from tests.e2e.editors.conftest import EAGER, PATIENT, SERVE, bundled_case
from tests.e2e.editors.neovim import Neovim, neovim
from tests.engine.processes import Home, home, wait_until

WHOLE = BODY.split("▮")[1]


@pytest.fixture
def editor(nvim_program, shared: Home):
    """An editor with the suggested keys."""
    with neovim(nvim_program, shared, cmd=SERVE, settings=PATIENT, keys=True) as held:
        yield held


def test_a_suggestion_is_shown_taken_and_undone(editor: Neovim):
    editor.open(ADD)
    editor.sees("a + b")
    editor.input("<Tab>")
    wait_until(lambda: editor.text == ADD.replace("▮", ""), "the suggestion in the text")
    editor.input("<Esc>u")
    wait_until(lambda: editor.text == "def add(a, b):\n    return \n", "the text as it was")


def test_several_lines_are_taken_by_word_by_line_and_to_the_end(editor: Neovim):
    editor.open(BODY)
    editor.sees(WHOLE)
    editor.input("<M-w>")
    editor.sees(WHOLE.removeprefix("result"))
    assert editor.text == "def total(items):\n    result\n"
    editor.input("<M-l>")
    editor.sees(WHOLE.removeprefix("result = 0"))
    editor.input("<M-l>")
    editor.sees(WHOLE.removeprefix("result = 0\n    for item in items:"))
    editor.input("<Tab>")
    wait_until(lambda: editor.text == BODY.replace("▮", "") + "\n", "the whole suggestion in the text")


def test_typing_along_needs_no_model_and_taking_the_rest_doubles_nothing(editor: Neovim):
    editor.open(CALL)
    editor.sees("compute(first, second)")
    before = editor.status()["counts"]
    editor.input("compute")
    editor.sees("(first, second)")
    assert editor.status()["counts"]["sent"] == before["sent"]
    # At once, before any answer to the last key can be there.
    editor.input("(fi<Tab>")
    wait_until(lambda: editor.text == CALL.replace("▮", ""), "the call")


def test_tab_is_itself_where_nothing_of_a_suggestion_is_left(editor: Neovim):
    editor.open(ADD)
    editor.command("setlocal noexpandtab softtabstop=0")
    editor.sees("a + b")
    editor.input("a +")
    editor.sees(" b")
    # Before Neovim tells anybody of the cursor.
    assert editor.lua("vim.api.nvim_put({ ' b' }, 'c', false, true) return require('dg').accept()") is False
    editor.sees("")
    editor.input("<Tab>")
    wait_until(lambda: editor.text == ADD.replace("▮", "").replace("b\n", "b\t\n"), "the tab in the text")


CLOSING = "vim.keymap.set('i', '(', '()<Left>')"


def test_what_stands_behind_the_cursor_by_now_is_not_doubled(editor: Neovim):
    editor.lua(CLOSING)
    editor.open(CALL)
    editor.sees("compute(first, second)")
    # At once, before any answer to the last key can be there.
    editor.input("compute(<Tab>")
    wait_until(lambda: editor.text == CALL.replace("▮", ""), "the call")


def test_what_stands_behind_the_cursor_by_now_is_not_lost(editor: Neovim):
    editor.lua(CLOSING)
    editor.open(CALL)
    editor.sees("compute(first, second)")
    editor.input("compute(")
    editor.sees("first, second)")
    editor.lua("local row, col = unpack(vim.api.nvim_win_get_cursor(0)) " + CHANGED_BEHIND)
    assert editor.lua("return require('dg').accept()") is False
    assert editor.text == "value = compute(# note\nprint(value)\n"


CHANGED_BEHIND = "vim.api.nvim_buf_set_text(0, row - 1, col, row - 1, col + 1, { '# note' })"


def test_a_suggestion_that_is_left_at_once_goes_nowhere_else(editor: Neovim):
    editor.open(CALL)
    editor.sees("compute(first, second)")
    editor.input("comp")
    editor.sees("ute(first, second)")
    editor.input("<Tab><Esc>")
    wait_until(lambda: editor.nvim.api.get_mode()["mode"] == "n", "the mode's end")
    assert editor.text == CALL.replace("▮", "")


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("comp<Tab>;x", "compute(first, second);x"),
        ("compute(first, second)<Tab>x", "compute(first, second)\tx"),
        ("zz<Tab>x", "zz\tx"),
    ],
)
def test_tab_among_keys_that_come_at_once_is_taken_in_its_turn(editor: Neovim, keys: str, text: str):
    editor.open(CALL)
    editor.command("setlocal noexpandtab softtabstop=0")
    editor.sees("compute(first, second)")
    editor.input(keys)
    wait_until(lambda: editor.text == f"value = {text}\nprint(value)\n", f"{text!r} in the text")


def test_tab_in_a_macro_is_a_tab_in_its_turn(editor: Neovim):
    editor.open(CALL)
    editor.command("setlocal noexpandtab softtabstop=0")
    editor.sees("compute(first, second)")
    # Recorded as it is typed, and played beside what is suggested by then.
    editor.input("<Esc>qqAzz<Tab>x<Esc>q2@q")
    played = "value = " + 3 * "zz\tx"
    wait_until(lambda: editor.text == f"{played}\nprint(value)\n", "the macro three times")


def with_menu(editor: Neovim, chosen: str = "compute") -> None:
    """A completion menu at the cursor, and ghost text behind what it has chosen."""
    editor.open(CALL)
    editor.sees("compute(first, second)")
    editor.lua("vim.fn.complete(9, { ..., 'computer' })", chosen)
    wait_until(lambda: editor.lua("return vim.fn.pumvisible()") == 1, "the menu")
    editor.sees("(first, second)")


@pytest.mark.parametrize("key", ["<M-l>", "<Tab>"])
def test_what_is_taken_beside_a_menu_stays(editor: Neovim, key: str):
    with_menu(editor)
    editor.input(f"{key}x")
    wait_until(lambda: editor.text == "value = compute(first, second)x\nprint(value)\n", "the call and one more key")
    assert editor.lua("return vim.fn.pumvisible()") == 0


# May be mapped again, as those of snippet plugins are: it leads back to its own key.
OWN_TAB = """
vim.keymap.del("i", "<Tab>")
vim.keymap.set("i", "<Tab>", function()
  return vim.fn.pumvisible() == 1 and "<C-n>" or "<Tab>"
end, { expr = true, remap = true })
require("dg.keys").map()
"""


def test_tab_beside_a_menu_is_the_user_s_own(editor: Neovim):
    editor.lua(OWN_TAB)
    # What is set up again does not take itself for the user's.
    editor.lua("require('dg.keys').map()")
    with_menu(editor)
    editor.command("setlocal noexpandtab softtabstop=0")
    editor.input("<Tab>")
    wait_until(lambda: editor.text == "value = computer\nprint(value)\n", "the menu's next")
    editor.input("<C-y><Tab><Tab>x")
    wait_until(lambda: editor.text == "value = computer\t\tx\nprint(value)\n", "tabs in the text")


def test_what_takes_another_way_is_hidden(editor: Neovim):
    editor.open(ADD)
    editor.sees("a + b")
    editor.input("x")
    editor.sees("")
    editor.input("<BS>")
    editor.sees("a + b")
    editor.input("nothing")
    editor.sees("")
    editor.input("<M-l>")
    editor.input("<Esc>")
    wait_until(lambda: editor.text == "def add(a, b):\n    return nothing\n", "what was typed")


def test_others_are_a_key_away(editor: Neovim):
    editor.open(text_of(SEVERAL))
    editor.sees("red")
    editor.input("<M-]>")
    wait_until(lambda: editor.ghost() in {"green", "blue", "grey"}, "another suggestion")
    second = editor.ghost()
    editor.input("<M-[>")
    editor.sees("red")
    editor.input("<M-]>")
    editor.sees(second)
    editor.input("<Tab>")
    wait_until(lambda: editor.text == f"colour = {second}\n", "the other suggestion in the text")


def test_dismissing_and_switching_off(editor: Neovim):
    editor.open(ADD)
    editor.sees("a + b")
    editor.input("<M-c>")
    editor.sees("")
    editor.input("<Esc>:Dg toggle language<CR>")
    editor.told("Suggestions are off for this language.")
    assert editor.status()["document"]["off"] == "Suggestions are switched off for python."
    editor.input(":Dg toggle language<CR>")
    editor.told("Suggestions are on for this language.")
    editor.input("A")
    editor.sees("a + b")


def test_characters_outside_the_first_plane_move_nothing(editor: Neovim):
    editor.open(ASTRAL)
    editor.sees("mouth")
    editor.input("mo")
    editor.sees("uth")
    editor.input("<Tab>")
    wait_until(lambda: editor.text == ASTRAL.replace("▮", ""), "the suggestion in the text")


def test_fast_typing_ends_with_the_last_suggestion(editor: Neovim):
    editor.open("▮\n")
    editor.attached()
    editor.command("setlocal indentexpr= noautoindent")
    for character in "def add(a, b):\n    return ":
        editor.input({"\n": "<CR>", " ": "<Space>"}.get(character, character))
    editor.sees("a + b")


def test_the_bundled_model_suggests(newest):
    with home() as place, neovim(newest, place, cmd=SERVE, settings=EAGER, keys=True) as editor:
        editor.open(bundled_case(), insert=False)
        before = editor.text
        editor.ready()
        editor.told("Here `:Dg pull` does it.")
        editor.input("A")
        shown = wait_until(editor.ghost, "a suggestion")
        editor.input("<Tab>")
        wait_until(lambda: editor.text != before, "the suggestion in the text")
        assert shown.strip() in editor.text


OTHER = """
local snippet = { kind = "snippet", value = "${1:another}" }
vim.lsp.config("other", {
  root_markers = {},
  cmd = function()
    local function answer(method)
      return method == "initialize" and { capabilities = { inlineCompletionProvider = true } }
        or method == "textDocument/inlineCompletion" and { items = { { insertText = snippet } } }
        or nil
    end
    return {
      request = function(method, _, done)
        vim.schedule(function() done(nil, answer(method)) end)
        return true, 1
      end,
      notify = function() return true end,
      is_closing = function() return false end,
      terminate = function() end,
    }
  end,
})
vim.lsp.enable("other")
vim.lsp.inline_completion.enable()
"""


@pytest.mark.parametrize("enabled", [True, False])
def test_ghost_text_of_other_servers_stays(newest, shared: Home, enabled: bool):
    with neovim(newest, shared, cmd=SERVE, settings=PATIENT, ghost={"enabled": enabled}) as editor:
        editor.lua(OTHER)
        editor.open(ADD, insert=False)
        editor.attached()
        if enabled:
            editor.command("lua vim.lsp.enable('dg', false)")
            wait_until(lambda: editor.lua("return #vim.lsp.get_clients({ bufnr = 0 })") == 1, "the server's end")
        editor.input("A")
        editor.sees("another")
        editor.lua("require('dg').accept()")
        wait_until(lambda: editor.text == ADD.replace("▮a + b▮", "another"), "the other suggestion in the text")


@pytest.mark.parametrize("action", ["accept", "accept_word", "accept_line", "dismiss"])
def test_a_key_is_itself_where_nothing_is_suggested(newest, shared: Home, action: str):
    keys = {"accept": False, action: "<C-Right>"}
    with neovim(newest, shared, cmd=SERVE, settings={"enabled": False}, keys=keys) as editor:
        editor.open("▮alpha beta gamma\n")
        editor.attached()
        editor.input("<C-Right>x")
        wait_until(lambda: editor.text == "alpha xbeta gamma\n", "the word behind the cursor")
        editor.lua("vim.keymap.set('i', '<C-Right>', 'own') require('dg.keys').map()")
        editor.input("<C-Right>")
        wait_until(lambda: editor.text == "alpha xownbeta gamma\n", "the user's own mapping")


def test_an_alt_key_that_is_nobody_s_is_not_escape(newest, shared: Home):
    with neovim(newest, shared, cmd=SERVE, settings={"enabled": False}, keys=True) as editor:
        editor.open("▮alpha beta\n")
        editor.attached()
        editor.input("<M-w><M-l><M-c>x")
        wait_until(lambda: editor.text == "xalpha beta\n", "the text")


def test_no_key_is_mapped_unless_asked(nvim_program, shared: Home):
    with neovim(nvim_program, shared, cmd=SERVE, settings=PATIENT) as editor:
        mapped = "return vim.iter({ 'n', 'i', 'x' }):map(vim.api.nvim_get_keymap):flatten():filter(function(map)"
        plain = editor.lua(
            f"{mapped} return map.rhs and map.rhs:match('dg') and not map.lhs:match('Plug') end):totable()"
        )
        assert plain == []
        editor.open(ADD)
        editor.sees("a + b")
        editor.lua("vim.keymap.set('i', '<C-j>', '<Plug>(dg-accept)')")
        editor.input("<C-j>")
        wait_until(lambda: editor.text == ADD.replace("▮", ""), "the suggestion in the text")
