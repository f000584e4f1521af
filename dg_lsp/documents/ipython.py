"""What IPython takes in a cell beside Python: magics (`%time`), commands of the shell (`!ls`), questions (`name?`).

No parser of Python's takes them, so what is sent to the engine has a comment in their place, of the same length: each
offset stays what it is, and the way back is line by line. What is one is told by its line alone, not by what stands
around it: a line that goes on with `%name`, without a space, is taken for one.
"""

from __future__ import annotations

import re

from engine.common.changes import changed
from engine.common.newlines import lines

LANGUAGE = "python"
"""As editors call a cell's."""
AS_CODE = "ipython"
"""As the engine calls it: `await` may stand outside of functions."""
_MARK = r"(?:%%?(?=[A-Za-z_])|!(?!=)|\?\??(?=[%\w*]))"
_MAGIC = re.compile(
    # In a block, or as a value, it stands for something that is there: `0#` for `%t`.
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
"""Cell magics whose cell holds something else than Python."""


def language_of(text: str) -> str:
    """In which language a cell of Python is by its first line: `%%bash` makes it one of the shell."""
    found = _CELL_MAGIC.match(text)
    return _OF_ANOTHER.get(found[1].lower(), AS_CODE) if found else AS_CODE


def without_magics(text: str) -> str:
    """The text as Python, of the same length."""
    return _MAGIC.sub(_commented, text) if any(mark in text for mark in "%!?") else text


def with_magics(text: str, original: str) -> str:
    """`text`, in which lines of `without_magics(original)` may stand, with the lines that they were."""
    plain, magic, now = _bare(without_magics(original)), _bare(original), _bare(text)
    if plain == magic:
        return text
    # For lines that were moved; of those that look alike as Python, a comment must not become a command.
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
