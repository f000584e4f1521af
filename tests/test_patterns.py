"""Regular expressions read documents, which anybody may have written: none may take more than its text is long."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
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


CATEGORIES = {
    _constants.CATEGORY_DIGIT: r"\d",
    _constants.CATEGORY_NOT_DIGIT: r"\D",
    _constants.CATEGORY_SPACE: r"\s",
    _constants.CATEGORY_NOT_SPACE: r"\S",
    _constants.CATEGORY_WORD: r"\w",
    _constants.CATEGORY_NOT_WORD: r"\W",
}
SIGNS = frozenset([*map(chr, range(128)), "é", "\u2028", "😋"])
"""Those that a class of characters is told by."""


def signs(tree: Any) -> frozenset[str]:
    """All that any part of a pattern takes."""
    return frozenset[str]().union(*(taken(*part) for part in tree))


def taken(kind: Any, of: Any) -> frozenset[str]:
    if kind is _constants.LITERAL:
        return frozenset((chr(of), chr(of).lower(), chr(of).upper()))
    if kind is _constants.NOT_LITERAL:
        return SIGNS - {chr(of)}
    if kind is _constants.RANGE:
        return frozenset(each for each in SIGNS if of[0] <= ord(each) <= of[1])
    if kind is _constants.CATEGORY:
        return frozenset(each for each in SIGNS if re.match(CATEGORIES[of], each))
    if kind is _constants.IN:
        inside = signs(part for part in of if part[0] is not _constants.NEGATE)
        return SIGNS - inside if of[0][0] is _constants.NEGATE else inside
    if kind is _constants.BRANCH:
        return frozenset[str]().union(*map(signs, of[1]))
    if kind is _constants.SUBPATTERN:
        return signs(of[3])
    if kind in BACKTRACKING | {_constants.POSSESSIVE_REPEAT}:
        return signs(of[2])
    if kind is _constants.ATOMIC_GROUP:
        return signs(of)
    return SIGNS if kind in (_constants.ANY, _constants.GROUPREF) else frozenset()


@dataclass(frozen=True)
class GivesBack:
    """Something repeated without end: what it takes, and of that what a text has to have besides to get from there to
    here."""

    number: int
    signs: frozenset[str]
    between: frozenset[frozenset[str]] = frozenset()

    def past(self, signs: frozenset[str]) -> GivesBack:
        return replace(self, between=self.between | {self.signs & signs})

    def meets(self, signs: frozenset[str]) -> bool:
        return all(each & signs for each in (self.signs, *self.between))


Way = tuple[frozenset[GivesBack], bool]
"""Those before that what follows next can give back to, and whether two have met."""


class Shared:
    """Whether two things repeated without end can share out a text in many ways, all of which are tried where what is
    behind them fails: each as long as the text."""

    def __init__(self, tree: Any) -> None:
        self.found = False
        self._repeats = 0
        self._all(tree, frozenset(), met=False)

    def _all(self, tree: Any, before: frozenset[GivesBack], *, met: bool) -> Way:
        for kind, of in tree:
            before, met = self._part(kind, of, before, met=met)
        return before, met

    def _part(self, kind: Any, of: Any, before: frozenset[GivesBack], *, met: bool) -> Way:
        if kind is _constants.SUBPATTERN:
            return self._all(of[3], before, met=met)
        if kind is _constants.ATOMIC_GROUP:
            return self._whole(of, before, met=met)
        if kind is _constants.BRANCH:
            ways = [self._all(each, before, met=met) for each in of[1]]
            return frozenset[GivesBack]().union(*(way for way, _ in ways)), any(each for _, each in ways)
        if kind in BACKTRACKING | {_constants.POSSESSIVE_REPEAT}:
            return self._repeated(kind, of, before, met=met)
        self.found |= met
        if kind in (_constants.ASSERT, _constants.ASSERT_NOT):
            self._all(of[1], before, met=False)
        if kind in (_constants.AT, _constants.ASSERT, _constants.ASSERT_NOT, _constants.GROUPREF):
            return before, met
        return past(before, taken(kind, of)), met

    def _repeated(self, kind: Any, of: Any, before: frozenset[GivesBack], *, met: bool) -> Way:
        least, most, inside = of
        if most < UNBOUNDED:
            keeps = kind is _constants.POSSESSIVE_REPEAT
            behind, meets = (self._whole if keeps else self._all)(inside, before, met=met and least > 0)
            return behind if least else behind | before, met or meets
        self.found |= met and least > 0
        what = signs(inside)
        met |= any(each.meets(what) for each in before)
        if least:
            before = past(before, what)
        if kind in BACKTRACKING:
            self._repeats += 1
            before |= {GivesBack(self._repeats, what)}
        return before, met

    def _whole(self, tree: Any, before: frozenset[GivesBack], *, met: bool) -> Way:
        """What gives nothing back once it is over."""
        behind, met = self._all(tree, before, met=met)
        numbers = {each.number for each in before}
        return frozenset(each for each in behind if each.number in numbers), met


def past(before: frozenset[GivesBack], what: frozenset[str]) -> frozenset[GivesBack]:
    return frozenset(each.past(what) for each in before if each.signs & what)


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


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (r"\s*=?\s*$", True),
        (r"\s*(?:=>|\{)?\s*x", True),
        (r"(?:\S*/)?(?:\S*/)?x", True),
        (r".*a.*b", True),
        (r"a*(?:b|a*c)", True),
        (r"a*(?=a*b)", True),
        (r"a*a*", False),
        (r"a*b*c", False),
        (r"a+b?c+d", False),
        (r".*=\w+;", False),
        (r"a*+a*b", False),
        (r"(?>a*)a*b", False),
        (r"(?:a*x){0,9}+a*b", False),
    ],
)
def test_what_is_shared_is_seen(pattern: str, found: bool):
    assert Shared(_parser.parse(pattern)).found == found


def patterns(name: str) -> Iterator[tuple[str, int]]:
    """With their flags: those that a module holds, and those that it spells where it uses them."""
    module = importlib.import_module(name)
    held = {each.pattern: each.flags for each in vars(module).values() if isinstance(each, re.Pattern)}
    yield from held.items()
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name("re"), attr=used), args=[ast.Constant(str(text)), *_]):
                if used != "escape" and text not in held:
                    yield text, 0


@pytest.mark.parametrize("name", READ_DOCUMENTS)
def test_no_pattern_repeats_what_repeats(name: str):
    assert [text for text, flags in patterns(name) if nested(_parser.parse(text, flags))] == []


@pytest.mark.parametrize("name", READ_DOCUMENTS)
def test_no_two_parts_of_a_pattern_share_what_repeats(name: str):
    assert [text for text, flags in patterns(name) if Shared(_parser.parse(text, flags)).found] == []


@pytest.mark.parametrize("language", [each.name for each in GRAMMARS.values() if each.lexes])
def test_no_lexer_repeats_what_repeats(language: str):
    pattern = lexing._pattern(language)
    assert pattern is not None
    assert not nested(_parser.parse(pattern.pattern, pattern.flags))
    assert not Shared(_parser.parse(pattern.pattern, pattern.flags)).found
