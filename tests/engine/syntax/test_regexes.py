"""Patterns that V8 takes, and patterns that it does not."""

import pytest

from engine.syntax.regexes import is_bad_regex


@pytest.mark.parametrize(
    "pattern",
    [
        r"a(b)c|",
        r"\(",
        r"[(]",
        r"[^\]]+",
        r"a{2,3}?b*?",
        r"(?:a|b)+",
        r"(?<n>x)\k<n>",
        r"(?<=a)b(?!c)",
        r"^\s*$",
        r"[\x00-\x08\x0b]",
        r"[a-z\d-]",
        r"[\w-.]",
        r"{",
        r"x{,3}",
        r"[^]",
        r"[]",
        r"]",
        r"\u{1F600}",
    ],
)
def test_good(pattern):
    assert not is_bad_regex(pattern)


@pytest.mark.parametrize("pattern", ["(a", "a)", "[a", "*a", "(?", "a**", "(|*)", "[z-a]", r"[\x09-\x08]", "a|*"])
def test_bad(pattern):
    assert is_bad_regex(pattern)
