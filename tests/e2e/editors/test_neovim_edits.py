"""Rewriting, mending and filling in real Neovims: shown first, accepted, undone."""

from __future__ import annotations

import psutil
import pytest

pytest.importorskip("pynvim", reason="pynvim is not installed; `make test-editors` brings it.")

from tests.e2e.editors.conftest import EAGER, PATIENT, SERVE
from tests.e2e.editors.edit_cases import (
    BETTER,
    BROKEN,
    BY_TWO,
    EMPTY_BODY,
    FULL_BODY,
    HINTED,
    LINES,
    PAIR,
    PASSES,
    SHADE,
    SHADES,
    SLOW_NEW,
    SLOW_OLD,
    WHOLE,
)
from tests.e2e.editors.neovim import Neovim, neovim
from tests.engine.processes import Home, home, wait_until

PROPOSED = "return require('dg.preview').is_open()"


@pytest.fixture
def editor(nvim_program, shared: Home):
    """An editor with the suggested keys."""
    with neovim(nvim_program, shared, cmd=SERVE, settings=PATIENT, keys=True) as held:
        yield held


def proposed(editor: Neovim) -> list[tuple[int, int, str, int]]:
    """What is proposed, as it is drawn."""
    wait_until(lambda: editor.lua(PROPOSED), "a proposal")
    return editor.marks("dg.preview")


def test_a_rewrite_is_shown_accepted_and_undone_in_one_step(editor: Neovim):
    editor.open("▮" + LINES, insert=False)
    editor.ready()
    editor.input(":3Dg rewrite by two<CR>")
    marks = proposed(editor)
    # The third line is marked as going, and the new one stands below it.
    assert (2, 0, "", 3) in marks
    assert any(row == 2 and "\n    size += 2\n" in text for row, _, text, _ in marks), marks
    assert editor.text == LINES
    editor.input("<CR>")
    wait_until(lambda: editor.text == BY_TWO, "the rewritten text")
    assert editor.marks("dg.preview") == []
    editor.input("u")
    wait_until(lambda: editor.text == LINES, "the text as it was")


def test_a_selection_of_characters_is_rewritten_after_a_prompt(editor: Neovim):
    editor.open(LINES.replace("size = size + 1", "▮size = size + 1"), insert=False)
    editor.ready()
    editor.input("v$h\\dr")
    wait_until(lambda: editor.nvim.api.get_mode()["mode"] == "c", "the prompt")
    editor.input("<CR>")
    proposed(editor)
    editor.input("<Esc>")
    wait_until(lambda: not editor.lua(PROPOSED), "the proposal's end")
    assert editor.text == LINES
    assert editor.lua("return vim.fn.maparg('<CR>', 'n')") == ""
    editor.input(":3Dg rewrite by two<CR>")
    proposed(editor)
    editor.input("<CR>")
    wait_until(lambda: editor.text == BY_TWO, "the rewritten text")


OWN_KEYS = """
_G.own = {}
for _, key in ipairs({ "<CR>", "<Esc>", "<Tab>", "<S-Tab>" }) do
  vim.keymap.set("n", key, function() table.insert(_G.own, key) end, { buffer = 0 })
end
"""


def presses_their_own_keys(editor: Neovim) -> None:
    editor.lua("_G.own = {}")
    editor.input("<CR><Tab><S-Tab><Esc>")
    keys = ["<CR>", "<Tab>", "<S-Tab>", "<Esc>"]
    wait_until(lambda: editor.lua("return _G.own") == keys, "the user's own mappings")


def test_keys_that_a_proposal_took_are_given_back(editor: Neovim):
    editor.open("▮" + LINES, insert=False)
    editor.ready()
    editor.lua(OWN_KEYS)
    editor.input(":3Dg rewrite by two<CR>")
    proposed(editor)
    editor.input("<Tab><S-Tab><Esc>")
    wait_until(lambda: not editor.lua(PROPOSED), "the proposal's end")
    assert editor.lua("return _G.own") == []
    presses_their_own_keys(editor)


