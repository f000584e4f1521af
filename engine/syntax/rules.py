"""What grammars let pass although the language does not: keywords as names and, in scripts, empty items of a list."""

from __future__ import annotations

import re
from functools import cache

from tree_sitter import Node, Query, QueryCursor

from engine.syntax.languages import GRAMMARS, load
from engine.syntax.problems import Found
from engine.syntax.tree import SyntaxTree

_BLANK = re.compile(rb"\s*")
_NAMES = ("identifier", "type_identifier", "shorthand_property_identifier")
_EMPTY_ITEMS = """
(arguments ["(" ","] . (comment)* . "," @empty)
(object ["{" ","] . (comment)* . "," @empty)
(object_pattern ["{" ","] . (comment)* . "," @empty)
"""


def violations(tree: SyntaxTree, first: int, last: int) -> list[Found]:
    """Rules that `tree.data[first:last]` breaks, in bytes; what surrounds it is not looked at."""
    query = _query(tree.language)
    if query is None:
        return []
    cursor = QueryCursor(query)
    # An item may be empty between the fill and a comma behind it.
    behind = _BLANK.match(tree.data, last)
    cursor.set_byte_range(first, behind.end() + 1 if behind else last)
    captured = cursor.captures(tree.root)
    keywords = _keywords(tree.language)
    names = [node for node in captured.get("name", []) if tree.data[node.start_byte : node.end_byte] in keywords]
    return [
        Found(what, node.start_byte, node.end_byte)
        for what, nodes in (("keyword as a name", names), ("empty item", captured.get("empty", [])))
        for node in nodes
        if _is_certain(node)
    ]


@cache
def _query(language: str) -> Query | None:
    grammar = load(language)
    if grammar is None:
        return None
    names = [f"({name}) @name" for name in _NAMES if grammar.id_for_node_kind(name, True) is not None]
    return Query(grammar, "\n".join(names) + (_EMPTY_ITEMS if language in ("javascript", "typescript", "tsx") else ""))


@cache
def _keywords(language: str) -> frozenset[bytes]:
    return frozenset(GRAMMARS[language].keywords.encode().split())


def _is_certain(node: Node | None) -> bool:
    """Whether it stands in no ERROR node, where names and lists are guesses."""
    while node and not node.is_error:
        node = node.parent
    return node is None
