"""Where one token may be missing."""

from __future__ import annotations

import time

import pytest

from engine.syntax.budget import Budget
from engine.syntax.insertions import insertions
from engine.syntax.parsed_text import parse_text
from engine.syntax.syntax_errors import syntax_errors


def tried(marked: str, language: str = "python") -> list[str]:
    """The texts that come of them, likeliest first; `▮` is where nothing stands that should."""
    broken = marked.replace("▮", "")
    text = parse_text(broken, language)
    assert text is not None
    found = insertions(text, syntax_errors(text)[0])
    assert [each.cost for each in found] == sorted(each.cost for each in found)
    texts = [broken[: each.at] + each.text + broken[each.at + each.removed :] for each in found]
    assert len(texts) == len(set(texts))
    return texts


@pytest.mark.parametrize(
    ("marked", "token"),
    [
        ("print(f(1, 2)▮\n", ")"),
        ("def f(a, b)▮\n    pass\n", ":"),
        ("foo(\n    a,\n▮\nx = 1\n", ")"),
        ("print▮area(1))\n", "("),
        ("xs = len▮area)\n", "("),
        ('print(f▮hello {x}")\n', '"'),
        ('def f():\n    """One.▮\n\n\ndef g():\n    """Two."""\n', '"""'),
        ('def f():\n    ▮One."""\n\n\ndef g():\n    """Two."""\n', '"""'),
        ('__all__ = ▮\n    "a",\n]\n', "["),
        ("from os ▮ path\n", "import"),
    ],
)
def test_what_is_missing_is_among_them(marked: str, token: str):
    assert marked.replace("▮", token) in tried(marked)


def test_nothing_comes_between_a_string_and_its_prefix():
    assert not any("f," in text or "f)" in text for text in tried('print(f"{a" b\n'))


@pytest.mark.parametrize(
    "broken", ["(" * 20_000, ")" * 20_000, "f(" + "x" * 100_000, '"""\n' * 5001, "x = 'a\n" * 3000]
)
def test_what_is_hostile_takes_no_time(broken: str):
    text = parse_text(broken, "javascript" if "x =" in broken else "python", Budget(2000))
    began = time.thread_time()
    regions = syntax_errors(text, Budget(1000)) if text else ()
    for region in regions[:1]:
        insertions(text, region)
    assert time.thread_time() - began < 3
