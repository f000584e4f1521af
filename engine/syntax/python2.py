"""Finds Python 2 code in text that Python 3's compiler rejects. Adding a token would change its meaning, so it is
translated or left alone. The grammar reads both versions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tree_sitter import Node

from engine.syntax.tree import SyntaxTree


class Outdated(NamedTuple):
    """`text[start:end]` is Python 2; `new` is the same in Python 3, None if there is no certain translation."""

    start: int
    end: int
    new: str | None


def outdated_at(tree: SyntaxTree, offset: int) -> Outdated | None:
    """The Python 2 code at the place of a compiler's complaint; None: there is none."""
    at = tree.byte(offset)
    node = tree.root.descendant_for_byte_range(at, at)
    while node and not node.has_error:
        first, last = _span(node)
        if first.start_byte <= at <= last.end_byte and (said := list(_said(tree, node))):
            return Outdated(tree.offset(first.start_byte), tree.offset(last.end_byte), said[0])
        node = node.parent
    return None


def _span(node: Node) -> tuple[Node, Node]:
    values = node.children_by_field_name("value") if node.type == "except_clause" else []
    return (values[0], values[-1]) if values else (node, node)


def _said(tree: SyntaxTree, node: Node) -> Iterator[str | None]:
    """The translation of a node, None if there is no certain one; nothing for a node that is not Python 2."""
    text, named = tree.said(node), node.named_children
    match node.type:
        case "print_statement" | "exec_statement":
            name = node.type.removesuffix("_statement")
            values = text[len(name) :].strip()
            is_plain = not values.endswith(",") and (name == "print" or len(named) == 1)
            yield f"{name}({values})" if is_plain and named[0].type != "chevron" else None
        case "except_clause":
            caught = node.children_by_field_name("value")
            if len(caught) == 2:
                first, name = map(tree.said, caught)
                yield f"{first} as {name}" if re.fullmatch(r"[a-z_]\w*", name) else f"({first}, {name})"
        case "raise_statement" if named and named[0].type == "expression_list":
            raised = named[0].named_children
            is_plain = len(raised) == 2 and raised[1].type != "tuple"
            yield f"raise {tree.said(raised[0])}({tree.said(raised[1])})" if is_plain else None
        case "<>":
            yield "!="
        case "integer":
            if octal := re.fullmatch(r"0([0-7]+)[lL]?", text):
                yield f"0o{octal[1]}"
            elif long := re.fullmatch(r"(\w+)[lL]", text):
                yield long[1]
        case "string" if text[:1] == "`":
            yield f"repr({text[1:-1]})"
        case "string" if text[:2].lower() == "ur":
            yield None
        case "tuple_pattern" if node.parent and node.parent.type in ("parameters", "lambda_parameters"):
            yield None
        case _:
            pass
