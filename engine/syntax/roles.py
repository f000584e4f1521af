"""The role of a span in its code: whether it binds a name, uses one, or is prose, and in whose scope. It follows from
the names that grammars give to nodes and fields, which agree nearly everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal

from tree_sitter import Node

from engine.common.wire import Wire
from engine.syntax.languages import ARGUMENTS
from engine.syntax.tree import SyntaxTree, around

RoleKind = Literal[
    "definition", "parameter", "import", "assigned", "assigned_member", "member", "keyword", "mention", "text", "use"
]
"""A "mention" is a name in prose that is marked as one: in backticks, or in documentation of parameters."""
BINDS: frozenset[RoleKind] = frozenset({"definition", "parameter", "import", "assigned", "assigned_member"})
MEMBERS: frozenset[RoleKind] = frozenset({"member", "assigned_member"})

_TEXT = re.compile(r"string|comment|char_literal")
_BEFORE_DEFINITION = re.compile(r"comment|attribute|decorator|annotation")
_BACKTICKS = re.compile(r"`+")
_DOCUMENTS = re.compile(r"[:@\\]param\s+(\{[^{}]*\}\s*|[^\s:]+\s+)?\[?$")
_MARGIN = re.compile(r"[\s*/#-]*")
_EXPLAINED = re.compile(r" ?(\([^()\n]*\))? ?:(?!\S)")
_DEFINITION = re.compile(
    r"(function|method|class|struct|enum|trait|interface|type).*(definition|declaration|item|spec)|(singleton_)?method$"
)
_SCOPE = re.compile(
    r"(function|method|class|lambda|closure|constructor|impl)_?\w*(definition|declaration|expression|item|specifier)"
    r"|lambda|arrow_function|(singleton_)?method"
)
_ASSIGNS = re.compile(r"assign|declarator|let_declaration|(^|_)for(_|$)|short_var")
_ASSIGNED = ("left", "name", "pattern")
_KEYWORDS = frozenset({"keyword_argument.name", "argument.name", "pair.key"})
_CALLED = re.compile(r"(\w+)\W*$")
_CONSTRUCTORS = frozenset({"__init__", "__new__", "__construct", "initialize", "constructor"})
_DOCUMENTING = 40
"""Most comments and attributes before one definition."""
_LINE_CHARS = 200
"""Characters of a line that are read before and after a name in prose."""
_UP = 4
"""Nodes around a span that decide its role."""


class SpanRole(Wire, frozen=True, kw_only=True):
    role: RoleKind
    inside: str
    """The node around the span's own node, and its field there."""
    scopes: tuple[int, ...]
    """The beginnings of the functions and classes around it, the innermost first; a comment before one counts as inside
    it."""
    function: str = ""
    """For a parameter the function that has it, for a keyword the function that is called with it; a constructor by its
    class."""


def role_of(tree: SyntaxTree, start: int, end: int) -> SpanRole:
    """The role of [start, end) of the tree's text."""
    first, last = tree.byte(start), tree.byte(end)
    nodes = list(around(tree.root.descendant_for_byte_range(first, max(first, last - 1)) or tree.root))
    if [each.type for each in nodes[1:2]] == ["variable_name"]:
        # PHP's names with their sign.
        nodes = nodes[1:]
    fields = [_field(*pair) for pair in pairwise(nodes[:3])] + ["", ""]
    role = _kind([each.type for each in nodes[: _UP + 1]], fields[0], fields[1])
    if role == "text" and _is_mention(tree.text, start, end):
        role = "mention"
    scopes = [each for each in nodes if _SCOPE.fullmatch(each.type)]
    scopes[:0] = _documented(nodes[:2])
    function = ""
    if role == "parameter":
        function = function_name(tree, scopes)
    elif role == "keyword":
        function = _called(tree, nodes)
    return SpanRole(
        role=role,
        inside=f"{nodes[1].type}.{fields[0]}" if len(nodes) > 1 else "",
        scopes=tuple(tree.offset(each.start_byte) for each in scopes),
        function=function,
    )


def _is_mention(text: str, start: int, end: int) -> bool:
    before = text[text.rfind("\n", max(0, start - _LINE_CHARS), start) + 1 : start][-_LINE_CHARS:]
    after = text[end : end + _LINE_CHARS]
    return bool(
        len(_BACKTICKS.findall(before)) % 2
        or _DOCUMENTS.search(before)
        or (_MARGIN.fullmatch(before) and _EXPLAINED.match(after))
    )


def _documented(nodes: Sequence[Node]) -> Iterator[Node]:
    """The function or class that a comment documents, also if it is exported or assigned there."""
    node = next((each for each in reversed(nodes) if "comment" in each.type), None)
    for _ in range(_DOCUMENTING):
        if node and _BEFORE_DEFINITION.search(node.type):
            node = node.next_named_sibling
    for _ in range(_UP):
        if node and _SCOPE.fullmatch(node.type):
            yield node
            return
        node = node.named_child(node.named_child_count - 1) if node and node.named_child_count else None


def function_name(tree: SyntaxTree, scopes: Sequence[Node | None]) -> str:
    """The name of the innermost called function."""
    fields = (each.child_by_field_name("name") for each in scopes if each)
    names = (tree.said(each) for each in fields if each)
    return next((name for name in names if name not in _CONSTRUCTORS), "")


def _called(tree: SyntaxTree, nodes: Sequence[Node]) -> str:
    """The function that is called with a keyword argument."""
    if len(nodes) < 4:
        return ""
    arguments, call = nodes[2:4]
    found = _CALLED.search(tree.said(call, arguments)[-_LINE_CHARS:])
    return found[1] if found else ""


def _field(inner: Node, outer: Node) -> str:
    # A whole file has no fields, and too many children to look through.
    children = outer.children if outer.parent else []
    at = next((at for at, child in enumerate(children) if child.id == inner.id), None)
    return (outer.field_name_for_child(at) or "") if at is not None else ""


def _kind(types: Sequence[str], field: str, outer_field: str) -> RoleKind:
    """The kind of a span. `types`: of its node and those around it; `field`: its field in the next one, and that one's
    in the one around."""
    outer, beyond = [*types[1:3], "", ""][:2]
    if any(map(_TEXT.search, types[:2])):
        return "text"
    if field == "name" and _DEFINITION.search(outer):
        return "definition"
    if f"{outer}.{field}" in _KEYWORDS and beyond in ARGUMENTS:
        return "keyword"
    if "parameter" in outer and field not in ("type", "value", "default_value"):
        return "parameter"
    if any("import" in each or each == "use_declaration" for each in types):
        return "import"
    assigned = (field in _ASSIGNED and _ASSIGNS.search(outer)) or (outer_field in _ASSIGNED and _ASSIGNS.search(beyond))
    if field in ("attribute", "property", "field"):
        return "assigned_member" if assigned else "member"
    return "assigned" if assigned or field == "alias" or outer == "as_pattern_target" else "use"
