"""What imports mean in a workspace, and how what they mean is told in few lines."""

import tracemalloc

import pytest

from dg_lsp.workspace import definitions, modules
from dg_lsp.workspace.definitions import Definition, Definitions, as_snippets, names_used, near, within

SHAPES = '''"""Shapes."""
import math
from dataclasses import dataclass

LIMIT: int = 10  # at most
_HIDDEN = 1

@lru_cache(maxsize=2)
@other
def area(
    width: float,  # in metres
    height: float = 2.0,
) -> float:
    """Of a rectangle."""
    inner = 1
    def not_me(): pass
    return width * height

@dataclass
class Point(Base):
    x: float = 0.0
    y: float
    _cached: int = 0

    def __init__(self, x): ...

    async def move(self, by: float) -> None:
        self.x += by

    def _secret(self): pass

try:
    from fast import speed
except ImportError:
    def speed(): return 0
'''


def told(files: dict[str, str], file: str, language: str = "python", roots: tuple[str, ...] = ("",)) -> dict[str, str]:
    known = Definitions(files.get, files.__contains__)
    return {each.uses: each.text for each in known.of(file, modules.bindings(files[file], language), language, roots)}


def test_signatures_are_told_in_few_lines():
    names = "LIMIT, area, Point, speed, not_me, _HIDDEN, nothing"
    files = {"/w/shapes.py": SHAPES, "/w/a.py": f"from shapes import {names}\n"}
    assert told(files, "/w/a.py", roots=("/w",)) == {
        "LIMIT": "LIMIT: int = 10",
        "_HIDDEN": "_HIDDEN = 1",
        "area": "@lru_cache(maxsize=2)\n@other\ndef area(width: float, height: float = 2.0) -> float:",
        "Point": "@dataclass\nclass Point(Base):\n    x: float = 0.0\n    y: float\n    def __init__(self, x):\n"
        "    async def move(self, by: float) -> None:",
        "speed": "def speed():",
    }


@pytest.mark.parametrize(
    ("statement", "uses"),
    [
        ("import lib.tools", "lib.tools.f"),
        ("import lib.tools as t", "t.f"),
        ("from lib import tools", "tools.f"),
        ("from lib import tools as t", "t.f"),
        ("from lib.tools import f", "f"),
        ("from lib.tools import f as g", "g"),
        ("from lib.tools import (\n    # which\n    f,\n)", "f"),
        ("from lib.tools import *", "f"),
        ("from . import tools", "tools.f"),
        ("from .tools import f", "f"),
        ("from ..lib.tools import f", "f"),
        ("def late():\n    from .tools import f", "f"),
        ("if x:\n    pass\nelse:\n    from .tools import f", "f"),
        ("from .passing import f", "f"),
        ("from .passing import other", "other"),
        ("from .everything import f", "f"),
    ],
)
def test_an_import_is_found_where_the_file_lies(statement: str, uses: str):
    files = {
        "/w/src/lib/tools.py": "def f(x):\n    return x\n",
        "/w/src/lib/passing.py": "from .tools import f, f as other\n",
        "/w/src/lib/everything.py": "from lib.tools import *\n",
        "/w/src/lib/__init__.py": "",
        "/w/src/lib/a.py": f"{statement}\n",
    }
    assert told(files, "/w/src/lib/a.py", roots=("/w/src/lib", "/w/src", "/w")) == {uses: "def f(x):"}


@pytest.mark.parametrize(
    "statement", ["import os", "from json import dumps", "from . import nothing", "from ....... import f", "from", ""]
)
def test_what_leads_out_of_the_workspace_is_left_alone(statement: str):
    files = {"/w/a.py": f"{statement}\n", "/w/__init__.py": ""}
    assert told(files, "/w/a.py", roots=("/w",)) == {}


