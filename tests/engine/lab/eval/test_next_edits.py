"""Cases of next edits, from two versions of a file."""

from __future__ import annotations

from engine.models.oracle.model import Oracle
from tests.engine.lab.eval.next_edits import edits_between, next_edit_figures, request_of

BEFORE = "import size\n\n\ndef f():\n    return size(1)\n\n\ndef g():\n    size(2)\n    return 3\n"
AFTER = "import width\n\n\ndef f():\n    return width(1)\n\n\ndef g():\n    width(2)\n    return 4 + 3\n"


def test_a_replaced_text_that_recurs_is_followed_step_by_step():
    first, second = edits_between("p", "f.py", BEFORE, AFTER)
    assert (first.text[first.start : first.end], first.old) == ("import width\n", "import size\n")
    assert first.text == BEFORE.replace("import size", "import width")
    assert {(first.text[start:end], new) for start, end, new in first.follows} == {("size", "width")}
    assert [first.text[:start].count("\n") for start, *_ in sorted(first.follows)] == [4, 8]
    assert (second.text[second.start : second.end], second.old) == ("    return width(1)\n", "    return size(1)\n")
    assert [second.text[start:end] for start, end, _ in second.earlier] == ["import width\n"]
    assert [second.text[:start].count("\n") for start, *_ in second.follows] == [8]
    request = request_of(second)
    assert request.prefix + request.suffix == second.text
    assert [edit.new for edit in request.edits] == ["import width\n", "    return width(1)\n"]


def test_after_the_last_edit_of_a_file_nothing_follows():
    (case,) = edits_between("p", "f.py", BEFORE, BEFORE.replace("size(2)", "other(2)"))
    assert not case.follows
    assert case.text == BEFORE.replace("size(2)", "other(2)")
    assert (case.text[case.start : case.end], case.old) == ("    other(2)\n", "    size(2)\n")


def test_figures_count_what_is_right_and_what_disturbs():
    cases = [
        *edits_between("p", "f.py", BEFORE, AFTER),
        *edits_between("p", "f.py", AFTER, AFTER.replace("(1)", "(5)")),
    ]
    figures = next_edit_figures(Oracle("oracle", []), cases)
    assert (figures.followed, figures.alone) == (2, 0)
    assert 0 <= figures.found <= 1
    assert figures.quiet == 1
