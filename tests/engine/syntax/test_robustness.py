"""Whatever the text is: no exception, and time has a bound."""

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.lab.eval.holes import holes
from engine.syntax.brackets import brackets_near
from engine.syntax.budget import Budget
from engine.syntax.extent import cut_to_extent, extent, without_closers
from engine.syntax.heads import longest_valid_head
from engine.syntax.languages import GRAMMARS, language_of
from engine.syntax.validator import Validator
from tests.engine.syntax.test_languages import CASES

LANGUAGES = st.sampled_from([*GRAMMARS, "klingon", ""])
BYTES = st.builds(
    bytes.decode,
    st.binary(max_size=80),
    st.sampled_from(["utf-8", "latin-1", "utf-16-le", "cp1252"]),
    st.sampled_from(["replace", "ignore"]),
) | st.binary(max_size=80).map(lambda data: data.decode("utf-8", "surrogateescape"))
WORDS = ["if", "def", "x", "return", "await", "1", "//", "/*", "*/", "<a>", "</a>"]
PARTS = st.lists(
    st.sampled_from([*WORDS, *"=()[]{}:;,.'`#@\\", '"', '"""', "\n", "\r", "\r\n", "\t", "😋", "ä", "\ud800", "\0"]),
    max_size=40,
)
CODE = PARTS.map(" ".join) | PARTS.map("".join)


def check_everything(before: str, fill: str, after: str, language: str, old: str = "") -> None:
    """Every function of the package answers, in the shape it promises."""
    budget = Budget(2000)
    validator = Validator(before, after, language, old)
    verdict = validator.verdict(fill, budget)
    if verdict:
        assert all(0 <= problem.start <= problem.end <= len(fill) for problem in verdict.problems)
        assert not (verdict.whole and verdict.problems)
    head = longest_valid_head(validator, fill, budget)
    assert head is None or (len(head) < len(fill) and head.strip())
    brackets = brackets_near(before, after, language)
    assert extent(brackets).kind
    assert fill.startswith(cut_to_extent(brackets, fill))
    assert fill.startswith(without_closers(brackets, fill))
    assert all(0 <= at < len(fill) for at in (*brackets.left_open(fill), brackets.excess(fill) or 0) if fill)
    for hole in holes(before + old + after, language, random.Random(0)):
        assert hole.start < hole.end


@settings(max_examples=150)
@given(BYTES, BYTES, BYTES, LANGUAGES)
def test_random_bytes(before, fill, after, language):
    check_everything(before, fill, after, language)


@settings(max_examples=150)
@given(CODE, CODE, CODE, CODE, LANGUAGES)
def test_random_code(before, fill, after, old, language):
    check_everything(before, fill, after, language, old)


@pytest.mark.parametrize("file", sorted(CASES.iterdir()), ids=lambda path: path.name)
def test_prefixes_of_files(file):
    """At every cursor of a file that is only written so far, what was written next adds no problem."""
    language = language_of(path=file.name) or ""
    text = file.read_text(encoding="utf-8")
    for cursor in range(0, len(text), 37):
        validator = Validator(text[:cursor], "", language)
        verdict = validator.verdict(text[cursor:])
        assert verdict is not None
        assert verdict.problems == (), cursor
        assert validator.verdict(text[cursor : cursor + 25]) is not None


@pytest.mark.parametrize("ends", [("\r\n",), ("\r",), ("\n", "\r\n", "\r")], ids=repr)
@pytest.mark.parametrize("file", ["ferry.py", "inventory.js", "grid.rs", "Ledger.java"])
def test_mixed_line_ends(file, ends):
    language = language_of(path=file) or ""
    rng = random.Random(1)
    lines = (CASES / file).read_text(encoding="utf-8").split("\n")
    text = "".join(line + rng.choice(ends) for line in lines)
    for hole in holes(text, language, rng, count=20):
        verdict = Validator(text[: hole.start], text[hole.end :], language).verdict(text[hole.start : hole.end])
        assert verdict is not None
        assert verdict.whole


NASTY = {
    "one line": "a" * 5_000_000,
    "opened": "(" * 5_000_000,
    "lists": "[1," * 200_000,
    "nested": "(" * 100_000 + ")" * 100_000,
    "blocks": "{\n" * 100_000,
    "indented": "".join("\t" * depth + "if x:\n" for depth in range(500)),
    "quotes": "'\"`" * 200_000,
    "sums": "1+" * 60_000,
    "signs": "-" * 200_000,
    "calls": "f(" * 50_000,
    "headers": "if x:\n" * 50_000,
    "attributes": "a." * 300_000,
    "nothing": "\0" * 100_000,
    "lines": "\n" * 500_000,
    "closed wrongly": "(" * 100_000 + "]" * 100_000,
    "regular expressions": "x=/[[" * 40_000,
    "exports": "export\n" * 20_000,
    "noise": "".join(random.Random(0).choices("(){}[]\"'`ab ,;:=<>/*#\\", k=300_000)),
}


BRACKETS = ("opened", "nested", "closed wrongly")
"""They take seconds, in each language that pairs brackets the same ones."""


@pytest.mark.parametrize(
    ("name", "language"),
    [
        (name, language)
        for language in ("python", "javascript", "cpp", "yaml", "markdown", "ruby")
        for name in NASTY
        if name not in BRACKETS or language not in ("javascript", "cpp", "ruby")
    ],
)
def test_nasty_texts_cost_no_more_than_the_budget(name, language):
    text = NASTY[name]
    before, after = text[: len(text) // 2], text[len(text) // 2 :]
    begin = time.process_time()
    Validator(before, after, language).verdict("x(", Budget(50))
    brackets = brackets_near(before, after, language)
    cut_to_extent(brackets, "x(\ny)")
    without_closers(brackets, "x(\ny)")
    assert time.process_time() - begin < 3.0


@pytest.mark.parametrize("name", ["lists", "sums", "signs", "calls", "quotes", "indented", "nothing"])
def test_python_that_overstrains_a_compiler(name):
    text = NASTY[name][:20_000]
    check_everything(text, "x + 1", "\n", "python")
