"""IPython's additions to Python: magics (`%time`), shell commands (`!ls`), help (`name?`).

Python's parsers reject them, so the engine gets a comment of the same length instead: offsets stay the same, and lines
can be mapped back. Each line is judged alone: a continuation line that begins with `%name`, without a space, counts as
a magic.
"""

from __future__ import annotations

import re

from engine.common.changes import changed
from engine.common.newlines import lines

LANGUAGE = "python"
"""The language of a cell in editors."""
AS_CODE = "ipython"
"""The language in the engine, where `await` is allowed outside functions."""
_MARK = r"(?:%%?(?=[A-Za-z_])|!(?!=)|\?\??(?=[%\w*]))"
_MAGIC = re.compile(
    # In a block, or as a value, a statement must stay: `0#` for `%t`.
    rf"^(?:(?P<value>[ \t]+|[ \t]*[A-Za-z_][\w.,\[\] \t]*=[ \t]*){_MARK}[^\r\n]?"
    rf"|{_MARK}|[%\w*](?=[%\w.*]*\?\??[ \t]*\r?$))",
    re.MULTILINE,
)
_CELL_MAGIC = re.compile(r"\s*%%(\w+|!)")
_OF_ANOTHER = {
    "!": "shellscript",
    "bash": "shellscript",
    "bigquery": "sql",
    "cmd": "bat",
    "cython": "cython",
    "file": "plaintext",
    "html": "html",
    "javascript": "javascript",
    "js": "javascript",
    "latex": "latex",
    "markdown": "markdown",
    "perl": "perl",
    "r": "r",
    "ruby": "ruby",
    "script": "shellscript",
    "sh": "shellscript",
    "sql": "sql",
    "svg": "xml",
    "writefile": "plaintext",
}
"""The languages of cells with such a cell magic."""


def language_of(text: str) -> str:
    """The language of a Python cell by its first line: `%%bash` makes it shell."""
    found = _CELL_MAGIC.match(text)
    return _OF_ANOTHER.get(found[1].lower(), AS_CODE) if found else AS_CODE


def without_magics(text: str) -> str:
    """The text with comments for magics, of the same length."""
    return _MAGIC.sub(_commented, text) if any(mark in text for mark in "%!?") else text


def with_magics(text: str, original: str) -> str:
    """`text` with the magics of `original` in place of their comments."""
    plain, magic, now = _bare(without_magics(original)), _bare(original), _bare(text)
    if plain == magic:
        return text
    # For moved lines. Where a comment and a magic look alike, the comment stays.
    was = dict(zip(plain, magic, strict=True)) | {line: line for line in set(plain) & set(magic)}
    bare, at = list[str](), 0
    for first, last, start, end in changed(plain, now):
        bare += [*magic[at:first], *(was.get(line, line) for line in now[start:end])]
        at = last
    bare += magic[at:]
    return "".join(line + end[len(same) :] for line, end, same in zip(bare, lines(text), now, strict=True))


def _bare(text: str) -> list[str]:
    return [line.rstrip("\r\n") for line in lines(text)]


def _commented(found: re.Match[str]) -> str:
    value = found["value"]
    stands = "#" if value is None else f"{value}0#"
    return stands[: len(found[0])].ljust(len(found[0]), "#")