def test_keys_that_a_proposal_and_a_next_edit_took_are_given_back_in_any_order(newest, shared: Home):
    with neovim(newest, shared, cmd=SERVE, settings=PATIENT, keys=True) as editor:
        editor.open("▮" + LINES, insert=False)
        editor.lua(OWN_KEYS)
        buf = editor.nvim.current.buffer.number
        takes = (f"map_edit({buf})", f"map_next_edit({{ {buf} }})")
        for first, second in (takes, takes[::-1]):
            for order in ("edit next_edit", "next_edit edit"):
                editor.lua(f"local keys = require('dg.keys') keys.{first} keys.{second}")
                for owner in order.split():
                    editor.lua(f"require('dg.keys').unmap_{owner}()")
                presses_their_own_keys(editor)


def test_lines_that_are_marked_stay_in_a_rewrite(editor: Neovim):
    editor.open("▮" + LINES, insert=False)
    editor.ready()
    editor.input(":3Dg keep<CR>")
    editor.input(":3Dg rewrite by two<CR>")
    editor.told("All of the selection is to be kept")
    editor.input(":3,4Dg keep<CR>")
    editor.input(":3Dg keep<CR>")
    assert [row for row, *_ in editor.marks("dg.keep")] == [3]
    editor.input(":3,5Dg rewrite by two<CR>")
    proposed(editor)
    editor.input("<CR>")
    wait_until(lambda: editor.text == BY_TWO, "the rewritten text")
    editor.input(":4Dg keep<CR>")
    assert editor.marks("dg.keep") == []


def test_a_proposal_can_be_a_diff_in_a_split(newest, shared: Home):
    with neovim(newest, shared, cmd=SERVE, settings=PATIENT, edit={"view": "split"}) as editor:
        editor.open("▮" + LINES, insert=False)
        editor.ready()
        editor.input(":3Dg rewrite by two<CR>")
        wait_until(lambda: editor.lua(PROPOSED), "a proposal")
        windows = editor.lua("return vim.tbl_map(function(w) return vim.wo[w].diff end, vim.api.nvim_list_wins())")
        assert windows == [True, True]
        other = [buffer for buffer in editor.nvim.buffers if not buffer.name][-1]
        assert "\n".join(other[:]) + "\n" == BY_TWO
        editor.command("Dg accept")
        wait_until(lambda: editor.text == BY_TWO, "the rewritten text")
        assert len(editor.nvim.windows) == 1
        assert not editor.nvim.current.window.options["diff"]


def test_closing_the_diff_leaves_the_proposal(nvim_program, shared: Home):
    with neovim(nvim_program, shared, cmd=SERVE, settings=PATIENT, keys=True, edit={"view": "split"}) as editor:
        editor.open("▮" + LINES, insert=False)
        editor.ready()
        editor.lua(OWN_KEYS)
        for close in ("wincmd l | close", "only", "wincmd l | enew | close"):
            editor.input(":3Dg rewrite by two<CR>")
            wait_until(lambda: editor.lua(PROPOSED), "a proposal")
            editor.command(close)
            assert not editor.lua(PROPOSED)
            assert not editor.nvim.current.window.options["diff"]
            presses_their_own_keys(editor)
        editor.command("Dg accept")
        editor.told("Nothing is proposed")
        assert editor.text == LINES


def test_a_proposal_for_a_buffer_in_no_window_waits_there(nvim_program, shared: Home):
    options = {"settings": PATIENT, "edit": {"view": "split", "strength": 1}}
    with neovim(nvim_program, shared, cmd=SERVE, **options) as editor:
        editor.open("▮" + SLOW_OLD, insert=False)
        editor.ready()
        editor.input(":2Dg rewrite<Space>faster<CR>")
        editor.command("enew")
        wait_until(lambda: editor.lua(PROPOSED), "a proposal")
        editor.command("buffer file.py")
        assert any("9, 8, 7" in text for _, _, text, _ in editor.marks("dg.preview"))
        editor.command("Dg accept")
        assert editor.text == SLOW_NEW


