"""Imported names that nothing uses yet, as what a gap may be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dg_lsp.workspace.cursor_line import CursorLine
from dg_lsp.workspace.definitions import names_used
from dg_lsp.workspace.modules import bindings
from dg_lsp.workspace.unused_names import ALONE, LISTED, LISTED_ONE_OF, MOST_UNUSED, name_texts, unused_of

IMPORTS = "from shapes import Area, Bound, Circle\n\n"
LIST = f'{IMPORTS}__all__ = [\n    "Area",\n    ▮\n    "Circle",\n]\n'


INIT = """class Box:
    def __init__(self, width, height=(1, 2)):
        self.width = width
        ▮

    def f(self, depth): ...
"""
CALL = """class Box: pass
def box(width, height, **more) -> Box:
    return Box(
        width=width,
        ▮
    )
height = 1
"""


def said(marked: str, language: str = "python") -> list[tuple[str, int, float]]:
    """(text, line, score)"""
    cursor, text = marked.index("▮"), marked.replace("▮", "")
    unused = unused_of(bindings(text, language), names_used(text))
    return [(each.text, each.number, each.score) for each in name_texts(unused, "a.py", CursorLine.of(text, cursor))]


@pytest.mark.parametrize(
    ("marked", "text"),
    [
        (LIST, '"Bound",'),
        (LIST.replace("    ▮", "▮"), '    "Bound",'),
        (LIST.replace("    ▮\n", "▮"), '    "Bound",\n'),
        (LIST.replace("▮", '"▮'), 'Bound",'),
        (LIST.replace("▮", '"▮",'), "Bound"),
        (LIST.replace("▮", '"Bo▮'), 'und",'),
        (LIST.replace('"', "'"), "'Bound',"),
        (LIST.replace('"', ""), "Bound,"),
        (f'{IMPORTS}__all__ = [\n    ▮\n    "Area",\n    "Circle",\n]\n', '"Bound",'),
        (f"{IMPORTS}Area, Circle\nclass Square(▮):\n    pass\n", "Bound"),
        (f"{IMPORTS}Area, Circle\nclass Square(Bo▮):\n    pass\n", "und"),
        (f"{IMPORTS}Area, Circle\nkind = ▮\n", "Bound"),
        (f"{IMPORTS}Area, Circle\nkind =▮\n", " Bound"),
        (f"{IMPORTS}Area, Circle\n@▮\ndef f(): ...\n", "Bound"),
        (INIT, "self.height = height"),
        (INIT.replace("▮", "self.▮"), "height = height"),
        (INIT.replace("        ▮", "▮"), "        self.height = height"),
        (INIT.replace("height=(1, 2)", "height: dict[str, int] = {}  # cm"), "self.height = height"),
        (CALL, "height=height,"),
        (CALL.replace("▮", "height▮"), "=height,"),
    ],
)
def test_the_name_that_nothing_uses_is_written(marked: str, text: str):
    assert [each[:2] for each in said(marked)] == [(text, 2 if marked.startswith("class") else 1)]


@pytest.mark.parametrize(
    "marked",
    [
        LIST.replace("▮", '"Bound",\n    ▮'),
        LIST.replace("▮", '"Other▮'),
        LIST.replace("▮", "▮ + 1"),
        LIST.replace('    "Circle",\n', "").replace('"Area"', '"Area": 1'),
        f"{IMPORTS}Area, Circle\nkind ▮\n",
        f"{IMPORTS}Area, Circle\n▮\n",
        f"{IMPORTS}kind = ▮\n",
        f"{IMPORTS}Area, Circle\nkind = Other▮\n",
        f"{IMPORTS}Area, Circle\nx = Boundary\nkind = Bound▮\n",
        "from shapes import *\nkind = ▮\n",
        "import json\nfrom shapes import (\n    Area,\n    ▮\n)\n\nArea()\n",
        INIT.replace("▮", "use(height)\n        ▮"),
        INIT.replace("        ▮", "\n    x = 1\n    ▮"),
        INIT.replace("▮", "\n        def g():\n            pass\n        ▮"),
        INIT.replace("self.width = width", "self.width = other"),
        "import shapes.round\nkind = ▮\n",
    ],
)
def test_nothing_is_said_where_no_name_is_missing(marked: str):
    assert said(marked) == []


def test_of_several_the_one_between_the_names_around_comes_first_and_is_less_likely():
    one_of = said(LIST.replace("import Area", "import Zone, Area"))
    assert one_of == [('"Bound",', 1, LISTED_ONE_OF)]
    assert said(LIST)[0][2] == LISTED > LISTED_ONE_OF
    assert said(f"{IMPORTS}Area, Circle\nkind = ▮\n")[0][2] == ALONE


def test_a_document_that_passes_names_on_has_none_that_stands_out():
    names = ", ".join(f"name{number}" for number in range(MOST_UNUSED + 1))
    assert said(LIST.replace("Bound", f"Bound, {names}")) == []


def test_a_script_has_lists_of_names_too():
    exported = "import { area, bound } from './shapes';\nexport {\n  area,\n  ▮\n};\n"
    assert [each[0] for each in said(exported, "typescript")] == ["bound,"]


@given(st.text(alphabet="ab_\"',()[]=@ \t\r\n.", max_size=60), st.integers(0, 60))
def test_any_text_has_an_answer(text: str, cursor: int):
    for found in name_texts(("a", "ab"), "a.py", CursorLine.of(text, min(cursor, len(text)))):
        assert found.text


@pytest.mark.processor_s(20)
@pytest.mark.parametrize("part", ["def f(", "def f(a, b):\n", "a, ", "(", "a\n", "    self.a = a\n"])
def test_a_long_text_takes_no_time(part: str):
    text = f"def f(b, {part * (120_000 // len(part))}\n    self.a = a\n\n{part}"
    for cursor in (text.index("self"), len(text) - len(part) - 1, len(text)):
        name_texts([f"a{number}" for number in range(MOST_UNUSED)], "a.py", CursorLine.of(text, cursor))
