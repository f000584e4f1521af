"""Suggests names that nothing uses yet: an imported name will be written soon, often in a list of names, and parameters
of a function are passed on line by line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import islice

from dg_lsp.workspace.cursor_line import CursorLine
from dg_lsp.workspace.matches import Occurrence
from dg_lsp.workspace.modules import ALL, Binding
from dg_lsp.workspace.text_index import KEYWORDS, OPENING
from engine.common.names import is_name_character

MOST_UNUSED = 8
"""A document with more unused imports just re-exports them, and nothing is suggested."""
MOST_PARAMETERS = 32
"""Parameters of a function that are considered."""
LISTED, LISTED_ONE_OF, ALONE, PASSED = 39.0, 20.0, 13.0, 39.0
"""Scores, on the scale of workspace matches: an import in a list of names, as the only or one of several unused
imports; an import where a value is missing; a parameter after another that is passed on. Of 3,300 gaps in development
packages they were exact in 28 of 32, 1 of 1, 8 of 61, and 14 of 16."""
_BESIDE = re.compile(
    r"(?P<indent>[ \t]*)(?P<line>(?P<quote>[\"']?)(?P<listed>[^\W\d]\w*)(?P=quote),"
    r"|self\.(?P<set>[^\W\d]\w*) = (?P=set)|(?P<given>[^\W\d]\w*)=(?P=given),)[ \t]*"
)
"""A line with one item of a list of names, quoted or not, or a line that passes a parameter on."""
_FUNCTION = re.compile(
    r"^(?P<indent>[ \t]*+)(?:async ++)?def \w++\((?P<takes>(?:[^()]|\([^()]*+\))*+)\)[^\n:]*+:[ \t]*+$", re.MULTILINE
)
_PARAMETER = re.compile(r"(?:^|,)\s*\*{0,2}([^\W\d]\w*)")
_INNER = re.compile(r"\[[^\[\]]*\]|\([^()]*\)|[\"'][^\"'\n]*[\"']|#[^\n]*")
_AROUND_CHARS = 4000
_BEGUN = re.compile(r"[^\W\d]\w*\Z")


def unused_of(imported: Iterable[Binding], used: Collection[str]) -> tuple[str, ...]:
    """Imported names that are not in `used`."""
    names = dict.fromkeys(each.name for each in imported)
    return tuple(name for name in names if name != ALL and "." not in name and name not in used)


def name_texts(names: Sequence[str], name: str, gap: CursorLine) -> list[Occurrence]:
    """Texts for a gap with an unused import (`names`) of the document `name`, or with a parameter of the function
    around the gap."""
    beside = [found for line in (gap.above, gap.below) if (found := _BESIDE.fullmatch(line))]
    beside = [each for each in beside if _name(each) not in KEYWORDS]
    # This is quick to check; which names are unused is not.
    if not beside and not any(_alone(each, gap.head) for each in names):
        return []
    if beside and gap.importing:
        return []
    passed = bool(beside) and not beside[0]["listed"]
    places = _parameters(gap.text, gap.cursor) if passed else _unused(names, gap.text)
    one = len(places) == 1
    if beside:
        score = PASSED if passed else LISTED if one else LISTED_ONE_OF
        said = [(each, _like(each, beside[0], gap)) for each in _sorted_in([*places], [*map(_name, beside)])]
    else:
        score, said = ALONE, [(each, _alone(each, gap.head)) for each in places if one]
    for each, text in said:
        if text:
            number = gap.text.count("\n", 0, places[each]) + 1
            return [Occurrence(text=text, name=name, number=number, score=score)]
    return []


def _name(beside: re.Match[str]) -> str:
    return beside["listed"] or beside["set"] or beside["given"]


def _like(name: str, beside: re.Match[str], gap: CursorLine) -> str:
    """The rest of a line like the one beside it; empty where the gap's line does not fit."""
    return gap.line(re.sub(rf"\b{_name(beside)}\b", name, beside["line"]), beside["indent"])


def _parameters(text: str, cursor: int) -> dict[str, int]:
    """Unused parameters of the Python function around the gap, each with its offset."""
    first = max(cursor - _AROUND_CHARS, 0)
    function = next(reversed([*_FUNCTION.finditer(text, first, cursor)]), None)
    if function is None:
        return {}
    inside = re.compile(rf"\n(?!{function['indent']}[ \t]|[ \t]*\n)")
    line = max(text.rfind("\n", 0, cursor), function.end())
    if inside.search(text, function.end(), line):
        return {}
    end = inside.search(text, cursor)
    # What is typed on the gap's line does not count as a use.
    body = text[function.end() : line] + text[cursor : end.start() if end else None]
    # Of the same length, so that offsets stay.
    takes = _INNER.sub(lambda each: " " * len(each[0]), function["takes"])
    parameters = islice(_PARAMETER.finditer(takes), MOST_PARAMETERS)
    found = {each[1]: function.start("takes") + each.start(1) for each in parameters}
    return {each: at for each, at in found.items() if each not in ("self", "cls") and not _places(each, body)}


def _sorted_in(names: Sequence[str], around: Sequence[str]) -> list[str]:
    """Names that sort between the names around come first, as most lists are sorted."""
    low, high = (around[0], around[-1]) if len(around) > 1 else ("", "")
    return sorted(names, key=lambda name: not low.casefold() <= name.casefold() <= high.casefold())


def _alone(name: str, head: str) -> str:
    """The name, or the rest of it if it is begun, where a value is missing after `head`; else empty."""
    if not head.strip():
        return ""
    begun, last = _BEGUN.search(head), head.rstrip()[-1:]
    if begun and begun[0] not in KEYWORDS:
        return name[len(begun[0]) :] if name.startswith(begun[0]) else ""
    if not begun and last != "@" and last not in OPENING:
        return ""
    return name if head[-1:].isspace() or last in "([{@" else f" {name}"


def _unused(names: Sequence[str], text: str) -> dict[str, int]:
    """The names that occur just once in a text, each with its offset; none if `names` are too many."""
    places = {each: _places(each, text) for each in (names if len(names) <= MOST_UNUSED else ())}
    return {each: found[0] for each, found in places.items() if len(found) == 1}


def _places(name: str, text: str) -> list[int]:
    """The first two offsets of a name in a text."""
    found, at = list[int](), -1
    while len(found) < 2 and (at := text.find(name, at + 1)) >= 0:
        around = text[max(at - 1, 0) : at] + text[at + len(name) : at + len(name) + 1]
        if not any(map(is_name_character, around)):
            found.append(at)
    return found
