"""Calls to change after a parameter was added to their function or removed from it, if that needs no guess.

A name that is unknown at a call is not used there. A call stays as it is if an argument might belong to another
parameter (unpacked, left to a default, a second function of that name).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from tree_sitter import Node

from engine.common.sequences import common_head
from engine.common.wire import Wire
from engine.syntax.languages import ARGUMENTS
from engine.syntax.roles import function_name, role_of
from engine.syntax.tree import SyntaxTree

_PLACES = 60
"""Most places of a name that are searched."""
_UNPACKED = re.compile(r"splat|spread|rest_pattern|variadic")
_OPTIONAL = re.compile(r"default|optional")
_RECEIVERS = frozenset({"self", "cls"})
_NAME = re.compile(r"\w+")
_MEMBERS_OF = re.compile(r"class|impl|trait|interface|struct|enum|record|module")
_OWN = frozenset({"self", "cls", "this", "Self", "super"})
"""Objects whose methods are of the class around the call."""
_LONGEST_OBJECT = 40
_OBJECT = re.compile(rf"(\w{{0,{_LONGEST_OBJECT}}})\W{{0,3}}(?:\.|->|::)\Z")
"""The object before the name of a method."""
_OBJECT_REACH = _LONGEST_OBJECT + 5
_ONLY_BY_OBJECT = frozenset({"python", "javascript", "typescript", "tsx", "php", "rust", "go"})
"""Languages in which a bare name is never a method."""


class SpanEdit(Wire, frozen=True, kw_only=True):
    """`text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Signature:
    name: str
    """The name in calls: for a constructor the class."""
    is_method: bool
    constructs: bool
    receiver: frozenset[str]
    """Names of the function's object inside it, where the language has no word for it."""
    parameters: Sequence[str]
    """Parameters without the receiver, up to the first one that takes several arguments or can only be given by
    keyword."""
    optional: frozenset[str]


def calls_to_change(before: SyntaxTree, after: SyntaxTree, start: int) -> list[SpanEdit]:
    """Edits of calls after a change of signature. `start`: where the changed lines begin in both texts. The nearest
    come first; none overlap."""
    at = start + common_head(before.text[start:], after.text[start:])
    was, now = _signature(before, at), _signature(after, at)
    if was is None or now is None or (was.name, was.is_method) != (now.name, now.is_method):
        return []
    came = [each for each in now.parameters if each not in was.parameters]
    went = [each for each in was.parameters if each not in now.parameters]
    stayed, stay = ([each for each in of.parameters if each not in (*came, *went)] for of in (was, now))
    if len(came) + len(went) != 1 or stayed != stay or now.optional.intersection(came):
        return []
    if _definitions(after, now.name) != 1:
        return []
    calls = sorted(_calls(after, now), key=lambda call: abs(after.offset(call.start_byte) - at))
    changed = (
        _added(after, call, was, now, came[0]) if came else _removed(after, call, was, went[0]) for call in calls
    )
    found: list[SpanEdit] = []
    for each in changed:
        # What lies in an argument that goes, goes with it.
        if each and not any(each.start < other.end and other.start < each.end for other in found):
            found.append(each)
    return found


def _signature(tree: SyntaxTree, at: int) -> _Signature | None:
    """The signature of the function in whose parameters a place lies."""
    byte = tree.byte(at)
    node = tree.root.descendant_for_byte_range(byte, byte)
    while node is not None:
        listed = node.child_by_field_name("parameters")
        if listed and listed.start_byte < byte < listed.end_byte:
            break
        node = node.parent
    else:
        return None
    around = node.parent
    while around is not None and not (_MEMBERS_OF.match(around.type) and _named(around)):
        # A function in a function is none of a class.
        around = None if around.child_by_field_name("parameters") else around.parent
    names, optional = list[str](), set[str]()
    for each in listed.named_children:
        if each.type == "positional_separator":
            continue
        name = _parameter(tree, each)
        if not name or _UNPACKED.search(each.type) or each.type == "keyword_separator":
            break
        names.append(name)
        if _OPTIONAL.search(each.type) or any(map(each.child_by_field_name, ("value", "default_value"))):
            optional.add(name)
    is_method = around is not None or node.type == "method_declaration"
    if is_method and names[:1] and names[0] in _RECEIVERS:
        del names[0]
    # What has no name is given one.
    named = node if _named(node) else node.parent
    own, name = (function_name(tree, nodes) for nodes in ([named], [named, around]))
    # Operators have names as well, and what is in brackets.
    if not _NAME.fullmatch(name):
        return None
    constructs = own != name or "constructor" in node.type
    receiver = node.child_by_field_name("receiver")
    return _Signature(
        name=name,
        is_method=is_method,
        constructs=constructs,
        receiver=frozenset(_NAME.findall(tree.said(receiver))[:1] if receiver else ()),
        parameters=names,
        optional=frozenset(optional),
    )


def _named(node: Node) -> bool:
    return any(map(node.child_by_field_name, ("name", "type")))


def _parameter(tree: SyntaxTree, node: Node) -> str:
    named = node.child_by_field_name("name") or node.child_by_field_name("pattern") or node
    found = _NAME.search(tree.said(named))
    return found[0] if found and not _UNPACKED.search(named.type) else ""


def _definitions(tree: SyntaxTree, name: str) -> int:
    places = islice(re.finditer(rf"\b{name}\b", tree.text), _PLACES)
    roles = (role_of(tree, *place.span()).role for place in places)
    return sum(role in ("definition", "assigned", "import", "parameter") for role in roles)


def _calls(tree: SyntaxTree, function: _Signature) -> Iterator[Node]:
    """The bracketed arguments of each call."""
    for found in islice(re.finditer(rf"\b{function.name}[^\S\n]*\(", tree.text), _PLACES):
        byte = tree.byte(found.end() - 1)
        node = tree.root.descendant_for_byte_range(byte, byte + 1)
        arguments = node if node is None or node.type in ARGUMENTS else node.parent
        if arguments is None or arguments.type not in ARGUMENTS or arguments.start_byte != byte:
            continue
        owner = _OBJECT.search(tree.text, max(0, found.start() - _OBJECT_REACH), found.start())
        of = owner and owner[1]
        may_be_bare = not function.is_method or tree.language not in _ONLY_BY_OBJECT
        if function.constructs or (
            may_be_bare if of is None else function.is_method and of in _OWN | function.receiver
        ):
            yield arguments


def _added(tree: SyntaxTree, call: Node, was: _Signature, now: _Signature, name: str) -> SpanEdit | None:
    given, positional = _given(call)
    place = now.parameters.index(name)
    start, end = tree.offset(call.start_byte), tree.offset(call.end_byte)
    if positional is None or not place <= positional <= len(was.parameters):
        return None
    if any(name in _NAME.findall(tree.said(each)) for each in given) or not _is_known(tree, start, name):
        return None
    if place < len(given):
        at = tree.offset(given[place].start_byte)
        return SpanEdit(start=at, end=at, new=f"{name}, ")
    at = tree.offset(given[-1].end_byte) if given else end - 1
    return SpanEdit(start=at, end=at, new=f", {name}" if given else name)


def _removed(tree: SyntaxTree, call: Node, was: _Signature, name: str) -> SpanEdit | None:
    given, positional = _given(call)
    if positional is None:
        return None
    by_name = [at for at, each in enumerate(given) if at >= positional and _parameter(tree, each) == name]
    if not by_name and positional != len(was.parameters):
        return None
    at = by_name[0] if by_name else was.parameters.index(name)
    first, last = given[at].start_byte, given[at].end_byte
    if at + 1 < len(given):
        last = given[at + 1].start_byte
    elif at:
        first = given[at - 1].end_byte
    return SpanEdit(start=tree.offset(first), end=tree.offset(last), new="")


def _given(call: Node) -> tuple[list[Node], int | None]:
    """The arguments of a call, and how many precede those with names; None where some are unpacked."""
    given = [each for each in call.named_children if "comment" not in each.type]
    unpacked = any(_UNPACKED.search(each.type) for each in given)
    named = [
        each.type in ("keyword_argument", "pair") or each.child_by_field_name("name") is not None for each in given
    ]
    is_in_order = named == sorted(named)
    return given, None if unpacked or not is_in_order else named.count(False)


def _is_known(tree: SyntaxTree, at: int, name: str) -> bool:
    """Whether the function around a place, or the file at its top level, has the name before it."""
    scopes = role_of(tree, at, at + 1).scopes
    before = tree.text[scopes[0] : at] if scopes else tree.text[:at]
    known = rf"\b{name}\b" if scopes else rf"(?m)^(?:(?:const|let|var)\s+)?{name}\b[^\n=(]*=(?!=)"
    return re.search(known, before) is not None