def test_a_circle_of_imports_ends():
    files = {"/w/a.py": "from b import f\n", "/w/b.py": "from a import f\n"}
    assert told(files, "/w/a.py", roots=("/w",)) == {}


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("import { area as A, Shape } from './shapes'", {"A": "function area(w: number, h = 2): number"}),
        ("import { LIMIT } from './shapes.js'", {"LIMIT": "const LIMIT = 10"}),
        ("import type { Named } from './shapes'", {"Named": "interface Named { name: string }"}),
        ("import * as u from './util'", {"u.twice": "const twice = (a, b)"}),
        ("import D from './d'", {"D": "class D extends E\n    grow(by)"}),
        ("const { q, r: s } = require('./c')", {"q": "function q(x)", "s": "const r = 1"}),
        ("const c = require('./c.cjs')", {"c.q": "function q(x)"}),
        ("import { area } from './passing'", {"area": "function area(w: number, h = 2): number"}),
        ("import { area } from './star'", {"area": "function area(w: number, h = 2): number"}),
        ("import fs from 'fs'\nimport x from './nothing'", {}),
    ],
)
def test_scripts_import_by_path(statement: str, expected: dict[str, str]):
    files = {
        "file:///w/a.ts": f"{statement}\n",
        "file:///w/shapes.ts": "export function area(w: number, h = 2): number {\n  return w * h\n}\n"
        "export const LIMIT = 10\nexport interface Named { name: string }\n",
        "file:///w/util/index.js": "export const twice = (a, b) => {\n  return a + b }\n",
        "file:///w/d.js": "export default class D extends E {\n  #own() {}\n  grow(by) { return by }\n}\n",
        "file:///w/c.cjs": "function q(x) {}\nconst r = 1\nmodule.exports = { q, r }\n",
        "file:///w/passing.ts": "export { area } from './shapes'\n",
        "file:///w/star.ts": "export * from './shapes'\n",
    }
    found = told(files, "file:///w/a.ts", "typescript")
    assert {name: found.get(name) for name in expected} == expected
    assert expected or not found


def made(uses: str, file: str = "/w/b.py", start: int = 0, text: str = "") -> Definition:
    return Definition(uses=uses, file=file, start=start, text=text or f"def {uses}():")


def test_what_is_used_near_the_gap_comes_first_and_then_what_nothing_uses_yet():
    far = "\n" * 50
    text = f"from b import far, near, unused, u\nfar(){far}near()\n▮\n"
    at, text = text.index("▮"), text.replace("▮", "")
    ordered = near([made(each) for each in ("u.never", "far", "unused", "near")], names_used(text), text, at)
    assert [each.uses for each in ordered] == ["near", "far", "u.never", "unused"]


@pytest.mark.parametrize("head", ["x = u.", "x = u.ne", "f(u."])
def test_what_a_name_begins_comes_before_all(head: str):
    text = f"import u\nfrom b import near\nnear()\n{head}"
    ordered = near([made("near"), made("u.never")], names_used(text), text, len(text))
    assert [each.uses for each in ordered] == ["u.never", "near"]


def test_a_snippet_holds_what_fits_of_a_file_in_its_order():
    chosen = [made("b", start=9), made("a", start=1), made("c", file="file:///w/my%20c.py"), made("b", start=9)]
    assert [(each.path, each.text) for each in as_snippets(within(chosen, 20))] == [("b.py", "def a():\ndef b():\n")]
    assert [each.path for each in as_snippets(within(chosen, 30))] == ["b.py", "my c.py"]


