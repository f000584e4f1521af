"""Shared by the commands that edit a file: spans, diffs, writing."""

from __future__ import annotations

import difflib
import io

import click

from engine.common.errors import BadInput
from engine.common.files import sendable
from engine.common.marked import MarkedText, gap_between, line_count, line_end, parse_position
from engine.common.processes import working_dir
from engine.common.sequences import common_ends
from engine.common.terminal import is_read_here, shown, shown_name
from engine.common.textfile import TextFile, replace_text
from engine.common.wording import counted
from engine.syntax.languages import language_of

_LSP_IDENTIFIERS = {"tsx": "typescriptreact", "bash": "shellscript"}
"""LSP identifiers that differ from the grammar's name."""
_ESCAPED = str.maketrans({**{chr(code): f"\\{code:03o}" for code in range(32)}, '"': '\\"', "\\": "\\\\"})
"""Characters that have to be quoted in a file name of a diff."""


def language_in(source: TextFile) -> str:
    """The LSP identifier of a file's language; empty: unknown."""
    first_line = source.text[:200].partition("\n")[0]
    name = language_of(path="" if source.path is None else str(source.path), first_line=first_line) or ""
    return _LSP_IDENTIFIERS.get(name, name)


def folder_of(source: TextFile) -> str:
    """The folder of a file; the working directory for standard input. Empty for a name that is not UTF-8."""
    return sendable(working_dir() if source.path is None else (working_dir() / source.path).parent)


def span_in(text: str, span: str) -> MarkedText:
    """LINE:COL-LINE:COL as a gap, or LINE-LINE, which are whole lines. Raises BadInput."""
    start, dash, end = span.partition("-")
    if not dash:
        raise BadInput(
            f"{span!r} is not a range: give LINE:COL-LINE:COL or LINE-LINE, counted from 1, as in 3:1-7:20 or 3-7."
        )
    if ":" not in span:
        return gap_between(text, parse_position(f"{start}:1"), line_end(text, parse_position(f"{end}:1").line))
    return gap_between(text, parse_position(start), parse_position(end))


def difference(source: TextFile, text: str) -> str:
    """A unified diff from a file to `text`, for `patch`; for UTF-16 and UTF-32 only for people."""
    before, after = (_in_diff(f"{side}/{source.name.lstrip('/') if source.path else 'stdin'}") for side in "ab")
    mark = "\ufeff" if source.byte_order_mark else ""
    # Split at line feeds only, as `patch` does; to editors a carriage return ends a line, too.
    old, new = (io.StringIO(each, newline="\n").readlines() for each in (mark + source.text, mark + text))
    diff = difflib.unified_diff(old, new, before, after)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in diff)


def _in_diff(name: str) -> str:
    """A file name, quoted for GNU patch and git."""
    escaped = name.translate(_ESCAPED)
    if escaped != name:
        return f'"{escaped}"'
    return f"{name}\t" if " " in name else name


def write_text(source: TextFile, text: str) -> None:
    """Write a new text to a file and print what changed."""
    replace_text(source, text)
    click.echo(f"{shown_name(source.name)}: {_written(source.text, text)}.", err=True)


def _written(before: str, after: str) -> str:
    start, tail = common_ends(before, after)
    old, new = before[start : len(before) - tail], after[start : len(after) - tail]
    if not old and not new:
        return "nothing changed"
    first = line_count(after[:start])
    last = first + line_count(new) - 1
    where = f"line {first}" if first == last else f"lines {first} to {last}"
    gone = f" instead of {counted(len(old), 'character')}" if old else ""
    return f"wrote {counted(len(new), 'character')}{gone}, {where}"


def show_or_write(source: TextFile, text: str, *, diff: bool, write: bool) -> None:
    """Print the diff to a new text (by default), write it, or both."""
    if write:
        write_text(source, text)
    if diff or not write:
        change = difference(source, text)
        # As bytes: `patch` needs those of the text and of the name, in any encoding.
        click.echo(shown(change) if is_read_here() else change.encode(errors="surrogateescape"), nl=False)