def test_a_diff_in_another_tab_shows_the_next_proposal_too(newest, shared: Home):
    with neovim(newest, shared, cmd=SERVE, settings=PATIENT, edit={"view": "split"}) as editor:
        editor.open("▮" + SHADE, insert=False)
        editor.ready()
        editor.input(":2Dg rewrite another<CR>")
        wait_until(lambda: editor.lua(PROPOSED), "a proposal")
        editor.command("tabnew")
        editor.command("Dg next")
        editor.command("tabprevious")
        assert any(SHADES[1] in buffer[:] for buffer in editor.nvim.buffers)


def test_proposals_can_be_chosen_from(editor: Neovim):
    editor.open("▮" + SHADE, insert=False)
    editor.ready()
    editor.input(":2Dg rewrite another<CR>")
    assert any(SHADES[0] in text for _, _, text, _ in proposed(editor))
    editor.input("<Tab>")
    wait_until(lambda: any(SHADES[1] in text for _, _, text, _ in editor.marks("dg.preview")), "the second proposal")
    editor.command("Dg next")
    wait_until(lambda: any(SHADES[2] in text for _, _, text, _ in editor.marks("dg.preview")), "the third proposal")
    editor.input("<S-Tab>")
    wait_until(lambda: any(SHADES[1] in text for _, _, text, _ in editor.marks("dg.preview")), "the second again")
    editor.input("<CR>")
    wait_until(lambda: editor.text == f"# Shade.\n{SHADES[1]}\n", "the second proposal in the text")


def test_what_is_missing_in_a_range_is_filled_in(editor: Neovim):
    editor.open("▮" + PASSES, insert=False)
    editor.ready()
    editor.input(":%Dg fill<CR>")
    proposed(editor)
    editor.input("<CR>")
    wait_until(lambda: editor.text == PAIR, "both bodies in the text")
    editor.input("u")
    wait_until(lambda: editor.text == PASSES, "the text before")


def test_a_part_of_a_proposal_can_be_refused(editor: Neovim):
    editor.open("▮" + SHADE, insert=False)
    editor.ready()
    editor.input(":2Dg rewrite another<CR>")
    assert any(SHADES[0] in text for _, _, text, _ in proposed(editor))
    word = SHADES[0].split("'")[1]
    assert word in editor.lua(f"return vim.fn.getcompletion('Dg not {word[:2]}', 'cmdline')")
    editor.command("Dg not nonsense")
    editor.told("`nonsense` is no part of what is proposed.")
    editor.command("Dg not")
    editor.told("Say what shall be something else: `:Dg not {text}`.")
    editor.command(f"Dg not {word}")
    wait_until(lambda: any(SHADES[1] in text for _, _, text, _ in editor.marks("dg.preview")), "something else")
    assert not any(word in text for _, _, text, _ in editor.marks("dg.preview"))
    editor.input("<CR>")
    wait_until(lambda: editor.text == f"# Shade.\n{SHADES[1]}\n", "something else in the text")
    editor.command("Dg not red")
    editor.told("Nothing is proposed")


def test_what_is_broken_is_mended(editor: Neovim):
    editor.open("▮" + BROKEN, insert=False)
    editor.ready()
    editor.input(":Dg fix<CR>")
    proposed(editor)
    editor.input("<CR>")
    wait_until(lambda: editor.text == WHOLE, "the mended text")


def test_what_is_empty_is_filled(editor: Neovim):
    editor.open(EMPTY_BODY.replace(":\n", ":▮\n", 1), insert=False)
    editor.ready()
    editor.input("2G$:Dg fill<CR>")
    proposed(editor)
    editor.input("<CR>")
    wait_until(lambda: editor.text == FULL_BODY, "the filled text")


def test_where_there_is_nothing_to_do_a_sentence_says_so(editor: Neovim):
    editor.open("▮" + LINES, insert=False)
    editor.ready()
    editor.input("G:Dg fill<CR>")
    editor.told("There is nothing to fill in here.")
    editor.input(":Dg accept<CR>")
    editor.told("Nothing is proposed")
    editor.input(":Dg next_edit al<CR>")
    editor.told("There is no `:Dg next_edit al`; name all or dismiss, or nothing for the next one.")


