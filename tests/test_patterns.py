"""Regular expressions read documents, which anybody may have written: none may take more than its text is long."""

from __future__ import annotations

import importlib
import re
from re import _constants, _parser  # type: ignore[attr-defined]  # the library's own view of a pattern
from typing import Any

import pytest

from engine.syntax import lexing
from engine.syntax.languages import GRAMMARS
from tests.test_layers import modules

UNBOUNDED = 1000
"""Repetitions from which on they count as any number."""
READ_DOCUMENTS = [name for name in modules("engine") if name.split(".")[1:2] in (["syntax"], ["analysis"], ["text"])]
READ_DOCUMENTS += [name for name in modules("dg_lsp") if not name.startswith("dg_lsp.commands")]
BACKTRACKING = {_constants.MAX_REPEAT, _constants.MIN_REPEAT}
NEVER_GIVES_BACK = {_constants.POSSESSIVE_REPEAT, _constants.ATOMIC_GROUP}


def nested(tree: Any, *, repeated: bool = False) -> bool:
    """Whether something repeated without end holds something else repeated without end, and may give parts back."""
    if isinstance(tree, _parser.SubPattern):
        return any(nested(part, repeated=repeated) for part in tree)
    if not isinstance(tree, tuple | list):
        return False
    if isinstance(tree, tuple) and tree and tree[0] in NEVER_GIVES_BACK:
        return any(nested(part) for part in tree[1:])
    if isinstance(tree, tuple) and tree and tree[0] in BACKTRACKING:
        _, (_, most, inside) = tree
        endless = most >= UNBOUNDED
        return (endless and repeated) or nested(inside, repeated=repeated or endless)
    return any(nested(part, repeated=repeated) for part in tree)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (r"(?:a+b)*", True),
        (r"(?:(?:x|a*)b){0,5000}", True),
        (r"(?:a++b)*", False),
        (r"(?:a+b)*+", False),
        (r"(?:(?:a+b)*)++", True),
        (r"a*b*", False),
    ],
)
def test_what_is_nested_is_seen(pattern: str, found: bool):
    assert nested(_parser.parse(pattern)) == found


@pytest.mark.parametrize("name", READ_DOCUMENTS)
def test_no_pattern_repeats_what_repeats(name: str):
    found = [value for value in vars(importlib.import_module(name)).values() if isinstance(value, re.Pattern)]
    assert [each.pattern for each in found if nested(_parser.parse(each.pattern, each.flags))] == []


@pytest.mark.parametrize("language", [each.name for each in GRAMMARS.values() if each.lexes])
def test_no_lexer_repeats_what_repeats(language: str):
    pattern = lexing._pattern(language)
    assert pattern is not None
    assert not nested(_parser.parse(pattern.pattern, pattern.flags))
