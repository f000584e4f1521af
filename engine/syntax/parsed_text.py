"""A parsed text, how broken it is, and whether an edit makes it better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from engine.syntax.brackets import pair
from engine.syntax.budget import Budget
from engine.syntax.compiler import LARGEST, Diagnostic, diagnose
from engine.syntax.languages import PYTHON
from engine.syntax.problems import Found, find
from engine.syntax.python2 import Outdated, outdated_at
from engine.syntax.tree import SyntaxTree, parsed, plain

_NOT_STRUCTURE = ("outside", "nonlocal", "global", "from __future__", "duplicate argument")
"""Messages of Python's compiler about text that parses: no reason to fix it, but a reason against an edit that causes
one."""
_APART = 2
"""Lines between two separate problems."""


@dataclass(frozen=True, kw_only=True)
class ParsedText:
    """Immutable."""

    tree: SyntaxTree
    found: tuple[Found, ...]
    """ERROR and MISSING nodes."""
    diagnostic: Diagnostic | None
    """The compiler's complaint about the structure of a text; None for other languages and huge texts."""
    complaint: Diagnostic | None = None
    """Another complaint of the compiler, about a text that parses."""

    @property
    def is_sound(self) -> bool:
        return not self.found and self.diagnostic is None

    @property
    def severity(self) -> tuple[int, int]:
        """How broken it is: the number of problems, and how much text from the compiler's complaint on was not
        compiled."""
        return len(self.found), len(self.tree.text) - self.diagnostic.offset + 1 if self.diagnostic else 0

    def edited(self, start: int, end: int, new: str, budget: Budget) -> ParsedText | None:
        """The text with [start, end) replaced; None if that does not make it better, or is unknown. Better: no problem
        is left; or fewer are, none of them in the replaced part (for the compiler: none before its end), and not the
        same one a few lines later."""
        if (old := self.outdated) and start <= old.end and end >= old.start and (start, end, new) != old:
            return None
        tree = self.tree.edited(start, end, new, budget)
        found = find(tree.root, budget) if tree else None
        if tree is None or found is None or len(found) > len(self.found):
            return None
        last = start + len(new)
        first_byte, last_byte = tree.byte(start), tree.byte(last)
        if any(each.start <= last_byte and each.end >= first_byte for each in found):
            return None
        if len(found) == len(self.found) and self.diagnostic is None:
            return None
        # Compiling costs most, so it comes last.
        better = _compiled(tree, found)
        if better.complaint and better._is_in_statement(better.complaint.offset, start, last):
            return None
        if not better.is_sound and self._is_cut_off and better._is_cut_off:
            return None
        # A complaint about the very next line is the same one.
        far = better.diagnostic is None or tree.text.count("\n", last, better.diagnostic.offset) >= _APART
        moved_on = far and not self._moved(better, last)
        behind = better.diagnostic is None or moved_on or self.outdated == (start, end, new)
        return better if better.is_sound or (behind and better.severity < self.severity) else None

    @cached_property
    def outdated(self) -> Outdated | None:
        """The Python 2 code at the place of the compiler's complaint."""
        return outdated_at(self.tree, self.diagnostic.offset) if self.diagnostic else None

    @cached_property
    def _is_cut_off(self) -> bool:
        """Whether a string is open at the end: from its beginning on, code and strings may be swapped."""
        pending = pair(self.tree.text, self.tree.language).pending
        return pending is not None and pending.kind == "string"

    def _is_in_statement(self, offset: int, start: int, end: int) -> bool:
        """Whether a place is in one of the outermost statements that `text[start:end]` touches."""
        first, last, byte = self.tree.byte(start), self.tree.byte(end), self.tree.byte(offset)
        touched = (each for each in self.tree.root.children if each.start_byte <= last and each.end_byte >= first)
        return any(each.start_byte <= byte <= each.end_byte for each in touched)

    def _moved(self, other: ParsedText, end: int) -> bool:
        """Whether the compiler's complaint about another text is the same one, and would be if that text ended with the
        line at `end`: then the problem only moved."""
        if self.diagnostic is None or other.diagnostic is None or self.diagnostic.message != other.diagnostic.message:
            return False
        text = other.tree.text
        stop = text.find("\n", end) + 1 or len(text)
        still = diagnose(plain(text[:stop]), other.tree.language)
        return still is not None and still.message == self.diagnostic.message


def parse_text(text: str, language: str, budget: Budget | None = None) -> ParsedText | None:
    """Parse a text; None for an unknown language or without time. `language`: `Grammar.name`."""
    budget = budget or Budget()
    tree = parsed(plain(text), language, budget)
    return tree and parsed_text(tree, budget)


def parsed_text(tree: SyntaxTree, budget: Budget) -> ParsedText | None:
    """Parse a text; None without time."""
    found = find(tree.root, budget)
    return None if found is None else _compiled(tree, found)


def _compiled(tree: SyntaxTree, found: Sequence[Found]) -> ParsedText:
    error = None
    if tree.language in PYTHON and len(tree.text) <= LARGEST:
        error = diagnose(plain(tree.text), tree.language)
    parses = error is not None and any(word in error.message for word in _NOT_STRUCTURE)
    return ParsedText(
        tree=tree, found=tuple(found), diagnostic=None if parses else error, complaint=error if parses else None
    )
