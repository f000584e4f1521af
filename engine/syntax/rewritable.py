"""The rewrites that suit a selection, by its grammar: code without type hints or docstring, a loop that only appends,
..."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tree_sitter import Node

from engine.common.analysis import Rewritable, RewriteKind
from engine.syntax.languages import PYTHON
from engine.syntax.tree import SyntaxTree, around

_FUNCTIONS = {
    *("function_definition", "function_declaration", "method_definition", "function_item", "method_declaration"),
    *("class_definition", "class_declaration", "decorated_definition"),
}
_UNTYPED = ("identifier", "default_parameter")
_EMPTY = re.compile(r"/\s*len\(|\b(max|min)\(\w+\)|\[0\]|\[-1\]|\.reduce\(")
_GUARD = re.compile(r"\bnot \w+\b|\blen\(\w+\)\s*(==|<)|\.length\s*(===?|<)|default=")
_NODES = 20_000
"""Most nodes that are searched."""


def rewritable(tree: SyntaxTree, start: int, end: int) -> tuple[Rewritable, ...]:
    """The rewrites that apply to `text[start:end]`, one of a kind: to the whole selection, or without one to the
    function whose first line holds the place."""
    nodes = list(_selected(tree, start, end))
    if not nodes:
        return ()
    if start == end:
        start, end = tree.offset(nodes[0].start_byte), tree.offset(nodes[0].end_byte)
    checks = _PYTHON_CHECKS if tree.language in PYTHON else _CHECKS
    return tuple(
        Rewritable(kind=kind, start=start, end=end)
        for kind, applies in checks.items()
        if any(applies(tree, node) for node in nodes)
    )


def _selected(tree: SyntaxTree, start: int, end: int) -> Iterator[Node]:
    """The nodes in the selection, outer ones first; for a cursor those of the function around it."""
    low, high = tree.byte(start), tree.byte(end)
    if low == high:
        function = _function_at(tree, low)
        if function is None:
            return
        low, high = function.start_byte, function.end_byte
    left, waiting = _NODES, [tree.root]
    while waiting and left:
        node = waiting.pop()
        left -= 1
        if node.start_byte >= high or node.end_byte <= low:
            continue
        if node.is_named and node.start_byte >= low and node.end_byte <= high:
            yield node
        waiting.extend(reversed(node.children))


def _function_at(tree: SyntaxTree, byte: int) -> Node | None:
    """The innermost function or class whose first line holds a byte."""
    nodes, row = around(tree.root.descendant_for_byte_range(byte, byte)), tree.data.count(b"\n", 0, byte)
    return next((each for each in nodes if each.type in _FUNCTIONS and each.start_point[0] == row), None)


def _lacks_hints(tree: SyntaxTree, node: Node) -> bool:
    if node.type != "function_definition":
        return False
    parameters = node.child_by_field_name("parameters")
    named = [each for each in parameters.named_children if tree.said(each) not in ("self", "cls")] if parameters else []
    untyped = any(each.type in _UNTYPED for each in named)
    name = node.child_by_field_name("name")
    is_init = name is not None and tree.said(name) == "__init__"
    return untyped or (node.child_by_field_name("return_type") is None and not is_init)


def _lacks_docstring(tree: SyntaxTree, node: Node) -> bool:
    if node.type not in ("function_definition", "class_definition"):
        return False
    return _docstring(node) is None and not _is_empty(tree, node)


def _lacks_comment(tree: SyntaxTree, node: Node) -> bool:
    if node.type not in _FUNCTIONS:
        return False
    outer = node.parent if node.parent is not None and node.parent.type == "export_statement" else node
    before = outer.prev_named_sibling
    return before is None or "comment" not in before.type


def _is_to_be_written(tree: SyntaxTree, node: Node) -> bool:
    return node.type == "function_definition" and _docstring(node) is not None and _is_empty(tree, node)


def _body(node: Node) -> list[Node]:
    body = node.child_by_field_name("body")
    return [each for each in body.named_children if each.type != "comment"] if body else []


def _docstring(node: Node) -> Node | None:
    first = next(iter(_body(node)), None)
    if first is None or first.type != "expression_statement" or not first.named_children:
        return None
    return first if first.named_children[0].type in ("string", "concatenated_string") else None


def _is_empty(tree: SyntaxTree, node: Node) -> bool:
    """Whether a body is only a placeholder."""
    body = _body(node)
    rest = body[1:] if _docstring(node) else body
    return all(
        each.type == "pass_statement"
        or (each.type == "expression_statement" and each.named_children and each.named_children[0].type == "ellipsis")
        or (each.type == "raise_statement" and "NotImplementedError" in tree.said(each))
        for each in rest
    )


def _fails_when_empty(tree: SyntaxTree, node: Node) -> bool:
    if node.type not in _FUNCTIONS:
        return False
    said = tree.said(node)
    return _EMPTY.search(said) is not None and _GUARD.search(said) is None


def _formats(tree: SyntaxTree, node: Node) -> bool:
    """`"..." % x`, `"...".format(x)`, or a text and a `str(x)` joined by `+`."""
    if node.type == "binary_operator":
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        if left is None or right is None or operator is None:
            return False
        if operator.type == "%":
            return left.type == "string"
        return operator.type == "+" and any(
            one.type == "string" and tree.said(other).startswith("str(")
            for one, other in ((left, right), (right, left))
        )
    if node.type != "call":
        return False
    function = node.child_by_field_name("function")
    if function is None or function.type != "attribute":
        return False
    owner = function.child_by_field_name("object")
    return owner is not None and owner.type == "string" and tree.said(function).endswith(".format")


def _joins(tree: SyntaxTree, node: Node) -> bool:
    """Whether a text and something else are joined by `+`, where a template literal is possible."""
    if node.type != "binary_expression":
        return False
    operator = node.child_by_field_name("operator")
    sides = [node.child_by_field_name(name) for name in ("left", "right")]
    kinds = [side is not None and side.type in ("string", "string_literal") for side in sides]
    return operator is not None and operator.type == "+" and any(kinds) and not all(kinds)


def _only_appends(tree: SyntaxTree, node: Node) -> bool:
    """A loop that only appends, or sets an item, perhaps under a condition."""
    if node.type != "for_statement":
        return False
    body = _body(node)
    if len(body) == 1 and body[0].type == "if_statement" and len(body[0].named_children) == 2:
        inner = body[0].child_by_field_name("consequence")
        body = inner.named_children if inner else []
    if len(body) != 1 or body[0].type != "expression_statement":
        return False
    only = body[0].named_children[0]
    if only.type == "call":
        function = only.child_by_field_name("function")
        return function is not None and re.search(r"\.(append|add)$", tree.said(function)) is not None
    left = only.child_by_field_name("left") if only.type == "assignment" else None
    return left is not None and left.type == "subscript"


def _can_be_simpler(tree: SyntaxTree, node: Node) -> bool:
    """A condition that only chooses between true and false, an else after a return, or a condition alone within
    another."""
    if node.type != "if_statement":
        return False
    then = node.child_by_field_name("consequence")
    inside = [each for each in then.named_children if each.type != "comment"] if then else []
    has_else = node.child_by_field_name("alternative") is not None
    ends = bool(inside) and inside[-1].type in ("return_statement", "raise_statement", "throw_statement")
    return (has_else and ends) or (len(inside) == 1 and inside[0].type == "if_statement" and not has_else)


_Applies = Callable[[SyntaxTree, Node], bool]
_PYTHON_CHECKS: dict[RewriteKind, _Applies] = {
    "body": _is_to_be_written,
    "hints": _lacks_hints,
    "docstring": _lacks_docstring,
    "empty": _fails_when_empty,
    "fstring": _formats,
    "comprehension": _only_appends,
    "simplify": _can_be_simpler,
}
_CHECKS: dict[RewriteKind, _Applies] = {
    "comment": _lacks_comment,
    "empty": _fails_when_empty,
    "template": _joins,
    "simplify": _can_be_simpler,
}
