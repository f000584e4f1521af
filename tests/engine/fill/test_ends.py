"""Where a gap ends that is written from left to right: ▮ is the cursor."""

import pytest

from engine.common.request import FillRequest
from engine.fill.ends import Ends

BODY = "def f(a):\n    ▮\n    return total\n"
CALL = "    print(▮)\n    return total\n"
LINES = "def f(a):\n▮    return total\n"
LAST = "def f(a):\n    ▮"
CLASS = "class A:\n    def f(self):\n        ▮\n\n\nclass B:\n    pass\n"


def ends(document: str, **more: bool) -> Ends:
    prefix, _, suffix = document.partition("▮")
    return Ends(FillRequest(prefix=prefix, suffix=suffix, **more))  # pyright: ignore[reportArgumentType]


def answer(document: str, said: str, **more: bool) -> str | None:
    """What is the gap's of what is said token by token, each a character; None where it would go on."""
    of = ends(document, **more)
    for size in range(1, len(said) + 1):
        if of.found(said[:size]).end is not None:
            return said[: of.cut(said[:size])]
    return None


BRANCHES = "if a:\n        b = a\n    else:\n        b = 2"


@pytest.mark.parametrize(
    ("document", "said", "wanted"),
    [
        # The line that follows the cursor, or enough of it.
        (BODY, "total = a\n    return total\n", "total = a"),
        (BODY, "total = a\n    return to", "total = a"),
        (BODY, "total = a\n\n    return to", "total = a"),
        (BODY, "b = 1\n    total = a\n    return to", "b = 1\n    total = a"),
        (BODY, "if a:\n        total = a\n    return to", "if a:\n        total = a"),
        (
            BODY,
            "if a:\n        b = a\n    else:\n        b = 2\n    c = b\n    d = c\n",
            "if a:\n        b = a\n    else:\n        b = 2",
        ),
        (
            BODY,
            "if a:\n        b = a\n    else:\n        b = 2\n    return to",
            "if a:\n        b = a\n    else:\n        b = 2",
        ),
        (LINES, "    total = a\n    return to", "    total = a\n"),
        ("import os\n▮\nX = 1234567\n", "import time\n\nX = 1234567", "import time\n"),
        # The rest of the line.
        (CALL, "a, b)\n", "a, b"),
        (CALL, "a,\n        b)\n", "a,\n        b"),
        (CALL, "f(a))\n", "f(a)"),
        (CALL, "a) or b\n", "a) or b"),
        # It never comes there: the first statement.
        (BODY, "total = a\n    print(a)\n    print(b)\n    print(c)\n", "total = a"),
        (
            BODY,
            "total = (\n        a\n    )\n    print(b)\n    print(c)\n    print(d)\n",
            "total = (\n        a\n    )",
        ),
        # It leaves the block: so does what follows the cursor, or not.
        (CLASS, "self.a = 1\n        self.b = 2\n\n    def", "self.a = 1\n        self.b = 2"),
        (BODY, "total = a\n    print(a)\n\ndef g", "total = a"),
        # Nothing follows the cursor.
        (LAST, "return a\n\n\ndef g", "return a"),
        (LAST, "b = a\n    return b\nx", "b = a\n    return b"),
    ],
)
def test_where_the_gap_ends(document: str, said: str, wanted: str):
    assert answer(document, said) == wanted


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (BODY, "total = a"),
        (BODY, "total = a\n    return"),  # so may many lines begin
        (BODY, "if a:\n        total = a"),
        (CALL, "a,\n        b"),
        (LAST, "b = a\n    c = b\n    d = c\n    e = d\n"),
        (BODY, 'doc = """\nfirst\nsecond\nthird\nfourth\n'),
    ],
)
def test_what_goes_on(document: str, said: str):
    assert answer(document, said) is None


def test_one_line_ends_with_the_line():
    assert answer(BODY, "if a:\n", single_line=True) == "if a:"
    assert answer(CALL, "a,\n", single_line=True) == "a,"
    assert answer(CALL, "a)\n", single_line=True) == "a"


@pytest.mark.parametrize(("said", "settled"), [("a, b", "a, b"), ("a, b)", "a, b"), ("a, b) + c", "a, b) + c")])
def test_what_may_be_the_suffix_again_is_not_settled(said: str, settled: str):
    assert said[: ends(CALL).settled(said)] == settled


def test_it_tells_whether_what_follows_the_cursor_came():
    assert ends(BODY).met("total = a\n    return to")
    assert ends(CALL).met("a, b)\n")
    assert not ends(BODY).met("total = a\n    print(a)\n    print(b)\n    print(c)\n")


@pytest.mark.parametrize(
    ("document", "said", "wanted"),
    [
        (BODY, "total = a", None),
        (BODY, "total = a\n    ", None),
        (BODY, "total = a\n    b", "total = a\n"),
        (BODY, "if a:\n        b", None),
        (BODY, "if a:\n        b = 2\n    c", "if a:\n        b = 2\n"),
        (BODY, "total = (\n        a", None),
        (LINES, "    total = a\n    b", "    total = a\n"),
        (CALL, "a\n    b", None),
        (LAST, "total = a\n    b", None),
    ],
)
def test_a_text_goes_on_after_its_first_statement(document: str, said: str, wanted: str | None):
    assert ends(document).found(said).further == (None if wanted is None else len(wanted))


@pytest.mark.parametrize(
    ("following", "wanted"),
    [
        ("return total", True),
        ("end_of(text)", True),
        ("do(it)", True),
        ("}", False),
        ("});", False),
        ("} else {", False),
        ("else:", False),
        ("except OSError as error:", False),
        ("end", False),
        ("end)", False),
        ("done < names", False),
        ("", False),
    ],
)
def test_what_only_ends_or_parts_a_block_is_no_statement(following: str, wanted: bool):
    assert ends(f"if a:\n    ▮\n{following}\n").next_is_statement == wanted