def test_an_instruction_that_the_model_can_t_follow_is_told_beside_the_proposal(newest):
    with home() as place, neovim(newest, place, cmd=SERVE, settings=EAGER, keys=True) as editor:
        editor.open("▮def mean(values):\n    return\n\n\nprint(mean([1, 2, 3]))\n", insert=False)
        editor.ready()
        editor.input(":%Dg rewrite use the module statistics<CR>")
        proposed(editor)
        editor.told("The model bundled follows no instructions: yours was ignored.")


def test_the_canvas_settles_before_your_eyes_and_can_be_stopped(nvim_program, shared: Home):
    # The whole line is written anew: less would leave words of the old one standing.
    with neovim(nvim_program, shared, cmd=SERVE, settings=PATIENT, keys=True, edit={"strength": 1}) as editor:
        editor.open("▮" + SLOW_OLD, insert=False)
        editor.ready()
        editor.input(":2Dg rewrite<Space>faster<CR>")
        wait_until(lambda: any("slowly" in text for _, _, text, _ in editor.marks("dg.working")), "a draft")
        editor.command("Dg reject")
        assert editor.marks("dg.working") == []
        wait_until(lambda: editor.status(engine=True)["engine"]["running"] == 0, "the engine to stop the work")
        assert not editor.lua(PROPOSED)
        editor.input(":2Dg rewrite<Space>faster<CR>")
        proposed(editor)
        editor.input("<CR>")
        wait_until(lambda: editor.text == SLOW_NEW, "the rewritten text")


def test_a_text_that_changed_meanwhile_is_left_alone(editor: Neovim):
    editor.open("▮" + LINES, insert=False)
    editor.ready()
    editor.input(":3Dg rewrite by two<CR>")
    proposed(editor)
    editor.input("ggO# New.<Esc>")
    wait_until(lambda: not editor.lua(PROPOSED), "the proposal's end")
    assert editor.text == f"# New.\n{LINES}"


def test_leaving_in_the_middle_of_a_rewrite_leaves_nothing_behind(newest, shared: Home):
    with neovim(newest, shared, cmd=SERVE, settings=PATIENT) as editor:
        editor.open("▮" + SLOW_OLD, insert=False)
        editor.ready()
        server = psutil.Process(editor.server_pid())
        editor.input(":2Dg rewrite<Space>faster<CR>")
        wait_until(lambda: editor.marks("dg.working"), "the work's beginning")
    wait_until(lambda: not server.is_running(), "the server's end")
    with neovim(newest, shared, cmd=SERVE, settings=PATIENT) as editor:
        editor.open("▮" + LINES, insert=False)
        editor.ready()
        wait_until(lambda: editor.status(engine=True)["engine"]["running"] == 0, "the engine to stop the work")


def test_neovim_s_own_light_bulb_rewrites_too(editor: Neovim):
    editor.open("▮" + LINES, insert=False)
    editor.ready()
    editor.input("3GV")
    editor.lua(
        "vim.lsp.buf.code_action({ apply = true, context = { only = { 'refactor.rewrite' }, diagnostics = {} } })"
    )
    wait_until(lambda: editor.text == BETTER, "the rewritten text")


def test_a_named_rewrite_of_neovim_s_light_bulb_is_undone_in_one_step(editor: Neovim):
    editor.open("▮" + LINES, insert=False)
    editor.ready()
    editor.input("2GV4j")
    editor.lua(
        "vim.lsp.buf.code_action({ apply = true, context = { only = { 'refactor.rewrite' }, diagnostics = {} },"
        " filter = function(action) return action.title == 'Add type hints' end })"
    )
    wait_until(lambda: editor.text == HINTED, "the rewritten text")
    editor.input("<Esc>u")
    wait_until(lambda: editor.text == LINES, "the text as it was")
