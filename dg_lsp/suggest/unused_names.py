"""What a document imports and uses nowhere yet, as a text for a gap: somebody who imports a name is about to write it,
and a list of names mostly lacks it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from dg_lsp.suggest.line_gap import LineGap
from dg_lsp.suggest.modules import ALL, Binding
from dg_lsp.suggest.precedents import Occurrence
from dg_lsp.suggest.text_index import KEYWORDS, OPENING

MOST_UNUSED = 8
"""Names; a document that uses none of more than that just passes them on."""
LISTED, LISTED_ONE_OF, ALONE = 39.0, 20.0, 13.0
"""How likely the text is, as the score of a precedent says it: in a list of names, by itself or as one of several
that are not used, and alone where a value is missing. Of 3,300 gaps in development packages the first was the very text
in 32 of 37, the second in 2 of 7, the third in 8 of 64."""
_ELEMENT = re.compile(r"([ \t]*)(([\"']?)([^\W\d]\w*)\3,)[ \t]*")
"""A line of a list that holds one name, quoted or not."""
_BEGUN = re.compile(r"[^\W\d]\w*\Z")


def unused_of(imported: Iterable[Binding], used: Collection[str]) -> tuple[str, ...]:
    """Names that imports give, and `used` does not have."""
    names = dict.fromkeys(each.name for each in imported)
    return tuple(name for name in names if name != ALL and "." not in name and name not in used)


def name_texts(names: Sequence[str], name: str, text: str, cursor: int) -> list[Occurrence]:
    """What the gap at `cursor` may be with one of `names`, imported by the document `name` and not used when it was
    last looked at."""
    if not 0 < len(names) <= MOST_UNUSED:
        return []
    places = {each: at for each in names if (at := _lone(each, text)) is not None}
    for score, chosen, said in _said([*places], LineGap.of(text, cursor)):
        number = text.count("\n", 0, places[chosen]) + 1
        return [Occurrence(text=said, name=name, number=number, score=score)]
    return []


def _said(names: Sequence[str], gap: LineGap) -> list[tuple[float, str, str]]:
    """(score, name, text), the likeliest first."""
    lines = (_ELEMENT.fullmatch(line) for line in (gap.above, gap.below))
    beside = [found for found in lines if found and found[4] not in KEYWORDS]
    if beside:
        score = LISTED if len(names) == 1 else LISTED_ONE_OF
        said = [(each, _in_list(each, beside[0], gap)) for each in _sorted_in(names, [found[4] for found in beside])]
    else:
        score = ALONE
        alone = names if len(names) == 1 and gap.head.strip() else ()
        said = [(each, _alone(each, gap.head)) for each in alone]
    return [(score, each, text) for each, text in said if text]


def _in_list(name: str, beside: re.Match[str], gap: LineGap) -> str:
    """What is missing of a line like one beside it; empty where the gap's line is another one."""
    indent, quote = beside[1], beside[3]
    rest = gap.rest(f"{quote}{name}{quote},")
    if gap.is_line:
        return f"{indent}{rest}\n"
    return rest if gap.head or not rest else indent + rest


def _sorted_in(names: Sequence[str], around: Sequence[str]) -> list[str]:
    """Those between the names around first, as most lists are sorted."""
    low, high = (around[0], around[-1]) if len(around) > 1 else ("", "")
    return sorted(names, key=lambda name: not low.casefold() <= name.casefold() <= high.casefold())


def _alone(name: str, head: str) -> str:
    """The name where a value is missing behind `head`, or the rest of it where it is begun; else nothing."""
    begun, last = _BEGUN.search(head), head.rstrip()[-1:]
    if begun and begun[0] not in KEYWORDS:
        return name[len(begun[0]) :] if name.startswith(begun[0]) else ""
    if not begun and last != "@" and last not in OPENING:
        return ""
    return name if head[-1:].isspace() or last in "([{@" else f" {name}"


def _lone(name: str, text: str) -> int | None:
    """Where in a text a name stands; None where it does not, or more than once."""
    found, at = None, -1
    while (at := text.find(name, at + 1)) >= 0:
        around = text[at - 1 : at] + text[at + len(name) : at + len(name) + 1]
        if any(each.isalnum() or each == "_" for each in around):
            continue
        if found is not None:
            return None
        found = at
    return found
