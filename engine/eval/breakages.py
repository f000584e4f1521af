"""Seeded breakages of files that parse: what typing, merging and copying do to brackets, colons, quotes and words."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Literal, get_args

from engine.analysis.parsed_text import parse_text

BreakageKind = Literal["drop", "add", "swap"]
KINDS: tuple[BreakageKind, ...] = get_args(BreakageKind)
_BRACKETS = "()[]{}"
_WORDS = {
    "python": ("def", "if", "else", "for", "in", "while", "return", "class", "import", "not", "and", "with"),
    "javascript": ("function", "if", "else", "for", "const", "let", "return", "new", "of", "while", "case"),
}
_TOKEN = re.compile(r"\w+|[^\w\s]")
_THROWS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakage:
    """A text that parsed, and what became of it."""

    kind: BreakageKind
    language: str
    original: str
    start: int
    end: int
    """original[start:end] was replaced by `new`."""
    new: str

    @property
    def broken(self) -> str:
        """The text as it is now."""
        return self.original[: self.start] + self.new + self.original[self.end :]


def breakage(text: str, language: str, rng: random.Random) -> Breakage | None:
    """One breakage after which the text does not parse any more; None where none was hit on."""
    tokens = [match.span() for match in _TOKEN.finditer(text)]
    for _ in range(_THROWS):
        kind = rng.choice(KINDS)
        place = _place(text, language, kind, tokens, rng)
        if place is None:
            continue
        found = Breakage(kind=kind, language=language, original=text, start=place[0], end=place[1], new=place[2])
        state = parse_text(found.broken, language)
        if state is not None and not state.is_sound:
            return found
    return None


def _place(
    text: str, language: str, kind: BreakageKind, tokens: list[tuple[int, int]], rng: random.Random
) -> tuple[int, int, str] | None:
    marks = {*_BRACKETS, ":", '"', "'", *_WORDS[language]}
    if kind == "drop":
        places = [(start, end) for start, end in tokens if text[start:end] in marks]
        return (*rng.choice(places), "") if places else None
    if kind == "add":
        at = rng.choice(rng.choice(tokens))
        mark = rng.choice(rng.choice(([*_BRACKETS], [":", '"', "'"], [f" {word} " for word in _WORDS[language]])))
        return at, at, mark
    first = rng.randrange(max(1, len(tokens) - 1))
    (start, middle), (next_, end) = tokens[first : first + 2] if len(tokens) > 1 else ((0, 0), (0, 0))
    swapped = text[next_:end] + text[middle:next_] + text[start:middle]
    return (start, end, swapped) if "\n" not in text[middle:next_] and swapped != text[start:end] else None
