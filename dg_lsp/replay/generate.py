"""Sessions made up from texts before and after: somebody types the difference, with a person's rhythm and slips."""

from __future__ import annotations

import difflib
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from dg_lsp.replay.session import Accept, Delete, Event, Focus, Move, Open, Type, Undo

_KEY_GAP_MS = 110.0
_THINK_MS = 900.0
_SLIP = 0.02
"""Share of keys that hit a neighbour and are taken back."""
_HOPE = 0.08
"""Share of words before which the rest of the line, or a few lines, are taken from a suggestion."""
_HOPED_LINES = 3
_REGRET = 0.03
"""Share of words that are undone and typed again."""
_TOKEN = re.compile(r"\r?\n[ \t]*|\w+|[^\S\n]+|[^\w\s]")
LANGUAGES = {
    ".py": "python",
    ".js": "javascript",
    ".ts": "typescript",
    ".lua": "lua",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    ".c": "c",
    ".h": "c",
    ".cpp": "cpp",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """A file and what somebody made of it."""

    path: str
    before: str
    after: str

    @property
    def language(self) -> str:
        """Its LSP identifier, by the file's extension; empty where that is unknown."""
        return LANGUAGES.get(PurePosixPath(self.path).suffix, "")


def events(files: Sequence[Edited], seed: int) -> tuple[Event, ...]:
    """Somebody opens all files and makes the changes, one after the other."""
    typist = _Typist(random=random.Random(seed))
    for file in files:
        typist.do(Open(at=typist.now_ms, path=file.path, language=file.language, text=file.before))
    for file in files:
        typist.think()
        if len(files) > 1:
            typist.do(Focus(at=typist.now_ms, path=file.path))
        for start, removed, new in changes(file.before, file.after):
            typist.change(start, removed, new)
    return tuple(typist.done)


def changes(before: str, after: str) -> Iterator[tuple[int, int, str]]:
    """Start, characters removed and new text of each change, with offsets of the text as it is by then.

    Whole lines are changed as people do it: a new one begins with a line break at the end of the one above.
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    at = 0
    for kind, old_start, old_end, new_start, new_end in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
        gone, come = "".join(old[old_start:old_end]), "".join(new[new_start:new_end])
        if kind != "equal":
            yield _between_breaks(at, gone, come, old[old_start - 1] if old_start else "")
        at += len(come)


def _between_breaks(at: int, gone: str, come: str, above: str) -> tuple[int, int, str]:
    line_break = "\r\n" if come.endswith("\r\n") else "\n"
    if not come.endswith(line_break):
        return at, len(gone), come
    bare = come.removesuffix(line_break)
    if gone.endswith(line_break):
        return at, len(gone) - len(line_break), bare
    if not gone and above.endswith(line_break):
        return at - len(line_break), 0, line_break + bare
    return at, len(gone), come


@dataclass(slots=True, kw_only=True)
class _Typist:
    random: random.Random
    now_ms: float = 0.0
    done: list[Event] = field(default_factory=list[Event])

    def do(self, event: Event) -> None:
        self.done.append(event)

    def think(self) -> None:
        self.now_ms = round(self.now_ms + self.random.lognormvariate(0, 0.5) * _THINK_MS)

    def change(self, start: int, removed: int, new: str) -> None:
        self.think()
        self.do(Move(at=self.now_ms, cursor=start + removed))
        if removed:
            self._wait()
            self.do(Delete(at=self.now_ms, count=removed))
        at = 0
        while at < len(new):
            hoped = self._hoped(new[at:]) if at else ""
            token = _TOKEN.match(new, at)
            assert token, "the tokens cover every character"
            if hoped:
                self.think()
                self.do(Accept(at=self.now_ms, text=hoped))
            else:
                self._write(token[0])
            at += len(hoped or token[0])

    def _hoped(self, left: str) -> str:
        """What the person wants the model to write now: nothing, the rest of the line, or a few lines."""
        lines = left.splitlines()[:_HOPED_LINES]
        if not lines[0].strip() or self.random.random() >= _HOPE:
            return ""
        return "\n".join(lines[: self.random.randint(1, len(lines))])

    def _write(self, token: str) -> None:
        if "\n" in token:
            # The editor indents by itself.
            self.think()
            self.do(Type(at=self.now_ms, text=token))
            return
        self._type(token)
        if self.random.random() < _REGRET:
            for _ in token:
                self._wait()
                self.do(Undo(at=self.now_ms))
            self._type(token)

    def _type(self, token: str) -> None:
        for character in token:
            self._slip()
            self._wait()
            self.do(Type(at=self.now_ms, text=character))

    def _slip(self) -> None:
        if self.random.random() < _SLIP:
            self._wait()
            self.do(Type(at=self.now_ms, text=self.random.choice("asdfjkl")))
            self._wait()
            self.do(Undo(at=self.now_ms) if self.random.random() < 0.5 else Delete(at=self.now_ms))

    def _wait(self) -> None:
        self.now_ms = round(self.now_ms + self.random.lognormvariate(0, 0.4) * _KEY_GAP_MS)
