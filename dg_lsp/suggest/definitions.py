"""What a document imports from other files of its workspace, as the lines that say how it is used: how a function is
called, what a class offers, what a constant is.

Imports are resolved by where files lie, without running or installing anything; one that leads out of the workspace is
left alone. A name that a package only passes on is followed one file further.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from itertools import groupby, islice
from pathlib import PurePosixPath
from posixpath import dirname, join, normpath

from tree_sitter import Language, Node, Parser

from dg_lsp.config.exclusion import name_of
from engine.core.request import Snippet

MAX_CHARS = 400
"""Of one definition."""
MAX_MEMBERS = 8
"""Of a class."""
MAX_DEFINITIONS = 400
"""Of one document's imports."""
MAX_LOOKS = 100_000
"""For them, at files that there may be and at what files pass on: one or two tenths of a second."""
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
_SCRIPT_ENDINGS = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs")
_HOLDS = frozenset(
    (
        *("ERROR", "module", "program", "block", "statement_block", "if_statement", "elif_clause", "else_clause"),
        *("try_statement", "except_clause", "finally_clause", "catch_clause", "with_statement"),
        *("export_statement", "lexical_declaration", "variable_declaration", "expression_statement"),
        *("decorated_definition", "import_statement", "import_clause", "named_imports", "export_clause"),
    )
)
"""What may hold imports and definitions at the top of a file."""
_INNER = frozenset(
    ("function_definition", "class_definition", "function_declaration", "class_declaration", "class_body")
)
"""What may hold imports besides."""
_CHAIN = re.compile(r"[^\W\d]\w*+(?:\.[^\W\d]\w*+)*+")
_CHAIN_BEFORE = re.compile(r"[^\W\d]\w*+(?:\.\w*+)*+\Z")
_CHAIN_CHARS = 200
"""Of names with dots between."""
_NEAR_CHARS = 4000
"""Around the cursor, that are looked at."""
_FAR = 1_000_000
"""Lines, of what is not used there."""
ALL = "*"
"""In the place of a name: the module itself, or all that it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A name that an import gives to something."""

    name: str
    """As it is used; ALL for each name of a module under its own."""
    module: str
    """As it is written: "a.b", "..b", "./b"."""
    member: str
    """What of the module; ALL for the module itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    uses: str
    """How it is named where it is used: "area", "shapes.area"."""
    file: str
    start: int
    """Where it is in its file, in bytes."""
    text: str
    """Its signature, in whole lines without the last line break."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Module:
    """What one file offers."""

    offers: Mapping[str, tuple[int, str]]
    bindings: Mapping[str, Sequence[Binding]]
    """By their names."""


