"""Missing imports of Python documents: names that are used and not bound. Other files of the workspace show where such
names are imported from.
"""

from __future__ import annotations

import builtins
import keyword
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from posixpath import commonpath, dirname
from typing import Literal

from tree_sitter import Node

from dg_lsp.workspace.cursor_line import CursorLine, indent_of
from dg_lsp.workspace.matches import Occurrence, likeliest
from dg_lsp.workspace.modules import ALL, bindings_in, tree_of

MOST_FILES = 200
"""Files that are searched for a name, the nearest first."""
ENOUGH = 5
"""The search for a name ends after so many imports of it."""
IMPORTED = 30.0
"""The score of the first suggestion, on the scale of workspace matches: right in 32 of 47 gaps (of 1,500 in development
packages)."""
MOST_MISSING = 8
"""With more missing names, much is still to be written, and nothing is suggested."""
_KNOWN = frozenset((*dir(builtins), *keyword.kwlist, "WindowsError", "reveal_type"))
_FIELDS = {
    **dict.fromkeys(("assignment", "augmented_assignment", "for_statement", "for_in_clause"), "left"),
    **dict.fromkeys(("function_definition", "class_definition", "named_expression"), "name"),
    **dict.fromkeys(("default_parameter", "typed_default_parameter", "keyword_argument"), "name"),
    "attribute": "attribute",
}
"""The child of each kind of node that is not a use of its name."""
_BINDS = frozenset(
    (
        *("parameters", "lambda_parameters", "typed_parameter", "list_splat_pattern", "dictionary_splat_pattern"),
        *("pattern_list", "tuple_pattern", "list_pattern", "as_pattern_target", "global_statement"),
        *("nonlocal_statement", "splat_pattern", "aliased_import", "type_parameter"),
    )
)
"""Kinds of nodes that bind an identifier directly inside."""
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<module>[\w.]+)[ \t]+import[ \t]+(?:\((?P<many>[^()]*+)\)|(?P<few>[^\n(#\\;]+))"
    r"|import[ \t]+(?P<modules>[^\n#\\;]+))",
    re.MULTILINE,
)
_BEGUN = re.compile(r"from[ \t]++(?P<module>[\w.]++)(?P<names>[ \t]++import(?:[ \t]++(?:[^\n(#,]*+,)++)?)?")
"""An import up to its missing names."""
_UNFINISHED = re.compile(
    r"^[ \t]*+(?:from\b(?![^\n]*\bimport[ \t]++[\w*(])[^\n]*+|from\b(?:[^\n(,]*+,)++[ \t]*+|import[ \t]*+)$",
    re.MULTILINE,
)
"""An unfinished import, which would be parsed as something else together with what follows."""
_OFFERED = re.compile(r"^__all__[^\n=]*=[ \t]*[\[(]([^\])]*)", re.MULTILINE)
_QUOTED = re.compile(r"[\"'](\w+)[\"']")
_LINE = re.compile(r"[ \t]*(?:from|import)\b")
_WORD = re.compile(r"\w+\Z")
_COMMENT = re.compile(r"#[^\n]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A missing name, and how other files import it."""

    name: str
    module: str | None
    """Empty: it is a module itself; None: unknown."""
    said: str
    """The text in the import: "name", "a as name"."""
    file: str
    """The file that imports it; empty for a module of the standard library."""
    number: int


def missing_names(text: str) -> list[str]:
    """Names that are used or listed in `__all__`, and not bound, in the order of first use; none with a wildcard
    import."""
    whole = _UNFINISHED.sub("", text)
    code = whole.encode()
    root = tree_of(code, "python")
    if root is None:
        return []
    bound = {each.name.partition(".")[0] for each in bindings_in(code, root, deep=True)}
    if ALL in bound:
        return []
    used = dict[str, None]()
    # `node.parent` would search the whole tree.
    left = [(root, root, "")]
    while left:
        node, parent, outer = left.pop()
        left += [(each, node, parent.type) for each in reversed(node.named_children)]
        if node.type == "identifier" and (role := _role(node, parent, outer)):
            name = code[node.start_byte : node.end_byte].decode(errors="ignore")
            if role == "use":
                used[name] = None
            else:
                bound.add(name)
    for offered in _OFFERED.finditer(text):
        used |= dict.fromkeys(_QUOTED.findall(offered[1]))
    return [name for name in used if name not in bound and name not in _KNOWN and not name.startswith("__")]


def _role(node: Node, parent: Node, outer: str) -> Literal["use", "bind", ""]:
    """The role of an identifier; empty for a mere name, as of an attribute. `outer`: the type of the parent's
    parent."""
    kind = parent.type
    if kind == "dotted_name":
        # In an import, which has bindings, or in a `case`.
        return "bind" if outer == "case_pattern" else "use" if outer == "class_pattern" else ""
    if kind in _BINDS:
        return "bind"
    if (field := _FIELDS.get(kind)) is None or parent.child_by_field_name(field) != node:
        return "use"
    return "" if kind in ("attribute", "keyword_argument") else "bind"


def found_imports(
    names: Sequence[str], file: str, others: Iterable[str], text: Callable[[str], str | None]
) -> tuple[Missing, ...]:
    """The names that `file` lacks, each with its most frequent import in nearby `others`."""
    if not 0 < len(names) <= MOST_MISSING:
        return ()
    wanted, found, folder = set(names), {name: list[Missing]() for name in names}, dirname(file)
    near = sorted((each for each in others if each != file), key=lambda each: -len(_common(folder, dirname(each))))
    for other in near[:MOST_FILES]:
        said = (text(other) or "") if wanted else ""
        if not any(name in said for name in wanted):
            continue
        for each in _imports(other, said):
            # A relative import means something else in another folder.
            if each.name in wanted and (dirname(other) == folder or not (each.module or "").startswith(".")):
                found[each.name].append(each)
        wanted -= {name for name in wanted if len(found[name]) >= ENOUGH}
    return tuple(_usual(name, ways) for name, ways in found.items())


def _usual(name: str, ways: Sequence[Missing]) -> Missing:
    counts = Counter((each.module, each.said) for each in ways)
    if ways:
        return max(ways, key=lambda each: counts[each.module, each.said])
    module = "" if name in sys.stdlib_module_names else None
    return Missing(name=name, module=module, said=name, file="", number=1)


def _common(one: str, other: str) -> str:
    try:
        return commonpath((one, other))
    except ValueError:
        return ""


def _imports(file: str, text: str) -> Iterator[Missing]:
    for statement in _IMPORT.finditer(text):
        number = text.count("\n", 0, statement.start()) + 1
        for each in _COMMENT.sub("", statement["many"] or statement["few"] or statement["modules"] or "").split(","):
            said = " ".join(each.split())
            if name := said.rpartition(" ")[2]:
                yield Missing(name=name, module=statement["module"] or "", said=said, file=file, number=number)


def import_texts(missing: Sequence[Missing], name: str, gap: CursorLine) -> list[Occurrence]:
    """Imports that may fill a gap in the document `name`, if it is among imports. `missing`: as of the last update."""
    module, typed = gap.importing if missing else "", gap.head.strip()
    beside = (typed,) if typed else (gap.above, gap.below)
    if not missing or not (module or any(_LINE.match(line) for line in beside)):
        return []
    # A name that is being typed is not missing.
    there = {each.name for each in _imports(name, gap.text)} | {*_WORD.findall(typed)}
    missing = [each for each in missing if each.name not in there]
    if module:
        indent = indent_of(gap.below if gap.above.rstrip().endswith("(") else gap.above)
        lines = [(f"{each.said},", [each]) for each in _from(module, missing)[:1]]
    else:
        # The import goes where the cursor is.
        indent, lines = "", [*_going_on(typed, missing), *_lines(missing)]
    found = ((gap.line(line, indent), names[0]) for line, names in lines)
    return likeliest(
        Occurrence(text=text, name=each.file or name, number=each.number, score=IMPORTED)
        for text, each in found
        if text
    )


def _from(module: str, missing: Sequence[Missing]) -> list[Missing]:
    """The names that other files import from a module, or else those of unknown origin."""
    return [each for each in missing if each.module == module] or [each for each in missing if each.module is None]


def _going_on(typed: str, missing: Sequence[Missing]) -> Iterator[tuple[str, list[Missing]]]:
    """A line that begins with `from`, completed with these names."""
    if (begun := _BEGUN.fullmatch(typed)) and (names := _from(begun["module"], missing)):
        yield f"{typed}{' ' if begun['names'] else ' import '}{_list(names)}", names


def _lines(missing: Sequence[Missing]) -> Iterator[tuple[str, list[Missing]]]:
    known = sorted((each for each in missing if each.module is not None), key=lambda each: each.module or "")
    for module, group in groupby(known, key=lambda each: each.module):
        names = list(group)
        if module:
            yield f"from {module} import {_list(names)}", names
        else:
            yield from ((f"import {each.said}", [each]) for each in names)


def _list(names: Sequence[Missing]) -> str:
    """Names sorted as in imports: constants, classes, others."""
    ordered = sorted(names, key=lambda each: (not each.name.isupper(), not each.name[0].isupper(), each.said))
    return ", ".join(each.said for each in ordered)
