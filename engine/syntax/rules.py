"""Rules of languages that their grammars do not check: keywords as names; in scripts also empty items of a list,
constants without a value, `await` and `yield` in functions that do not allow them."""

from __future__ import annotations

import re
from functools import cache

from tree_sitter import Node, Query, QueryCursor

from engine.syntax.languages import GRAMMARS, load
from engine.syntax.problems import Found
from engine.syntax.tree import SyntaxTree, around

_BLANK = re.compile(rb"\s*")
_NAMES = ("identifier", "type_identifier", "shorthand_property_identifier")
_SCRIPTS = """
(arguments ["(" ","] . (comment)* . "," @empty_item)
(object ["{" ","] . (comment)* . "," @empty_item)
(object_pattern ["{" ","] . (comment)* . "," @empty_item)
(await_expression) @await_outside
(yield_expression) @yield_outside
"""
_RULES = {
    "javascript": _SCRIPTS + '(lexical_declaration kind: "const" (variable_declarator !value) @constant_without_value)',
    "typescript": _SCRIPTS,
    "tsx": _SCRIPTS,
}
_FUNCTION = re.compile(r"(?:generator_)?function|arrow_function|method_definition|class_static_block")


def violations(tree: SyntaxTree, first: int, last: int) -> list[Found]:
    """Rules that `tree.data[first:last]` (bytes) breaks; its surroundings are not checked."""
    query = _query(tree.language)
    if query is None:
        return []
    cursor = QueryCursor(query)
    # An item may be empty between the fill and a comma after it.
    blank = _BLANK.match(tree.data, last)
    cursor.set_byte_range(first, blank.end() + 1 if blank else last)
    return [
        Found(rule.replace("_", " "), node.start_byte, node.end_byte)
        for rule, nodes in cursor.captures(tree.root).items()
        for node in nodes
        # In an ERROR node names and lists are guesses.
        if _breaks(rule, node, tree) and not any(each.is_error for each in around(node))
    ]


def _breaks(rule: str, node: Node, tree: SyntaxTree) -> bool:
    match rule:
        case "keyword_as_name":
            # A grammar takes `await (x)` for a call of `await`, and Rust's `'static` for a name.
            word, above = tree.data[node.start_byte : node.end_byte], node.parent.type if node.parent else ""
            called = word == b"await" and above in ("call_expression", "subscript_expression")
            return word in _keywords(tree.language) and not called and above != "lifetime"
        case "await_outside":
            # Outside of all functions it stands in a module.
            return "async" not in _marks(node, otherwise="async")
        case "yield_outside":
            return "*" not in _marks(node, otherwise="")
        case _:
            return True


def _marks(node: Node, otherwise: str) -> list[str]:
    """The keywords and signs at the beginning of the function around a node."""
    function = next((each for each in around(node) if _FUNCTION.match(each.type)), None)
    return [child.type for child in function.children[:3]] if function else [otherwise]


@cache
def _query(language: str) -> Query | None:
    grammar = load(language)
    if grammar is None:
        return None
    names = [f"({name}) @keyword_as_name" for name in _NAMES if grammar.id_for_node_kind(name, True) is not None]
    return Query(grammar, "\n".join(names) + _RULES.get(language, ""))


@cache
def _keywords(language: str) -> frozenset[bytes]:
    return frozenset(GRAMMARS[language].keywords.encode().split())
