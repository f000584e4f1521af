"""What grammars let pass although the language does not: keywords as names, empty list items, `await` anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tree_sitter import Node

from engine.syntax.budget import Budget
from engine.syntax.problems import Found
from engine.syntax.regexes import is_bad_regex
from engine.syntax.reserved import RESERVED

_MODULE = re.compile(rb"^(?:import|export)\b", re.MULTILINE)
_COMMON = re.compile(rb"\brequire\(|\bexports\b")
_STRICTNESS = re.compile(rb"""\A(?:\s|//[^\n]*|/\*.*?\*/)*+['"]use strict['"]""", re.DOTALL)
_SCRIPTS = frozenset(["javascript", "typescript", "tsx"])
_NAMES = frozenset(["identifier", "type_identifier", "shorthand_property_identifier"])
_AWAIT, _YIELD = frozenset([b"await"]), frozenset([b"yield"])
_STRICT = frozenset(b"yield let static implements package protected interface private public".split())
"""Names in a sloppy script only."""
_FUNCTIONS = frozenset(
    [
        "function_declaration",
        "function_expression",
        "arrow_function",
        "method_definition",
        "generator_function",
        "generator_function_declaration",
        "class_static_block",
    ]
)
_LOOPS = frozenset(["for_statement", "for_in_statement", "while_statement", "do_statement"])
_BODIED = _LOOPS | {"if_statement", "else_clause"}
_DECLARATIONS = frozenset(["lexical_declaration", "class_declaration"])
_NO_OPERANDS = frozenset(
    ["assignment_expression", "augmented_assignment_expression", "arrow_function", "yield_expression"]
)
_APPLIED = frozenset(["call_expression", "subscript_expression"])
"""What a grammar takes `await (x)` and `await [x]` for."""
_LISTS = frozenset(["arguments", "object", "object_pattern"])
_MODULE_LEVEL = frozenset(["program", "module", "internal_module", "ambient_declaration"])


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where a node stands."""

    awaits: bool
    yields: bool = False
    breaks: bool = False
    continues: bool = False
    labelled: bool = False
    module_level: bool = True
    module: bool = False
    """In a file that imports or exports, where `await` is no name."""
    in_function: bool = False
    strict: bool = False
    """Where a directive or a class says so; a module is strict anyway."""
    typed: bool = False
    """In TypeScript, where a declaration file has constants without values."""

    @property
    def words(self) -> frozenset[bytes]:
        """Words that are names elsewhere."""
        words = _AWAIT if self.module or (self.awaits and self.in_function) else frozenset[bytes]()
        if (self.module or self.strict) and not self.typed:
            return words | _STRICT
        return words | _YIELD if self.yields else words


def violations(
    root: Node, data: bytes, document: bytes, language: str, first: int, last: int, budget: Budget
) -> list[Found]:
    """Rules that `data[first:last]` breaks, in bytes; what surrounds it is not looked at. Stops when out of time.

    `document` is all of the file, of which `data` may be a part: it tells what is declared and imported.
    """
    reserved = RESERVED.get(language, frozenset())
    scripts = language in _SCRIPTS
    module = _MODULE.search(document) is not None
    modern = module or _COMMON.search(document) is None
    found: list[Found] = []
    strict = _STRICTNESS.search(document) is not None
    todo = [(root, _Scope(awaits=modern, module=module, strict=strict, typed=language != "javascript"))]
    while todo and not budget.over():
        node, scope = todo.pop()
        if node.type in _NAMES and data[node.start_byte : node.end_byte] in reserved:
            found.append(Found("keyword as a name", node.start_byte, node.end_byte))
        if scripts:
            found += _broken(node, data, document, scope)
            scope = _inside(node, scope)
        ours = first <= node.start_byte < last and node.type in _FUNCTIONS
        todo += [
            (child, scope)
            for child in node.children
            if not child.is_error and (ours or (child.start_byte < last and child.end_byte > first))
        ]
    return found


def _inside(node: Node, scope: _Scope) -> _Scope:
    kind = node.type
    if kind in _FUNCTIONS:
        words = {child.type for child in node.children[:3]}
        generator = "generator" in kind or "*" in words
        return _Scope(
            awaits="async" in words,
            yields=generator,
            module_level=False,
            module=scope.module,
            in_function=True,
            strict=scope.strict,
            typed=scope.typed,
        )
    if kind in _LOOPS:
        return replace(scope, breaks=True, continues=True, module_level=False)
    if kind == "switch_statement":
        return replace(scope, breaks=True, module_level=False)
    if kind == "labeled_statement":
        return replace(scope, breaks=True, labelled=True, module_level=False)
    if kind in ("class_body", "statement_block"):
        strict = scope.strict or kind == "class_body"
        return replace(scope, module_level=scope.module_level and _is_namespace(node), strict=strict)
    return scope


def _is_namespace(block: Node) -> bool:
    return block.parent is not None and block.parent.type in _MODULE_LEVEL and block.type == "statement_block"


def _broken(node: Node, data: bytes, document: bytes, scope: _Scope) -> Iterator[Found]:
    kind = node.type
    if kind in _LISTS:
        yield from _empty_items(node)
    elif (kind == "await_expression" and not scope.awaits) or (kind == "yield_expression" and not scope.yields):
        yield Found(f"{kind} outside", node.start_byte, node.start_byte + 5)
    elif kind in _NAMES and data[node.start_byte : node.end_byte] in scope.words and not _begins(node, _APPLIED):
        yield Found("keyword as a name", node.start_byte, node.end_byte)
    elif kind == "super" and not _begins(node, _APPLIED | {"member_expression"}):
        yield Found("super alone", node.start_byte, node.end_byte)
    elif kind == "regex_pattern" and is_bad_regex(data[node.start_byte : node.end_byte].decode(errors="replace")):
        yield Found("bad regular expression", node.start_byte, node.end_byte)
    elif kind == "binary_expression":
        right = node.child_by_field_name("right")
        if right and right.type in _NO_OPERANDS:
            yield Found(f"{right.type} as an operand", right.start_byte, right.end_byte)
    elif kind == "formal_parameters":
        yield from (
            Found("no parameter", child.start_byte, child.end_byte)
            for child in node.named_children
            if child.type in ("member_expression", "subscript_expression")
        )
    elif kind == "return_statement" and scope.module and not scope.in_function:
        yield Found("return outside", node.start_byte, node.start_byte + 6)
    elif kind == "break_statement" and not scope.breaks:
        yield Found("break outside", node.start_byte, node.end_byte)
    elif kind == "continue_statement" and not (scope.continues or scope.labelled):
        yield Found("continue outside", node.start_byte, node.end_byte)
    elif kind in ("import_statement", "export_statement") and not scope.module_level:
        yield Found(f"{kind} inside", node.start_byte, node.start_byte + 6)
    elif kind == "expression_statement":
        yield from _begun_by_declaration(node)
    elif kind in _DECLARATIONS and _is_body(node):
        yield Found("declaration as a body", node.start_byte, node.end_byte)
    elif kind == "private_property_identifier":
        name = re.compile(re.escape(data[node.start_byte : node.end_byte]) + rb"(?![\w$])")
        if len(name.findall(data)) == 1 and not name.search(document):
            yield Found("undeclared private name", node.start_byte, node.end_byte)
    elif kind == "assignment_expression":
        left = node.child_by_field_name("left")
        if left and left.child_by_field_name("optional_chain"):
            yield Found("assignment to an optional chain", left.start_byte, left.end_byte)
    elif kind == "lexical_declaration" and not scope.typed:
        yield from _bare_constants(node)
    elif kind in ("statement_block", "program"):
        yield from _declared_twice(node, data)


def _begins(node: Node, kinds: frozenset[str]) -> bool:
    """Whether it is what a node of these kinds begins with."""
    parent = node.parent
    return parent is not None and parent.type in kinds and parent.child(0) == node


def _is_body(node: Node) -> bool:
    """Whether a declaration stands, without a block, where a statement has to."""
    parent = node.parent
    if parent is None or parent.type not in _BODIED:
        return False
    return parent.child_by_field_name("initializer") != node and parent.child_by_field_name("left") != node


def _begun_by_declaration(statement: Node) -> Iterator[Found]:
    """A statement that begins with `class` or `function` is a declaration, and nothing follows it."""
    first = statement
    while first.child_count and first.type not in ("class", "function_expression", "generator_function"):
        first = first.child(0)
    if first.child_count:
        yield Found("declaration in an expression", first.end_byte, statement.end_byte)


def _empty_items(node: Node) -> Iterator[Found]:
    before = "("
    for child in node.children:
        if child.type == "," and before in "({,":
            yield Found("empty item", child.start_byte, child.end_byte)
        before = child.type if child.type != "comment" else before


def _bare_constants(node: Node) -> Iterator[Found]:
    if node.children[0].type == "const":
        for child in node.named_children:
            if child.type == "variable_declarator" and child.child_by_field_name("value") is None:
                yield Found("constant without a value", child.start_byte, child.end_byte)


def _declared_twice(block: Node, data: bytes) -> Iterator[Found]:
    seen: set[bytes] = set()
    for statement in block.named_children:
        if statement.type not in ("lexical_declaration", "class_declaration"):
            continue
        for declared in [statement, *statement.named_children]:
            name = declared.child_by_field_name("name")
            if name and name.type in _NAMES:
                text = data[name.start_byte : name.end_byte]
                if text in seen:
                    yield Found("declared twice", name.start_byte, name.end_byte)
                seen.add(text)
