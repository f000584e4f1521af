"""What a file imports, and what it offers to others, by its syntax tree."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from tree_sitter import Language, Node

from engine.common.interruptible import InterruptibleParser

MAX_CHARS = 400
"""Limit of one definition."""
MAX_MEMBERS = 8
"""Members shown of a class."""
PARSE_S = 0.5
"""Limit of this thread's time for one file; hand-written files take a tenth of it."""
_GRAMMARS = {
    "python": ("tree_sitter_python", "language"),
    "ipython": ("tree_sitter_python", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "javascriptreact": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "typescriptreact": ("tree_sitter_typescript", "language_tsx"),
}
"""Package and function, by LSP identifier."""
LANGUAGES = frozenset(_GRAMMARS)
PYTHON = ("python", "ipython")
_HOLDS = frozenset(
    (
        *("ERROR", "module", "program", "block", "statement_block", "if_statement", "elif_clause", "else_clause"),
        *("try_statement", "except_clause", "finally_clause", "catch_clause", "with_statement"),
        *("export_statement", "lexical_declaration", "variable_declaration", "expression_statement"),
        *("decorated_definition", "import_statement", "import_clause", "named_imports", "export_clause"),
    )
)
"""Nodes that may hold imports and definitions at the top of a file."""
_INNER = frozenset(
    ("function_definition", "class_definition", "function_declaration", "class_declaration", "class_body")
)
"""Further nodes that may hold imports."""
ALL = "*"
"""Instead of a name: the module itself, or all its names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A name that an import gives to something."""

    name: str
    """The name in the importing file; ALL: each name of the module under its own."""
    module: str
    """As in the source: "a.b", "..b", "./b"."""
    member: str
    """The name in the module; ALL: the module itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """What one file offers."""

    offers: Mapping[str, tuple[int, str]]
    bindings: Mapping[str, Sequence[Binding]]
    """By their names."""


def bindings(text: str, language: str) -> Iterator[Binding]:
    """All imports in a text."""
    code = text.encode()
    if language in _GRAMMARS and (root := tree_of(code, language)):
        yield from bindings_in(code, root, deep=True)


def read_module(text: str, language: str) -> Module:
    """What a text defines and re-exports."""
    code, offers = text.encode(), dict[str, tuple[int, str]]()
    root = tree_of(code, language)
    if root is None:
        return Module(offers={}, bindings={})
    for name, node in _defined(code, root):
        if name not in offers:
            lines = _signature(code, node)
            if len(lines) > MAX_CHARS:
                lines = lines[: max(lines.rfind("\n", 0, MAX_CHARS), 0)]
            if lines:
                offers[name] = node.start_byte, lines
    passed_on = dict[str, list[Binding]]()
    for binding in bindings_in(code, root, deep=False):
        passed_on.setdefault(binding.name, []).append(binding)
    return Module(offers=offers, bindings=passed_on)


def tree_of(code: bytes, language: str) -> Node | None:
    """The root of the syntax tree; None where parsing takes too long."""
    ends_s = time.thread_time() + PARSE_S
    tree = _parser(language).parse(code, lambda: time.thread_time() >= ends_s)
    return tree and tree.root_node


@cache
def _parser(language: str) -> InterruptibleParser:
    package, function = _GRAMMARS[language]
    capsule: object = getattr(import_module(package), function)()
    return InterruptibleParser(Language(capsule))


def _nodes(root: Node, *, deep: bool) -> Iterator[Node]:
    """Statements in order; `deep`: also those in functions and classes."""
    left = [root]
    while left:
        node = left.pop()
        yield node
        if node.type in _HOLDS or (deep and node.type in _INNER):
            left += reversed(node.named_children)


def _text(code: bytes, node: Node | None) -> str:
    """A node's text. `node.text` has none, since the tree was parsed from pieces."""
    return code[node.start_byte : node.end_byte].decode(errors="ignore") if node is not None else ""


def bindings_in(code: bytes, root: Node, *, deep: bool) -> Iterator[Binding]:
    """The imports in a syntax tree: at the top, and with `deep` in functions and classes too."""
    for node in _nodes(root, deep=deep):
        if node.type == "import_statement":
            yield from _of_script(code, node) if node.child_by_field_name("source") else _of_import(code, node)
        elif node.type == "import_from_statement":
            yield from _of_from(code, node)
        elif node.type == "export_statement" and (source := node.child_by_field_name("source")):
            yield from _of_export(code, node, _unquoted(code, source))
        elif node.type == "variable_declarator":
            yield from _of_require(code, node)


def _name_and_alias(code: bytes, node: Node) -> tuple[str, str]:
    """Of one name that is imported or exported, which may be a node of its own; no alias: an empty one."""
    return _text(code, node.child_by_field_name("name") or node), _text(code, node.child_by_field_name("alias"))


def _of_import(code: bytes, node: Node) -> Iterator[Binding]:
    for each in node.children_by_field_name("name"):
        module, alias = _name_and_alias(code, each)
        yield Binding(name=alias or module, module=module, member=ALL)


def _of_from(code: bytes, node: Node) -> Iterator[Binding]:
    module = _text(code, node.child_by_field_name("module_name"))
    if any(each.type == "wildcard_import" for each in node.named_children):
        yield Binding(name=ALL, module=module, member=ALL)
    for each in node.children_by_field_name("name"):
        member, alias = _name_and_alias(code, each)
        yield Binding(name=alias or member, module=module, member=member)


def _of_script(code: bytes, node: Node) -> Iterator[Binding]:
    module = _unquoted(code, node.child_by_field_name("source"))
    for each in _nodes(node, deep=True):
        if each.type == "import_specifier":
            member, alias = _name_and_alias(code, each)
            yield Binding(name=alias or member, module=module, member=member)
        elif each.type == "namespace_import":
            yield Binding(name=_text(code, each.named_children[0]), module=module, member=ALL)
        elif each.type == "identifier" and each.parent and each.parent.type == "import_clause":
            yield Binding(name=_text(code, each), module=module, member="default")


def _of_export(code: bytes, node: Node, module: str) -> Iterator[Binding]:
    named = [each for each in _nodes(node, deep=True) if each.type == "export_specifier"]
    for each in named:
        member, alias = _name_and_alias(code, each)
        yield Binding(name=alias or member, module=module, member=member)
    if not named:
        yield Binding(name=ALL, module=module, member=ALL)


def _of_require(code: bytes, node: Node) -> Iterator[Binding]:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    arguments = value.child_by_field_name("arguments") if value and value.type == "call_expression" else None
    if value is None or arguments is None or _text(code, value.child_by_field_name("function")) != "require":
        return
    module = _unquoted(code, arguments.named_children[0] if arguments.named_children else None)
    if name and name.type == "identifier":
        yield Binding(name=_text(code, name), module=module, member=ALL)
    elif name and name.type == "object_pattern":
        for each in name.named_children:
            key, as_ = each.child_by_field_name("key"), each.child_by_field_name("value")
            yield Binding(name=_text(code, as_ or each), module=module, member=_text(code, key or each))


def _unquoted(code: bytes, node: Node | None) -> str:
    return _text(code, node)[1:-1]


def _defined(code: bytes, root: Node) -> Iterator[tuple[str, Node]]:
    """Top-level definitions, by the names that others import."""
    for node in _nodes(root, deep=False):
        if node.type in ("function_definition", "class_definition"):
            outer = node.parent if node.parent and node.parent.type == "decorated_definition" else node
            yield _text(code, node.child_by_field_name("name")), outer
        elif node.type == "assignment" and (left := node.child_by_field_name("left")) and left.type == "identifier":
            yield _text(code, left), node
        elif node.type in (
            *("function_declaration", "generator_function_declaration", "class_declaration", "interface_declaration"),
            *("abstract_class_declaration", "type_alias_declaration", "enum_declaration", "variable_declarator"),
        ):
            exported = node.parent if node.parent and node.parent.type == "export_statement" else None
            default = exported is not None and any(each.type == "default" for each in exported.children)
            name = _text(code, node.child_by_field_name("name"))
            if name and name.isidentifier():
                yield name, node
            if default:
                yield "default", node


def _signature(code: bytes, node: Node) -> str:
    """The signature of a definition."""
    inner = node.child_by_field_name("definition") or node
    body = inner.child_by_field_name("body")
    if inner.type in ("class_definition", "class_declaration", "abstract_class_declaration") and body:
        members = [lines for each in body.named_children if (lines := _member(code, each))]
        return "\n".join([_until(code, node, body), *members[:MAX_MEMBERS]])
    if inner.type == "variable_declarator":
        value = inner.child_by_field_name("value")
        body = value.child_by_field_name("body") if value else None
        kind = _text(code, inner.parent.child(0)) if inner.parent else "const"
        return f"{kind} {_until(code, inner, body) if body else _first_line(code, inner)}"
    if inner.type in ("interface_declaration", "type_alias_declaration", "enum_declaration"):
        return _text(code, inner)
    return _until(code, node, body) if body else _first_line(code, node)


def _member(code: bytes, node: Node) -> str:
    """A member of a class; empty for private ones."""
    inner = node.child_by_field_name("definition") or node
    if inner.type == "expression_statement" and inner.named_children:
        field_ = inner.named_children[0]
        is_field = field_.type == "assignment" and field_.child_by_field_name("type") is not None
        name = _text(code, field_.child_by_field_name("left")) if is_field else "_"
        return "" if name.startswith("_") else f"    {_first_line(code, field_)}"
    name, body = _text(code, inner.child_by_field_name("name")), inner.child_by_field_name("body")
    if inner.type not in ("function_definition", "method_definition") or body is None:
        return ""
    return "" if name.startswith(("_", "#")) and name != "__init__" else f"    {_until(code, inner, body)}"


def _until(code: bytes, node: Node, body: Node) -> str:
    """The text up to a body, joined into one line except decorators."""
    inner = node.child_by_field_name("definition") or node
    before = code[node.start_byte : inner.start_byte].decode(errors="ignore")
    head = code[inner.start_byte : body.start_byte].decode(errors="ignore")
    mark = "#" if inner.type in ("function_definition", "class_definition") else "//"
    kept = (_without_comment(line, mark).strip() for line in head.split("\n"))
    joined = re.sub(r"(?<=[(\[{]) | ?,? (?=[)\]}])", "", " ".join(filter(None, kept)))
    return before + joined.removesuffix("=>").removesuffix("{").rstrip()


def _without_comment(line: str, mark: str) -> str:
    """The line without its comment. A mark with a quote after it may be in a string, and stays."""
    quoted = max(line.rfind('"'), line.rfind("'"))
    return line if (at := line.find(mark, quoted + 1)) < 0 else line[:at]


def _first_line(code: bytes, node: Node) -> str:
    return _text(code, node).partition("\n")[0]
