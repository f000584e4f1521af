"""Rewriting by a coder that follows instructions, in real editors: selected, chosen, seen, accepted, undone in one
step."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pynvim", reason="pynvim is not installed; `make test-editors` brings it.")

from tests.e2e.editors.conftest import PATIENT, SERVE
from tests.e2e.editors.edit_cases import BY_TWO, HINTED, LINES
from tests.e2e.editors.install import emacs
from tests.e2e.editors.neovim import Neovim, neovim
from tests.e2e.editors.test_emacs import done
from tests.e2e.editors.test_neovim_edits import proposed
from tests.engine.processes import Home, wait_until
from tests.engine.talking import Talking

pytestmark = pytest.mark.timeout(300)
IN_EMACS = pytest.mark.skipif(
    not emacs.root().is_dir(), reason="Emacs is not installed; `make test-editors` brings it."
)
SELECTED = LINES.replace("def grow", "▮def grow")
BODY_BY_TWO = BY_TWO.partition("\n")[2]


def says(model: Talking, text: str, other: str = "") -> None:
    """Have a model answer so, or nearly as likely with `other` at the end."""
    model.says, model.sure = f"{text.rstrip()}\n```", 0.6
    model.instead = (len(text.rstrip()), f"{other}\n```") if other else (0, "")
    model.heard.clear()


@pytest.fixture
def editor(nvim_program: Path, coder: tuple[Home, Talking]) -> Iterator[Neovim]:
    with neovim(nvim_program, coder[0], cmd=SERVE, settings=PATIENT, keys=True) as held:
        held.open("▮" + LINES, insert=False)
        held.ready()
        yield held


def undone(editor: Neovim) -> None:
    editor.input("<Esc>u")
    wait_until(lambda: editor.text == LINES, "the text as it was")


def test_neovim_an_instruction(editor: Neovim, coder: tuple[Home, Talking]):
    says(coder[1], BODY_BY_TWO, " + 1")
    editor.input(":2,5Dg rewrite by two<CR>")
    assert any("\n    size += 2\n" in f"{text}\n" for _, _, text, _ in proposed(editor))
    assert "Rewrite the selected code: by two" in coder[1].heard[0][-1]["content"]
    assert editor.text == LINES
    editor.input("<Tab>")
    wait_until(lambda: any("total + 1" in text for _, _, text, _ in editor.marks("dg.preview")), "the second proposal")
    editor.input("<S-Tab><CR>")
    wait_until(lambda: editor.text == BY_TWO, "the rewritten text")
    undone(editor)


def test_neovim_lines_that_are_kept_and_not_this(editor: Neovim, coder: tuple[Home, Talking]):
    says(coder[1], BODY_BY_TWO.replace("size * 2", "7"), " + 1")
    editor.input(":4Dg keep<CR>")
    editor.input(":2,5Dg rewrite by two<CR>")
    assert not any("7" in text for _, _, text, _ in proposed(editor))
    says(coder[1], BODY_BY_TWO.replace("+= 2", "= 2"))
    editor.command("Dg not +=")
    wait_until(lambda: any("size = 2" in text for _, _, text, _ in editor.marks("dg.preview")), "something else")
    editor.input("<CR>")
    wait_until(lambda: editor.text == BY_TWO.replace("+= 2", "= 2"), "the rewritten text")
    undone(editor)


def test_neovim_lines_are_removed(editor: Neovim, coder: tuple[Home, Talking]):
    says(coder[1], "")
    editor.input(":4Dg rewrite remove the line that doubles it<CR>")
    marks = proposed(editor)
    # The fourth line is marked as going, and none comes.
    assert (3, 0, "", 4) in marks
    assert not any("total" in text for _, _, text, _ in marks)
    editor.input("<CR>")
    wait_until(lambda: editor.text == LINES.replace("    total = size * 2\n", "\n"), "the text without the line")
    undone(editor)


def test_neovim_a_title_of_the_light_bulb(editor: Neovim, coder: tuple[Home, Talking]):
    says(coder[1], HINTED.partition("\n")[2])
    # A model that is loaded is known to follow instructions.
    editor.input(":2,5Dg rewrite hints<CR>")
    proposed(editor)
    editor.input("<Esc>2GV4j")
    editor.lua(
        "vim.lsp.buf.code_action({ apply = true, context = { only = { 'refactor.rewrite' }, diagnostics = {} },"
        " filter = function(action) return action.title == 'Add type hints' end })"
    )
    wait_until(lambda: editor.text == HINTED, "the rewritten text")
    assert "Add type hints to all parameters" in coder[1].heard[-1][-1]["content"]
    undone(editor)


@IN_EMACS
def test_emacs_an_instruction(tmp_path: Path, coder: tuple[Home, Talking]):
    place, model = coder
    says(model, BODY_BY_TWO, " + 1")
    other = BY_TWO.replace("return total", "return total + 1")
    shown, _ = done(SELECTED, tmp_path, place, PATIENT, SERVE, DG_TEST_INSTRUCTION="by two")
    assert json.loads(shown) == [BY_TWO, other, other, LINES]
    assert "Rewrite the selected code: by two" in model.heard[0][-1]["content"]


@IN_EMACS
def test_emacs_a_removal(tmp_path: Path, coder: tuple[Home, Talking]):
    says(coder[1], "")
    shown, _ = done(SELECTED, tmp_path, coder[0], PATIENT, SERVE, DG_TEST_INSTRUCTION="remove this")
    assert json.loads(shown) == ["# Growth.\n", "# Growth.\n", LINES]


@IN_EMACS
def test_emacs_a_title_of_the_light_bulb(tmp_path: Path, coder: tuple[Home, Talking]):
    says(coder[1], HINTED.partition("\n")[2])
    shown, _ = done(SELECTED, tmp_path, coder[0], PATIENT, SERVE, DG_TEST_ACTION="Add type hints")
    assert json.loads(shown) == [HINTED, LINES]
    assert "Add type hints to all parameters" in coder[1].heard[-1][-1]["content"]
