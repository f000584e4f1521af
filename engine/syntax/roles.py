"""What a span of a text is to its code: whether it binds a name, uses one, or is prose, and in whose scope it lies.

Told from the names that grammars give to nodes and fields, which agree from language to language nearly everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal

from tree_sitter import Node

from engine.core.wire import Wire
from engine.syntax.tree import SyntaxTree

RoleKind = Literal[
    "definition", "parameter", "import", "assigned", "assigned_member", "member", "keyword", "text", "use"
]
BINDS: frozenset[RoleKind] = frozenset({"definition", "parameter", "import", "assigned", "assigned_member"})
MEMBERS: frozenset[RoleKind] = frozenset({"member", "assigned_member"})

_TEXT = re.compile(r"string|comment|char_literal")
_DEFINITION = re.compile(
    r"(function|method|class|struct|enum|trait|interface|type).*(definition|declaration|item|spec)"
)
_SCOPE = re.compile(
    r"(function|method|class|lambda|closure|constructor|impl)_?\w*(definition|declaration|expression|item|specifier)"
    r"|lambda|arrow_function"
)
_ASSIGNS = re.compile(r"assign|declarator|let_declaration|(^|_)for(_|$)|short_var")
_ASSIGNED = ("left", "name", "pattern")
_UP = 4
"""Nodes around a span that say what it is."""


class SpanRole(Wire, frozen=True, kw_only=True):
    role: RoleKind
    inside: str
    """The node around the span's own, and the field that it is there."""
    scopes: tuple[int, ...]
    """Where the functions and classes around it begin, the innermost first."""


def role_of(tree: SyntaxTree, start: int, end: int) -> SpanRole:
    """What [start, end) of the tree's text is."""
    first, last = tree.byte(start), tree.byte(end)
    around = list(_around(tree.root.descendant_for_byte_range(first, max(first, last - 1)) or tree.root))
    fields = [_field(*pair) for pair in pairwise(around[:3])] + ["", ""]
    return SpanRole(
        role=_kind([each.type for each in around[: _UP + 1]], fields[0], fields[1]),
        inside=f"{around[1].type}.{fields[0]}" if len(around) > 1 else "",
        scopes=tuple(tree.offset(each.start_byte) for each in around if _SCOPE.fullmatch(each.type)),
    )


def _around(node: Node | None) -> Iterator[Node]:
    """A node and those around it, the innermost first."""
    while node is not None:
        yield node
        node = node.parent


def _field(inner: Node, outer: Node) -> str:
    # A whole file has no fields, and too many children to look through.
    children = outer.children if outer.parent else []
    at = next((at for at, child in enumerate(children) if child.id == inner.id), None)
    return (outer.field_name_for_child(at) or "") if at is not None else ""


def _kind(types: Sequence[str], field: str, outer_field: str) -> RoleKind:
    """`types`: of a node and those around it; `field`: what it is in the next, and that in the one around."""
    outer, beyond = [*types[1:3], "", ""][:2]
    if any(map(_TEXT.search, types[:2])):
        return "text"
    if field == "name" and _DEFINITION.search(outer):
        return "definition"
    if outer == "keyword_argument" and field == "name":
        return "keyword"
    if "parameter" in outer and field not in ("type", "value", "default_value"):
        return "parameter"
    if any("import" in each or each == "use_declaration" for each in types):
        return "import"
    assigned = (field in _ASSIGNED and _ASSIGNS.search(outer)) or (outer_field in _ASSIGNED and _ASSIGNS.search(beyond))
    if field in ("attribute", "property", "field"):
        return "assigned_member" if assigned else "member"
    return "assigned" if assigned or field == "alias" or outer == "as_pattern_target" else "use"
