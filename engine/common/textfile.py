"""Text files, read without loss and replaced atomically."""

from __future__ import annotations

import codecs
import errno
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from engine.common.errors import BadInput, EngineError
from engine.common.exclusive import exclusive
from engine.common.files import read_regular
from engine.common.sizes import decimal_bytes

STANDARD_INPUT = "-"
MOST_NBYTES = 64 << 20
"""Limit of a text; longer ones are not written by hand."""
_MARKS = (
    # UTF-32's little-endian mark begins with UTF-16's, so it is looked for first.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile:
    """`raw` is `byte_order_mark` and the bytes of `text`; each is a function of the other."""

    path: Path | None
    """None: standard input."""
    raw: bytes
    text: str
    encoding: str
    byte_order_mark: bytes

    @property
    def name(self) -> str:
        """As a person would name it."""
        return "standard input" if self.path is None else str(self.path)


def read_text(name: str) -> TextFile:
    """Read a file, or standard input for "-". Raises BadInput for what is not there, not readable or not text."""
    if name == STANDARD_INPUT:
        try:
            raw = sys.stdin.buffer.read(MOST_NBYTES + 1)
        except (AttributeError, OSError):  # there is none where it was closed before we began
            raise BadInput("Standard input can't be read: name a file, or send one.") from None
        if len(raw) > MOST_NBYTES:
            raise BadInput(f"Standard input is larger than {decimal_bytes(MOST_NBYTES)}: give a smaller text.")
        return decode(raw, None)
    path = Path(name)
    try:
        return decode(read_regular(path, MOST_NBYTES), path)
    except FileNotFoundError:
        raise BadInput(f"There is no file {name}: check the path.") from None
    except IsADirectoryError:
        raise BadInput(f"{name} is a directory: name a file in it.") from None
    except OSError as error:
        raise BadInput(f"{name} can't be read ({error.strerror}): check the path and its permissions.") from None


def decode(raw: bytes, path: Path | None) -> TextFile:
    """Bytes as text: UTF-8, or what a byte order mark says. Raises BadInput for anything else."""
    name = "Standard input" if path is None else str(path)
    mark, encoding = mark_of(raw)
    body = raw[len(mark) :]
    if encoding == "utf-8" and b"\0" in body:
        raise BadInput(f"{name} is a binary file: dg-lsp fills gaps in text.")
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        where = len(mark) + error.start
        raise BadInput(
            f"{name} is not {encoding.upper()} text (byte {where} can't be read): convert it first."
        ) from None
    return TextFile(path=path, raw=raw, text=text, encoding=encoding, byte_order_mark=mark)


def mark_of(raw: bytes) -> tuple[bytes, str]:
    """The byte order mark that bytes begin with, empty where they have none, and the encoding that it says."""
    return next(((mark, encoding) for mark, encoding in _MARKS if raw.startswith(mark)), (b"", "utf-8"))


def replace_text(file: TextFile, text: str) -> None:
    """Write `text` in the file's place, at once and only if the file is still as it was read. Keeps encoding and mode.

    Raises BadInput for standard input and EngineError, with the file untouched, when it changed or can't be written.
    """
    target = writable_path(file).resolve()
    try:
        _replace(target, file.raw, file.byte_order_mark + text.encode(file.encoding))
    except OSError as error:
        raise EngineError(f"{file.path} can't be written ({error.strerror}): it is unchanged.") from None


def writable_path(file: TextFile) -> Path:
    """Where the file can be written back. Raises BadInput for standard input."""
    if file.path is None:
        raise BadInput("There is no file to write to: --write needs a FILE, not standard input.")
    return file.path


def _replace(target: Path, before: bytes, after: bytes) -> None:
    if not os.access(target, os.W_OK) or not target.stat().st_mode & 0o222:  # root may write, but was told not to
        raise PermissionError(errno.EACCES, "it is read-only")
    # No more of the name than leaves room for what stands after it.
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:48]}.")
    scratch = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(after)
            stream.flush()
            os.fsync(stream.fileno())
        _copy_owner_and_mode(target, scratch)
        with exclusive(target) as others_wait:
            if others_wait() or read_regular(target, MOST_NBYTES) != before:
                raise EngineError(_changed(target))
            _put(scratch, target, others_wait)
    finally:
        scratch.unlink(missing_ok=True)


def _put(scratch: Path, target: Path, others_wait: Callable[[], bool]) -> None:
    kept = scratch.with_name(f"{scratch.name}.old")
    with suppress(OSError):  # not every file system has links
        os.link(target, kept)
    try:
        scratch.replace(target)
        if others_wait() and kept.exists():
            # What they are about to write to is the file as it was: it gets its name back, or their words were lost.
            kept.replace(target)
            raise EngineError(_changed(target))
    finally:
        kept.unlink(missing_ok=True)


def _changed(target: Path) -> str:
    return f"{target} changed while its gap was being filled: run the command again."


def _copy_owner_and_mode(source: Path, target: Path) -> None:
    status = source.stat()
    if hasattr(os, "chown"):
        with suppress(PermissionError):  # only root may give files away
            os.chown(target, status.st_uid, status.st_gid)
    target.chmod(status.st_mode & 0o7777)
    if hasattr(os, "listxattr"):
        # Access lists among them: without theirs, the mode's bits would let others in.
        with suppress(OSError):
            for name in os.listxattr(source):
                with suppress(OSError):
                    os.setxattr(target, name, os.getxattr(source, name))
