"""Names that nothing uses yet, as a text for a gap: somebody who imports a name is about to write it, a list of names
mostly lacks it, and what a function takes is passed on line by line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import islice

from dg_lsp.workspace.cursor_line import CursorLine
from dg_lsp.workspace.matches import Occurrence
from dg_lsp.workspace.modules import ALL, Binding
from dg_lsp.workspace.text_index import KEYWORDS, OPENING

MOST_UNUSED = 8
"""Names; a document that uses none of more than that just passes them on."""
MOST_PARAMETERS = 32
"""That are looked for in a function."""
LISTED, LISTED_ONE_OF, ALONE, PASSED = 39.0, 20.0, 13.0, 39.0
"""How likely the text is, as the score of a precedent says it: an import in a list of names, by itself or as one of
several that are not used, or alone where a value is missing, and a parameter beside another that is passed on. Of 3,300
gaps in development packages they were the very text in 28 of 32, 1 of 1, 8 of 61, and 14 of 16."""
_BESIDE = re.compile(
    r"(?P<indent>[ \t]*)(?P<line>(?P<quote>[\"']?)(?P<listed>[^\W\d]\w*)(?P=quote),"
    r"|self\.(?P<set>[^\W\d]\w*) = (?P=set)|(?P<given>[^\W\d]\w*)=(?P=given),)[ \t]*"
)
"""A line of a list that holds one name, quoted or not; or one that passes a parameter on."""
_FUNCTION = re.compile(
    r"^(?P<indent>[ \t]*+)(?:async ++)?def \w++\((?P<takes>(?:[^()]|\([^()]*+\))*+)\)[^\n:]*+:[ \t\r]*+$", re.MULTILINE
)
_PARAMETER = re.compile(r"(?:^|,)\s*\*{0,2}([^\W\d]\w*)")
_INNER = re.compile(r"\[[^\[\]]*\]|\([^()]*\)|[\"'][^\"'\n]*[\"']|#[^\n]*")
_AROUND_CHARS = 4000
_BEGUN = re.compile(r"[^\W\d]\w*\Z")


def unused_of(imported: Iterable[Binding], used: Collection[str]) -> tuple[str, ...]:
    """Names that imports give, and `used` does not have."""
    names = dict.fromkeys(each.name for each in imported)
    return tuple(name for name in names if name != ALL and "." not in name and name not in used)


def name_texts(names: Sequence[str], name: str, gap: CursorLine) -> list[Occurrence]:
    """What a gap may be with one of `names`, imported by the document `name` and not used when it was last looked at,
    or with a parameter of the function around it."""
    beside = [found for line in (gap.above, gap.below) if (found := _BESIDE.fullmatch(line))]
    beside = [each for each in beside if _name(each) not in KEYWORDS]
    # Whether anything can come of it is soon seen, and what nothing uses not so soon.
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
    """What is missing of a line like one beside it; empty where the gap's line is another one."""
    return gap.line(re.sub(rf"\b{_name(beside)}\b", name, beside["line"]), beside["indent"])


def _parameters(text: str, cursor: int) -> dict[str, int]:
    """Those of the Python function around the gap that nothing in it uses, each with where it is."""
    first = max(cursor - _AROUND_CHARS, 0)
    function = next(reversed([*_FUNCTION.finditer(text, first, cursor)]), None)
    if function is None:
        return {}
    inside = re.compile(rf"\n(?!{function['indent']}[ \t]|[ \t\r]*\n)")
    line = max(text.rfind("\n", 0, cursor), function.end())
    if inside.search(text, function.end(), line):
        return {}
    end = inside.search(text, cursor)
    # What is typed on the gap's line is no use yet.
    body = text[function.end() : line] + text[cursor : end.start() if end else None]
    # As long as it was, so that places stay.
    takes = _INNER.sub(lambda each: " " * len(each[0]), function["takes"])
    taken = islice(_PARAMETER.finditer(takes), MOST_PARAMETERS)
    found = {each[1]: function.start("takes") + each.start(1) for each in taken}
    return {each: at for each, at in found.items() if each not in ("self", "cls") and not _places(each, body)}


def _sorted_in(names: Sequence[str], around: Sequence[str]) -> list[str]:
    """Those between the names around first, as most lists are sorted."""
    low, high = (around[0], around[-1]) if len(around) > 1 else ("", "")
    return sorted(names, key=lambda name: not low.casefold() <= name.casefold() <= high.casefold())


def _alone(name: str, head: str) -> str:
    """The name where a value is missing behind `head`, or the rest of it where it is begun; else nothing."""
    if not head.strip():
        return ""
    begun, last = _BEGUN.search(head), head.rstrip()[-1:]
    if begun and begun[0] not in KEYWORDS:
        return name[len(begun[0]) :] if name.startswith(begun[0]) else ""
    if not begun and last != "@" and last not in OPENING:
        return ""
    return name if head[-1:].isspace() or last in "([{@" else f" {name}"


def _unused(names: Sequence[str], text: str) -> dict[str, int]:
    """Those of `names` that stand in a text once alone, each with where; none of many."""
    places = {each: _places(each, text) for each in (names if len(names) <= MOST_UNUSED else ())}
    return {each: found[0] for each, found in places.items() if len(found) == 1}


def _places(name: str, text: str) -> list[int]:
    """The first two of those in a text where a name stands."""
    found, at = list[int](), -1
    while len(found) < 2 and (at := text.find(name, at + 1)) >= 0:
        around = text[max(at - 1, 0) : at] + text[at + len(name) : at + len(name) + 1]
        if not any(each.isalnum() or each == "_" for each in around):
            found.append(at)
    return found