def test_a_hostile_file_costs_little(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(definitions, "MAX_DEFINITIONS", 50)
    many = "".join(f"def f{number}(): pass\n" for number in range(2000))
    deep = "class A:\n" + "".join(f"{'    ' * depth}class B{depth}:\n" for depth in range(1, 400))
    wide = "class A:\n" + "".join(f"    def f{number}(self, {'x' * 90}): pass\n" for number in range(400))
    start = "from b import *\nfrom c import A\nimport c, b\n"
    for last, other in (("", wide), ("[" * 9000, wide), ("", deep), ("", deep + "(" * 5000)):
        found = told({"/w/a.py": start + last, "/w/b.py": many, "/w/c.py": other}, "/w/a.py", roots=("/w",))
        assert len(found) == 50
        assert all(len(each) <= 400 for each in found.values())
    assert len(told({"/w/a.py": "from c import A\n", "/w/c.py": wide}, "/w/a.py", roots=("/w",))["A"]) > 200


@pytest.mark.processor_s(10)
def test_a_text_that_a_grammar_takes_long_over_tells_nothing():
    """Each of its lines is read again for all before it."""
    endless = "\\\n" * 64_000
    assert told({"/w/a.py": "from b import f\n", "/w/b.py": f"def f(): pass\n{endless}"}, "/w/a.py") == {}
    assert told({"/w/a.py": f"from b import f\n{endless}", "/w/b.py": "def f(): pass\n"}, "/w/a.py") == {}


@pytest.mark.processor_s(10)
def test_a_chain_of_any_length_is_kept_by_its_beginnings():
    text = f"lib.tools.f\n{'lib.' * 16_000}lib\nlib.tools.f"
    tracemalloc.start()
    found = names_used(text)
    ordered = near([made("lib.tools.f")], found, text, 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert {"lib", "lib.tools.f", "lib.lib"} <= found
    assert len(ordered) == 1
    assert peak < 5_000_000


@pytest.mark.processor_s(10)
@pytest.mark.parametrize(
    "between",
    [
        " " * 20_000,
        "\n" * 20_000,
        " \n" * 10_000,
        "#" * 20_000 + "'\n",
        "\t#" * 10_000 + '"\n',
        f"  # {' ' * 20_000}\n",
    ],
    ids=["spaces", "lines", "both", "marks", "comments", "one comment"],
)
@pytest.mark.parametrize("rest", ["    pass", "    return '='"])
def test_blanks_and_comments_of_any_length_take_no_time(monkeypatch: pytest.MonkeyPatch, between: str, rest: str):
    monkeypatch.setattr(modules, "MAX_CHARS", 100_000)
    files = {"/w/a.py": "from b import f\n", "/w/b.py": f"def f(a,{between}b):\n{rest}\n"}
    assert told(files, "/w/a.py")["f"].endswith("b):")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("def f(\n    a,  # it's one\n    b='#',  # two\n):", "def f(a,  # it's one b='#'):"),
        ("def f(  # all\n\n    a,\n    # none\n    b,\n) -> int:  # last", "def f(a, b) -> int:"),
        ("def f(a,    b):", "def f(a,    b):"),
    ],
)
def test_a_signature_is_one_line(head: str, expected: str):
    files = {"/w/a.py": "from b import f\n", "/w/b.py": f"{head}\n    pass\n"}
    assert told(files, "/w/a.py")["f"] == expected


@pytest.mark.processor_s(10)
def test_names_that_are_passed_on_are_looked_up_and_not_looked_for():
    names = [f"n{number}" for number in range(2000)]
    files = {
        "/w/a.py": f"from named import {', '.join(names)}\nfrom stars import {', '.join(names)}\n",
        "/w/named.py": "".join(f"from gone import {name}\n" for name in names),
        "/w/stars.py": "".join(f"from .{name} import *\n" for name in names),
        "/w/b.py": "from named import n7, n1999\nfrom shapes import *\n",
        "/w/shapes.py": SHAPES,
    }
    assert told(files, "/w/a.py", roots=("/w",)) == {}
    own = "".join(f"import c as c{number}\n" for number in range(2000))
    files["/w/c.py"] = own + "".join(f"def f{number}(): pass\n" for number in range(2000))
    assert told(files, "/w/c.py", roots=("/w",)) == {}
    files["/w/gone.py"] = "def n7(): pass\nn1999 = 2\n"
    found = told(files, "/w/b.py", roots=("/w",))
    assert {"n7", "n1999", "area"} <= found.keys()
    assert len(told(files, "/w/a.py", roots=("/w",))) == 2


def test_a_file_is_read_once_for_all_that_is_imported_from_it():
    read = list[str]()
    files = {
        "/w/a.py": "from b import f, g, h\n",
        "/w/b.py": "from c import *\ndef h(): pass\n",
        "/w/c.py": "f = g = 1\n",
    }

    def text(name: str) -> str | None:
        read.append(name)
        return files.get(name)

    known, imported = Definitions(text, files.__contains__), [*modules.bindings(files["/w/a.py"], "python")]
    for _ in range(2):
        read.clear()
        known.of("/w/a.py", imported, "python", ("/w",))
        assert sorted(read) == ["/w/b.py", "/w/c.py"]
    files["/w/b.py"] = "f = 2\n"
    assert [each.text for each in known.of("/w/a.py", imported, "python", ("/w",))] == ["f = 2"]


@pytest.mark.processor_s(10)
@pytest.mark.parametrize(
    "script",
    [f"var {','.join(f'a{n}' for n in range(8000))}\n", "".join(f"function a{n}() {{}}\n" for n in range(8000))],
)
def test_a_long_script_takes_no_time(script: str):
    files = {"file:///w/a.js": "import { a7999 } from './b'\n", "file:///w/b.js": script}
    assert "a7999" in told(files, "file:///w/a.js", "javascript")
