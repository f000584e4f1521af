"""Git's ignore patterns, matched in time linear in the path, since they may be hostile."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import re2
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from engine.common.errors import BadInput

MAX_PATTERNS = 4000
IGNORES_CASE = sys.platform in ("darwin", "win32")
"""On these systems git sets `core.ignoreCase` in each repository."""
_INSIDE = "ps_d"
"""pathspec's group for the slash after a folder's name."""
_ANY_FOLDER = f"(?P<{_INSIDE}>/)"
"""pathspec's expression for `*/`, the only one that is not anchored at the path's start."""


class TooMuch(BadInput):
    """The patterns are too many or too long. The message is a clause about the file."""


class Patterns:
    """The lines of one ignore file. Raises TooMuch.

    pathspec translates them; they are matched here, one by one. Its own matching is by `re`, whose time has no bound,
    or by a set of re2, which silently finds nothing once its memory is used up.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._patterns: list[_Pattern] = []
        options: Any = re2.Options()
        options.log_errors = False
        options.case_sensitive = not IGNORES_CASE
        # For each pattern, at the most; what needs more is matched more slowly, not less.
        options.max_mem = 128 * 1024
        for line in lines:
            if line.startswith("!") and line.rstrip() != line.rstrip(" "):
                continue  # To git only spaces are no part of a name; pathspec would let in what git does not.
            try:
                expression, excludes = GitIgnoreSpecPattern.pattern_to_regex(_inside_only(line))
            except ValueError:
                continue  # Broken; git skips it, too.
            if expression is None or excludes is None:
                continue
            if len(self._patterns) == MAX_PATTERNS:
                raise TooMuch(f"has more than {MAX_PATTERNS} patterns")
            if expression == _ANY_FOLDER:
                expression = f"(?s:.+){_ANY_FOLDER}"
            try:
                self._patterns.append(_Pattern(re2.compile(expression, options), excludes))
            except (re2.error, UnicodeError):
                raise TooMuch("has a pattern that is too long") from None

    def __bool__(self) -> bool:
        """Whether there are any patterns."""
        return bool(self._patterns)

    def verdict(self, path: str) -> bool | None:
        """The verdict of the last pattern that matches a path: excluded (True) or included again (False); None: none
        matches.

        A folder's path ends in a slash. A pattern that matches a folder above does not match the path.
        """
        # As the lines were read: what is no UTF-8 in a name is none in a pattern either.
        path = path.encode(errors="surrogateescape").decode(errors="replace")
        return next((held.excludes for held in reversed(self._patterns) if held.is_about(path)), None)


class _Pattern:
    def __init__(self, expression: Any, excludes: bool) -> None:
        self.excludes = excludes
        self._match = expression.match
        self._inside: int | None = expression.groupindex.get(_INSIDE)

    def is_about(self, path: str) -> bool:
        found = self._match(path)
        return found is not None and (self._inside is None or found.end(self._inside) in (-1, len(path)))


def _inside_only(line: str) -> str:
    # To git `a/**` is what lies in a, not a itself; to pathspec it is the folder too.
    if line.endswith("/**"):
        return f"{line}/*"
    return f"{line}*/" if line.endswith("/**/") else line
