"""Names that a document uses and does not import, as what is missing among its imports."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dg_lsp.workspace.cursor_line import CursorLine
from dg_lsp.workspace.missing_imports import MOST_MISSING, found_imports, import_texts, missing_names

BINDING = """
import a, b.c
from d import e as f

@decorator
class Shape(Base, metaclass=Meta):
    size: Size = default

    def area(self, width: float, height=other, *rest, **more) -> Result:
        with open(width) as file, height:
            inner = (lambda x, y=1: x + y + free)(call(named=1), 2)
        for each, (one, two) in items():
            total += each.attribute + one
        [item for item in rest if (found := item)]
        try:
            raise Problem
        except (Failure, ValueError) as error:
            global state
            state = error, found, file, inner
        match total:
            case Point(x=0) | [first, *others]:
                return first
"""
FILES = {
    "file:///w/pkg/b.py": "from shapes import area, LIMIT\nfrom .near import close\nimport numpy as np\n",
    "file:///w/pkg/c.py": "from shapes import (\n    area,  # of a shape\n    Circle as Round,\n)\n",
    "file:///w/other/d.py": "from .far import distant\nfrom wrong import area\nimport numpy\n",
}


def said(marked: str) -> list[tuple[str, str, int]]:
    """(text, name, line)"""
    cursor, text = marked.index("▮"), marked.replace("▮", "")
    missing = found_imports(missing_names(text), "file:///w/pkg/a.py", FILES, FILES.get)
    found = import_texts(missing, "file:///w/pkg/a.py", CursorLine.of(text, cursor))
    return [(each.text, each.name.rpartition("/")[2], each.number) for each in found]


def test_names_that_nothing_binds_are_missing():
    expected = "decorator Base Meta Size default other Result free call items Problem Failure Point"
    assert missing_names(BINDING) == expected.split()


@pytest.mark.parametrize(
    "text",
    [
        "from x import *\ny",
        "print(__name__, __file__, len)\n",
        "x = 1\nprint(x.y)\n",
        "",
        "import os\nimport\n",
        "from x",
    ],
)
def test_nothing_is_missing(text: str):
    assert missing_names(text) == []


def test_what_a_file_offers_has_to_be_there():
    assert missing_names('__all__ = ["area", "there"]\nthere = 1\n') == ["area"]


@pytest.mark.parametrize("line", ["from", "from shapes", "from shapes import", "from shapes import a,", "import"])
def test_an_import_that_is_begun_hides_nothing_behind_it(line: str):
    assert missing_names(f"{line}\n\nclass A:\n    def f(self):\n        return area(self)\n") == ["area"]


@pytest.mark.parametrize(
    ("marked", "text", "origin"),
    [
        ("import os\n▮\n\narea(os)\n", "from shapes import area", ("b.py", 1)),
        ("import os\n▮import re\n\narea(os, re)\n", "from shapes import area\n", ("b.py", 1)),
        ("import os\nfrom ▮\n\narea(os)\n", "shapes import area", ("b.py", 1)),
        ("import os\nfrom sha▮\n\narea(os)\n", "pes import area", ("b.py", 1)),
        ("import os\nfrom shapes▮\n\narea(os)\n", " import area", ("b.py", 1)),
        ("import os\nfrom shapes import ▮\n\narea(os)\n", "area", ("b.py", 1)),
        ("import os\nfrom shapes import Circle,▮\n\narea(os, Circle)\n", " area", ("b.py", 1)),
        ("import os\nfrom unknown import ▮\n\nnew(os)\n", "new", ("a.py", 1)),
        ("import os\n▮\n\narea(os, Round, LIMIT)\n", "from shapes import LIMIT, Circle as Round, area", ("b.py", 1)),
        ("import os\n▮\n\nclose(os)\n", "from .near import close", ("b.py", 2)),
        ("import os\n▮\n\nnp.zeros(os)\n", "import numpy as np", ("b.py", 3)),
        ("import os\nimport ▮\n\nre.compile(os)\n", "re", ("a.py", 1)),
        ("from shapes import (\n    Circle,\n    ▮\n)\n\narea(Circle)\n", "area,", ("b.py", 1)),
        ("from shapes import (\n    ▮\n    Circle,\n)\n\narea(Circle)\n", "area,", ("b.py", 1)),
        ("from shapes import (\n▮    Circle,\n)\n\narea(Circle)\n", "    area,\n", ("b.py", 1)),
        ("from new import (\n    ar▮\n    Circle,\n)\n\nargue(Circle)\n", "gue,", ("a.py", 1)),
    ],
)
def test_a_missing_name_is_imported_as_it_is_nearby(marked: str, text: str, origin: tuple[str, int]):
    assert said(marked) == [(text, *origin)]


@pytest.mark.parametrize(
    "marked",
    [
        "import os\nx = ▮\n\narea(os)\n",
        "x = 1\n▮\narea(x)\n",
        "import os\n▮\n\ndistant(os)\n",
        "import os\n▮\n\nnowhere(os)\n",
        "import os\nimport ▮\n\narea(os)\n",
        "from other import (\n    ▮\n    Circle,\n)\n\narea(Circle)\n",
        "import os\nfrom shapes import ▮ # noqa\n\narea(os)\n",
    ],
)
def test_nothing_is_said_elsewhere(marked: str):
    assert said(marked) == []


def test_what_is_imported_meanwhile_is_not_missing():
    text = "import os\n\n\narea(os)\n"
    missing = found_imports(missing_names(text), "file:///w/pkg/a.py", FILES, FILES.get)
    assert import_texts(missing, "a.py", CursorLine.of(text, 10))
    assert not import_texts(missing, "a.py", CursorLine.of(f"from shapes import area\n{text}", 34))


def test_where_much_is_missing_nothing_is_looked_up():
    names = [f"name{number}" for number in range(MOST_MISSING + 1)]
    assert found_imports(names, "a.py", FILES, lambda name: pytest.fail(name)) == ()


@given(st.text(alphabet="from import.a,()\n #\\*", max_size=80), st.integers(0, 80))
def test_any_text_has_an_answer(text: str, cursor: int):
    missing = found_imports(missing_names(text) or ["a"], "x.py", {"y.py": text}, lambda _: text)
    for found in import_texts(missing, "x.py", CursorLine.of(text, min(cursor, len(text)))):
        assert found.text


@pytest.mark.processor_s(20)
@pytest.mark.parametrize(
    "part", ["a,", "from a import (\n", "__all__ = [\n", "import \n", "from a import b,\n", "(", "a."]
)
def test_a_long_text_takes_no_time(part: str):
    text = part * (120_000 // len(part))
    missing = found_imports(missing_names(text)[:1] or ["a"], "x.py", {"y.py": text}, lambda _: text)
    import_texts(missing, "x.py", CursorLine.of(f"import os\n{text}", 10))
