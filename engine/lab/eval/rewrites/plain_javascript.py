"""TypeScript without its types, so that any node can run it. Types become blanks, as in node's own type stripping.
Enums, namespaces and decorators stay, and don't run."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node, Parser

from engine.syntax.languages import load

_TYPES = {
    *("type_annotation", "type_parameters", "type_arguments", "interface_declaration", "type_alias_declaration"),
    *("accessibility_modifier", "override_modifier", "asserts_annotation", "type_predicate_annotation"),
    *("implements_clause", "ambient_declaration", "function_signature"),
}
_WORDS = {"readonly", "abstract"}
_AFTER = {"as_expression": ("as",), "satisfies_expression": ("satisfies",), "non_null_expression": ("!",)}


def plain_javascript(text: str) -> str:
    grammar = load("typescript")
    assert grammar is not None
    data = text.encode()
    root = Parser(grammar).parse(data).root_node
    changes = [(start, end, b"") for start, end in _types(root)] + list(_kept_parameters(root))
    for start, end, new in sorted(changes, reverse=True):
        blank = bytes(letter if letter in b"\r\n" else ord(" ") for letter in data[start:end])
        data = data[:start] + new + blank + data[end:]
    return data.decode()


def _types(node: Node) -> Iterator[tuple[int, int]]:
    """Spans of types in bytes, none inside another."""
    if node.type in _TYPES or (not node.is_named and node.type in _WORDS):
        yield node.start_byte, node.end_byte
        return
    optional = node.type in ("optional_parameter", "public_field_definition", "method_definition")
    for child in node.children:
        if child.type in _AFTER.get(node.type, ()):
            yield child.start_byte, node.end_byte
            return
        if optional and child.type == "?":
            yield child.start_byte, child.end_byte
        else:
            yield from _types(child)


def _kept_parameters(node: Node) -> Iterator[tuple[int, int, bytes]]:
    """Assignments that a constructor owes for parameters that are fields as well."""
    body = node.child_by_field_name("body")
    parameters = node.child_by_field_name("parameters")
    if node.type == "method_definition" and body and parameters:
        for each in parameters.named_children:
            name = each.child_by_field_name("pattern")
            if name and any(part.type in ("accessibility_modifier", "readonly") for part in each.children):
                said = name.text or b""
                yield body.start_byte + 1, body.start_byte + 1, b" this." + said + b" = " + said + b";"
    for child in node.children:
        yield from _kept_parameters(child)
