"""Ways to complete unfinished code: text in the gap and after it that makes the code around it whole.

A gap in finished code needs at most something in the gap (`x = ▮`). At a cursor more is often missing (`def f(▮` with
nothing after it): it was missing before, so no fill is blamed for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from engine.syntax.brackets import Brackets, brackets_near
from engine.syntax.languages import GRAMMARS, Grammar

_PIECES = ("x", "x\n{indent}x", "\n{indent}", "{pad}", "{pad}x")


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """Text in the gap, right after it, and at the end of the file."""

    standin: str = ""
    tail: str = ""
    closers: str = ""
    """Closing brackets before or after `tail`."""
    inside: bool = False
    """Whether `tail` is inside the brackets: after the round ones and before the first brace."""
    end: str = ""

    @property
    def finish(self) -> str:
        """The text after a fill."""
        if not self.inside:
            return self.closers + self.tail
        brace = self.closers.find("}")
        at = brace if brace >= 0 else len(self.closers)
        return self.closers[:at] + self.tail + self.closers[at:]

    @property
    def text(self) -> str:
        return self.standin + self.finish

    @property
    def finishes(self) -> bool:
        """Whether it completes code that was unfinished before the fill."""
        return bool(self.tail or self.closers or self.end)


def continuations(before: str, after: str, language: str) -> Iterator[Continuation]:
    """Continuations of a gap, without repetition; those that add least come first."""
    seen = set[Continuation]()
    for each in _all(before, after, language):
        if each not in seen:
            seen.add(each)
            yield each


def _all(before: str, after: str, language: str) -> Iterator[Continuation]:
    here = brackets_near(before, after, language)
    words = _words(before, after)
    grammar = GRAMMARS.get(language, Grammar(name=language))
    ended = here.head and here.at_gap.pending and here.at_gap.pending.closer
    for standin in (*grammar.standins, *((ended,) if ended else ())):
        yield Continuation(standin=standin)
        yield from _closing(here, standin)
    if here.openers:
        headers = [header for header in grammar.headers if header[-1] == here.openers]
        yield from (Continuation(standin=standin) for standin in (here.openers, f"x{here.openers}", *headers))
    for quote in (*grammar.quotes, *_PIECES):
        standin = quote.format_map(words)
        yield Continuation(standin=standin)
        yield Continuation(standin=f"{standin},")
        yield from _closing(here, standin)
    for tail in grammar.tails:
        finish = tail.format_map(words)
        for standin in ("", "x"):
            yield Continuation(standin=standin, tail=finish, closers=here.closers)
            if here.closers:
                yield Continuation(standin=standin, tail=finish, closers=here.closers, inside=True)


def _closing(here: Brackets, standin: str) -> Iterator[Continuation]:
    """Closers of the brackets open around a stand-in: right after it, or at the end of the file."""
    neutral = not standin.strip("x,: \t\n")
    closers = here.closers if neutral else Brackets(here.before + standin, here.after, here.language).closers
    if closers:
        yield Continuation(standin=standin, closers=closers)
        yield Continuation(standin=standin, end="\n" + closers)
        yield Continuation(standin=standin, tail=";", closers=closers, inside=True)


def _words(before: str, after: str) -> dict[str, str]:
    """Indentations to try: the last line's, its block's, and the difference between the gap's line and its
    neighbours."""
    lines = before[-4000:].splitlines(keepends=True) or [""]
    here = lines[-1] if not lines[-1].endswith(("\n", "\r")) else ""
    indent = _indentation(here)
    above = [_indentation(line) for line in reversed(lines) if line.strip()]
    below = next((_indentation(line) for line in after[:2000].splitlines()[1:] if line.strip()), "")
    lacking = max((wanted.removeprefix(here) for wanted in (below, *above[:1]) if wanted.startswith(here)), default="")
    return {
        "indent": indent,
        "outer": next((shorter for shorter in above if len(shorter) < len(indent)), ""),
        "pad": lacking,
    }


def _indentation(line: str) -> str:
    found = re.match(r"[ \t]*", line)
    return found.group() if found else ""
