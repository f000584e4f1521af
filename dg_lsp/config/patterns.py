"""git's patterns, matched in time linear in the path: whoever wrote them may be no friend."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import re2
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from engine.common.errors import BadInput

MAX_PATTERNS = 4000
IGNORES_CASE = sys.platform in ("darwin", "win32")
"""As git does where file systems do: there it sets `core.ignoreCase` for each repository."""
_INSIDE = "ps_d"
"""The group of pathspec's that holds the slash behind a folder's name."""
_ANY_FOLDER = f"(?P<{_INSIDE}>/)"
"""What pathspec makes of `*/`: to be found anywhere in a path, where all others begin with it."""


class TooMuch(BadInput):
    """The patterns are more, or longer, than can be matched. The message is a clause about the file."""


class Patterns:
    """The lines of one ignore file. Raises TooMuch.

    pathspec translates them; matching is done here, one by one, since its own way is `re`, whose time has no bound, or
    a set of re2's, which finds nothing, without a word, once its memory is spent.
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
        """Whether they say anything."""
        return bool(self._patterns)

    def verdict(self, path: str) -> bool | None:
        """What the last line that is about a path says: excluded or let in; None where none is.

        A folder's path ends in a slash. What is about a folder above is not about the path.
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
