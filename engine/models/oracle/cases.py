"""What an oracle knows, and how a request finds it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Literal

from engine.common.marked import gap_at_markers
from engine.common.newlines import with_line_feeds
from engine.common.wire import Wire

NEAR_CHARS = 256
"""Characters on either side of a gap that are compared; more would cost time and distinguish no cases."""
_BRACKET = re.compile(r"[()\[\]{}]")
_UNFINISHED = re.compile(r"[^\w\s)\]}\"'`;.!?]\s*\Z")


class Slip(Wire, frozen=True, kw_only=True):
    """A token that the oracle gets wrong until it is re-noised."""

    at: int
    """Index in the answer's tokens."""
    text: str
    """The wrong text; one ASCII character."""


class Case(Wire, frozen=True, kw_only=True, dict=True):
    """One text and how its gap is answered."""

    text: str
    alternatives: tuple[str, ...] = ()
    """Other answers, for further rows of a request."""
    instruction: str | None = None
    """Only requests with this instruction match; None: any."""
    language: str | None = None
    """Only requests in this language match; None: any."""
    confidence: float = 0.9999
    """Probability of a revealed token."""
    reveal: int = 4096
    """Tokens revealed in a step, from the left."""
    reach: int = 4096
    """Most tokens of an answer; a longer one ends with a line that may end a statement, if there is one."""
    delay_ms: float = 0.0
    """Time a step takes."""
    slip: Slip | None = None
    fault: Literal["out_of_memory", "defect"] | None = None
    """What every step fails with."""

    @cached_property
    def parts(self) -> tuple[str, str, str]:
        """The text before the gap, the answer, and the text after it, with line feeds like all that a model gets."""
        gap = gap_at_markers(with_line_feeds(self.text))
        return gap.prefix, gap.old, gap.suffix


class OracleFile(Wire, frozen=True, kw_only=True):
    """What the JSON file holds."""

    cases: tuple[Case, ...]


def look_up(
    cases: Sequence[Case], *, prefix: str, suffix: str, instruction: str, language: str
) -> tuple[Case, tuple[str, ...], bool]:
    """The first case that matches, its answers, and whether they begin in a long string; no answer: an empty one."""
    for case in cases:
        if case.instruction not in (None, instruction) or case.language not in (None, language):
            continue
        found = _between(case, prefix, suffix)
        if found is not None:
            before, answer = found
            whole = answer == case.parts[1]
            return case, (answer, *(case.alternatives if whole else ())), before.count('"""') % 2 == 1
    return Case(text="▮▮"), ("",), False


def is_unfinished(text: str, in_string: bool = False) -> bool:
    """Whether a bracket or a long string is open, or the last line asks for more, as `if x:` and `y = (a) =>` do.

    `in_string`: the text begins in a long string.
    """
    depth = 0
    for bracket in _BRACKET.findall(text):
        depth = max(0, depth + (1 if bracket in "([{" else -1))
    return depth > 0 or (text.count('"""') + in_string) % 2 == 1 or _UNFINISHED.search(text) is not None


def first_line(text: str) -> str:
    return next(iter(text.splitlines()), "")


def _between(case: Case, prefix: str, suffix: str) -> tuple[str, str] | None:
    """The text between the two in the case's text, where both occur in it; of several the nearest to the marked gap."""
    before, answer, after = case.parts
    text = before + answer + after
    whole = len(prefix) < NEAR_CHARS
    starts = [len(prefix)] if whole and text.startswith(prefix) else _ends(text, prefix) if prefix else []
    for start in sorted(starts, key=lambda at: abs(at - len(before))):
        end = _start_of(text, suffix, start)
        if end >= 0:
            return text[:start], text[start:end]
    return None


def _start_of(text: str, suffix: str, start: int) -> int:
    if len(suffix) < NEAR_CHARS and text.endswith(suffix) and start <= len(text) - len(suffix):
        return len(text) - len(suffix)
    return text.find(suffix, start) if suffix else -1


def _ends(text: str, part: str) -> list[int]:
    ends: list[int] = []
    at = text.find(part)
    while at >= 0:
        ends.append(at + len(part))
        at = text.find(part, at + 1)
    return ends