class Definitions:
    """Of the imports in documents. `text` gives that of a file, or None where there is none that may be read; names of
    files are paths or URIs, with slashes."""

    def __init__(self, text: Callable[[str], str | None], exists: Callable[[str], bool]) -> None:
        self._text, self._exists = text, exists
        self._modules: dict[str, tuple[int, _Module]] = {}
        self._fresh = set[str]()
        """Of these, what is as their files are now."""
        self._looks_left = 0

    def of(self, file: str, text: str, language: str, roots: Sequence[str]) -> tuple[Definition, ...]:
        """Of all that a document `file` imports; `roots`: folders that absolute imports begin in, nearest first."""
        self._fresh.clear()
        self._looks_left = MAX_LOOKS
        imported = dict.fromkeys(bindings(text, language))
        found = (each for binding in imported for each in self._bound(file, binding, language, roots))
        return tuple(islice((each for each in found if each.file != file), MAX_DEFINITIONS))

    def _bound(self, file: str, binding: Binding, language: str, roots: Sequence[str]) -> Iterator[Definition]:
        for at, member in self._places(file, binding, language, roots):
            offers = self._module(at, language).offers
            if member == ALL:
                prefix = "" if binding.name == ALL else f"{binding.name}."
                for name, (start, text) in offers.items():
                    if not self._may_look():
                        return
                    if not name.startswith("_"):
                        yield Definition(uses=prefix + name, file=at, start=start, text=text)
            elif (known := self._offered(at, member, language, roots)) is not None:
                yield replace(known, uses=binding.name)
            else:
                continue
            return

    def _places(self, file: str, binding: Binding, language: str, roots: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Files that a binding may mean, and what of them."""
        if language not in ("python", "ipython"):
            yield from ((each, binding.member) for each in self._scripts(file, binding.module))
            return
        if binding.member != ALL:
            # A module of a package goes before what the package itself calls so.
            inner = f"{binding.module}{'' if binding.module.endswith('.') else '.'}{binding.member}"
            yield from ((each, ALL) for each in self._python(file, inner, roots))
        yield from ((each, binding.member) for each in self._python(file, binding.module, roots))

    def _offered(self, file: str, name: str, language: str, roots: Sequence[str]) -> Definition | None:
        """What a file calls so, or passes on under that name."""
        module = self._module(file, language)
        if name in module.offers:
            start, text = module.offers[name]
            return Definition(uses=name, file=file, start=start, text=text)
        for binding in (*module.bindings.get(name, ()), *module.bindings.get(ALL, ())):
            if not self._may_look():
                return None
            wanted = name if binding.name == ALL else binding.member
            for at, member in self._places(file, replace(binding, member=wanted), language, roots):
                offers = self._module(at, language).offers
                if member in offers:
                    start, text = offers[member]
                    return Definition(uses=name, file=at, start=start, text=text)
        return None

    def _may_look(self) -> bool:
        self._looks_left -= 1
        return self._looks_left >= 0

    def _module(self, file: str, language: str) -> _Module:
        held = self._modules.get(file)
        if held is not None and file in self._fresh:
            return held[1]
        text = self._text(file)
        if text is None:
            return _Module(offers={}, bindings={})
        self._fresh.add(file)
        if held is None or held[0] != hash(text):
            if len(self._modules) >= MAX_DEFINITIONS:
                self._modules.clear()
            held = self._modules[file] = hash(text), _read(text, _language_of(file, language))
        return held[1]

    def _python(self, file: str, module: str, roots: Sequence[str]) -> Iterator[str]:
        names = module.lstrip(".")
        above = len(module) - len(names)
        bases = [_above(file, above)] if above else [dirname(file), *roots]
        path = names.replace(".", "/")
        for base in bases:
            for end in (".py", "/__init__.py", ".pyi") if path else ("/__init__.py",):
                if not self._may_look():
                    return
                if self._exists(candidate := (f"{base}/{path}{end}" if path else f"{base}{end}")):
                    yield candidate

    def _scripts(self, file: str, module: str) -> Iterator[str]:
        if not module.startswith("."):
            return
        scheme, slashes, folder = dirname(file).rpartition("//")
        path = scheme + slashes + normpath(join(folder, module))
        stem = re.sub(r"\.[cm]?jsx?$", "", path)
        for candidate in (
            path,
            *(stem + end for end in _SCRIPT_ENDINGS),
            *(f"{path}/index{end}" for end in _SCRIPT_ENDINGS),
        ):
            if not self._may_look():
                return
            if self._exists(candidate):
                yield candidate
                return


def bindings(text: str, language: str) -> Iterator[Binding]:
    """What a text imports, anywhere in it."""
    if language in _GRAMMARS:
        code = text.encode()
        yield from _bindings(_parser(language).parse(code).root_node, deep=True)


def _read(text: str, language: str) -> _Module:
    code = text.encode()
    root = _parser(language).parse(code).root_node
    offers = dict[str, tuple[int, str]]()
    for name, node in _defined(root):
        if name not in offers:
            lines = _signature(node, code)
            if len(lines) > MAX_CHARS:
                lines = lines[: max(lines.rfind("\n", 0, MAX_CHARS), 0)]
            if lines:
                offers[name] = node.start_byte, lines
    passed_on = dict[str, list[Binding]]()
    for binding in _bindings(root, deep=False):
        passed_on.setdefault(binding.name, []).append(binding)
    return _Module(offers=offers, bindings=passed_on)


def near(definitions: Sequence[Definition], used: Collection[str], text: str, cursor: int) -> list[Definition]:
    """Those that `cursor` stands in the name of first, then those used nearest to it, then those that nothing in the
    document uses yet, then the rest. `used`: by the document."""
    start = max(cursor - _NEAR_CHARS, 0)
    here, lines = text.count("\n", start, cursor), dict[str, int]()
    for number, line in enumerate(text[start : cursor + _NEAR_CHARS].split("\n")):
        for name in chains(line):
            lines[name] = min(lines.get(name, _FAR), abs(number - here))
    begun = _CHAIN_BEFORE.search(text, max(cursor - _CHAIN_CHARS, 0), cursor)

    def distance(each: Definition) -> int:
        if begun and each.uses.startswith(begun[0]) and each.uses != begun[0]:
            return -1
        return _FAR if each.uses not in used else lines.get(each.uses, 2 * _FAR)

    return sorted(definitions, key=distance)


def names_used(text: str) -> frozenset[str]:
    """Names in a text; one that stands there once alone is where it is imported."""
    counts = Counter(head for chain in _CHAIN.findall(text) for head in _heads(chain))
    return frozenset(name for name, count in counts.items() if count > 1 or "." in name)


def chains(text: str) -> set[str]:
    """All names in a text, with what they are asked for: of "a.b" also "a"."""
    return {head for chain in _CHAIN.findall(text) for head in _heads(chain)}


def within(definitions: Iterable[Definition], max_chars: int) -> Iterator[Definition]:
    """The first of them that have so many characters together, none twice."""
    taken = set[tuple[str, int]]()
    for each in definitions:
        if (each.file, each.start) not in taken and len(each.text) <= max_chars:
            max_chars -= len(each.text)
            taken.add((each.file, each.start))
            yield each


def as_snippets(definitions: Iterable[Definition]) -> Iterator[Snippet]:
    """One a file, each file's in its own order."""
    ordered = sorted(definitions, key=lambda each: (each.file, each.start))
    for file, group in groupby(ordered, key=lambda each: each.file):
        yield Snippet(path=PurePosixPath(name_of(file)).name, text="".join(f"{each.text}\n" for each in group))


def _heads(chain: str) -> Iterator[str]:
    """`a`, `a.b` and `a.b.c` of the last one; not those longer than what is looked up."""
    at = -1
    while 0 <= (at := chain.find(".", at + 1)) <= _CHAIN_CHARS:
        yield chain[:at]
    if at < 0:
        yield chain


@cache
def _parser(language: str) -> Parser:
    package, function = _GRAMMARS[language]
    capsule: object = getattr(import_module(package), function)()
    return Parser(Language(capsule))


def _language_of(file: str, language: str) -> str:
    """A file's own: TypeScript imports JavaScript, and the other way round."""
    if language in ("python", "ipython"):
        return "python"
    return {"ts": "typescript", "tsx": "typescriptreact"}.get(file.rpartition(".")[2], "javascript")


def _above(file: str, dots: int) -> str:
    folder = dirname(file)
    for _ in range(dots - 1):
        folder = dirname(folder)
    return folder


def _nodes(root: Node, *, deep: bool) -> Iterator[Node]:
    """Statements in order, those in functions and classes too if `deep`."""
    left = [root]
    while left:
        node = left.pop()
        yield node
        if node.type in _HOLDS or (deep and node.type in _INNER):
            left += reversed(node.named_children)


def _text(node: Node | None) -> str:
    return node.text.decode(errors="ignore") if node is not None and node.text is not None else ""


def _bindings(root: Node, *, deep: bool) -> Iterator[Binding]:
    for node in _nodes(root, deep=deep):
        if node.type == "import_statement":
            yield from _of_script(node) if node.child_by_field_name("source") else _of_import(node)
        elif node.type == "import_from_statement":
            yield from _of_from(node)
        elif node.type == "export_statement" and (source := node.child_by_field_name("source")):
            yield from _of_export(node, _unquoted(source))
        elif node.type == "variable_declarator":
            yield from _of_require(node)


def _of_import(node: Node) -> Iterator[Binding]:
    for each in node.children_by_field_name("name"):
        module, alias = _text(each.child_by_field_name("name") or each), _text(each.child_by_field_name("alias"))
        yield Binding(name=alias or module, module=module, member=ALL)


def _of_from(node: Node) -> Iterator[Binding]:
    module = _text(node.child_by_field_name("module_name"))
    if any(each.type == "wildcard_import" for each in node.named_children):
        yield Binding(name=ALL, module=module, member=ALL)
    for each in node.children_by_field_name("name"):
        member, alias = _text(each.child_by_field_name("name") or each), _text(each.child_by_field_name("alias"))
        yield Binding(name=alias or member, module=module, member=member)


def _of_script(node: Node) -> Iterator[Binding]:
    module = _unquoted(node.child_by_field_name("source"))
    for each in _nodes(node, deep=True):
        if each.type == "import_specifier":
            member, alias = _text(each.child_by_field_name("name")), _text(each.child_by_field_name("alias"))
            yield Binding(name=alias or member, module=module, member=member)
        elif each.type == "namespace_import":
            yield Binding(name=_text(each.named_children[0]), module=module, member=ALL)
        elif each.type == "identifier" and each.parent and each.parent.type == "import_clause":
            yield Binding(name=_text(each), module=module, member="default")


def _of_export(node: Node, module: str) -> Iterator[Binding]:
    named = [each for each in _nodes(node, deep=True) if each.type == "export_specifier"]
    for each in named:
        member, alias = _text(each.child_by_field_name("name")), _text(each.child_by_field_name("alias"))
        yield Binding(name=alias or member, module=module, member=member)
    if not named:
        yield Binding(name=ALL, module=module, member=ALL)


def _of_require(node: Node) -> Iterator[Binding]:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    arguments = value.child_by_field_name("arguments") if value and value.type == "call_expression" else None
    if value is None or arguments is None or _text(value.child_by_field_name("function")) != "require":
        return
    module = _unquoted(arguments.named_children[0] if arguments.named_children else None)
    if name and name.type == "identifier":
        yield Binding(name=_text(name), module=module, member=ALL)
    elif name and name.type == "object_pattern":
        for each in name.named_children:
            key, as_ = each.child_by_field_name("key"), each.child_by_field_name("value")
            yield Binding(name=_text(as_ or each), module=module, member=_text(key or each))


def _unquoted(node: Node | None) -> str:
    return _text(node)[1:-1]


def _defined(root: Node) -> Iterator[tuple[str, Node]]:
    """What stands at the top of a file, under the names that others import it by."""
    for node in _nodes(root, deep=False):
        if node.type in ("function_definition", "class_definition"):
            outer = node.parent if node.parent and node.parent.type == "decorated_definition" else node
            yield _text(node.child_by_field_name("name")), outer
        elif node.type == "assignment" and (left := node.child_by_field_name("left")) and left.type == "identifier":
            yield _text(left), node
        elif node.type in (
            *("function_declaration", "generator_function_declaration", "class_declaration", "interface_declaration"),
            *("abstract_class_declaration", "type_alias_declaration", "enum_declaration", "variable_declarator"),
        ):
            exported = node.parent if node.parent and node.parent.type == "export_statement" else None
            default = exported is not None and any(each.type == "default" for each in exported.children)
            name = _text(node.child_by_field_name("name"))
            if name and name.isidentifier():
                yield name, node
            if default:
                yield "default", node


def _signature(node: Node, code: bytes) -> str:
    """The lines that say how something is used."""
    inner = node.child_by_field_name("definition") or node
    body = inner.child_by_field_name("body")
    if inner.type in ("class_definition", "class_declaration", "abstract_class_declaration") and body:
        members = [lines for each in body.named_children if (lines := _member(each, code))]
        return "\n".join([_until(node, body, code), *members[:MAX_MEMBERS]])
    if inner.type == "variable_declarator":
        value = inner.child_by_field_name("value")
        body = value.child_by_field_name("body") if value else None
        kind = _text(inner.parent.child(0)) if inner.parent else "const"
        return f"{kind} {_until(inner, body, code) if body else _first_line(inner, code)}"
    if inner.type in ("interface_declaration", "type_alias_declaration", "enum_declaration"):
        return _text(inner)
    return _until(node, body, code) if body else _first_line(node, code)


def _member(node: Node, code: bytes) -> str:
    """Of a class; empty for what is nobody's business."""
    inner = node.child_by_field_name("definition") or node
    if inner.type == "expression_statement" and inner.named_children:
        field_ = inner.named_children[0]
        is_field = field_.type == "assignment" and field_.child_by_field_name("type") is not None
        name = _text(field_.child_by_field_name("left")) if is_field else "_"
        return "" if name.startswith("_") else f"    {_first_line(field_, code)}"
    name, body = _text(inner.child_by_field_name("name")), inner.child_by_field_name("body")
    if inner.type not in ("function_definition", "method_definition") or body is None:
        return ""
    return "" if name.startswith(("_", "#")) and name != "__init__" else f"    {_until(inner, body, code)}"


def _until(node: Node, body: Node, code: bytes) -> str:
    """Up to a body, in one line but for decorators."""
    inner = node.child_by_field_name("definition") or node
    before = code[node.start_byte : inner.start_byte].decode(errors="ignore")
    head = code[inner.start_byte : body.start_byte].decode(errors="ignore")
    mark = "#" if inner.type in ("function_definition", "class_definition") else "//"
    kept = (_without_comment(line, mark).strip() for line in head.split("\n"))
    joined = re.sub(r"(?<=[(\[{]) | ?,? (?=[)\]}])", "", " ".join(filter(None, kept)))
    return before + joined.removesuffix("=>").removesuffix("{").rstrip()


def _without_comment(line: str, mark: str) -> str:
    """A mark with a quote behind it may be in a string."""
    quoted = max(line.rfind('"'), line.rfind("'"))
    return line if (at := line.find(mark, quoted + 1)) < 0 else line[:at]


def _first_line(node: Node, code: bytes) -> str:
    return code[node.start_byte : node.end_byte].decode(errors="ignore").partition("\n")[0]
