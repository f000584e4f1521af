"""What IPython takes beside Python is hidden from the engine, and comes back."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dg_lsp.documents.documents import Snapshot
from dg_lsp.documents.gap import gap_at, text_window
from dg_lsp.documents.ipython import language_of, with_magics, without_magics
from dg_lsp.documents.positions import Lines

CELLS = (
    "%matplotlib inline\nimport os\n",
    "%%time\nx = 1\n",
    "!pip install numpy\n!!ls\nx = 1\n",
    "if x:\n    %timeit f(x)\n    !ls {x}\n",
    "files = !ls *.csv\na.b[0] = %sql select 1\nprint(files)\n",
    "?len\nlen?\nnumpy.array??\n%timeit?\n",
    "x = 1\r\n%cd ..\r\ny = 2\r\n",
    "for name in x:\n    !x\n",
)
KEPT = ("a = b % c\n", "a = (b\n     % c)\n", "if (a\n    != b):\n    pass\n", "a %= 3\n", "x = 'a?'\n")


@pytest.mark.parametrize("cell", CELLS)
def test_magics_are_no_syntax_errors_and_every_offset_stays(cell):
    with pytest.raises(SyntaxError):
        ast.parse(cell)
    plain = without_magics(cell)
    ast.parse(plain)
    assert len(plain) == len(cell)
    assert [len(line) for line in plain.splitlines()] == [len(line) for line in cell.splitlines()]
    assert with_magics(plain, cell) == cell


@pytest.mark.parametrize("cell", KEPT)
def test_what_is_python_stays(cell):
    assert without_magics(cell) == cell


@given(st.text(st.sampled_from("%!?=ab0# \t\r\n.["), max_size=40))
def test_nothing_becomes_longer_or_another_line(cell):
    plain = without_magics(cell)
    assert len(plain) == len(cell)
    assert [at for at, each in enumerate(plain) if each in "\r\n"] == [
        at for at, each in enumerate(cell) if each in "\r\n"
    ]
    assert without_magics(plain) == plain
    assert with_magics(plain, cell) == cell


@pytest.mark.parametrize("cell", ["!ls\n#ls\n", "#ls\n!ls\n", "if x:\n    !cd a\n    %cd a\n    0#d a\n"])
def test_lines_that_look_alike_as_python_stay_which_they_are(cell):
    assert with_magics(without_magics(cell), cell) == cell
    assert with_magics(f"y = 1\n{without_magics(cell)}z = 2\n", cell) == f"y = 1\n{cell}z = 2\n"


def test_a_line_that_was_moved_is_what_it_was_and_a_comment_no_command():
    assert with_magics("x = 1\n#cd\n", "%cd\nx = 1\n") == "x = 1\n%cd\n"
    assert with_magics("x = 1\ny = 2\n#ls\n", "!ls\n#ls\nx = 1\ny = 2\n") == "x = 1\ny = 2\n#ls\n"


def test_a_line_that_changed_stays_changed():
    cell = "%cd ..\nx = (1\n!ls\n"
    assert with_magics("#cd ..\nx = (1)\n#ls\n", cell) == "%cd ..\nx = (1)\n!ls\n"


def test_a_cell_is_of_the_language_that_its_first_line_says():
    assert [
        language_of(text) for text in ("x = 1", "%%time\nx", "\n%%bash\nls", "%%HTML\n<p>", "%%sql db\nselect")
    ] == [*("ipython", "ipython", "shellscript", "html", "sql")]


@pytest.mark.parametrize(
    ("uri", "notebook", "shown"),
    [
        ("vscode-notebook-cell:/w/n.ipynb#W0", "", "#cd ..\n"),
        ("cell:1", "file:///w/n.ipynb", "#cd ..\n"),
        ("file:///w/a.py", "", "%cd ..\n"),
    ],
)
def test_magics_count_in_cells_alone_and_the_line_of_the_cursor_is_as_it_is(uri, notebook, shown):
    cell = Snapshot(uri=uri, notebook=notebook, language="python", version=1, lines=Lines("%cd ..\n!ls a\n%cd ..\n"))
    assert text_window(gap_at(cell, 11)) == (f"{shown}!ls ", f"a\n{shown}")
