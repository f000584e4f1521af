"""Generates sessions from changes, such as a repository's commits: the difference is typed with a person's rhythm and
slips."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import Any

from dg_lsp.config.git import run_git
from dg_lsp.replay.session import Accept, Delete, Event, Focus, Move, Open, SessionError, Type, Undo
from engine.common.changes import changed
from engine.common.newlines import lines

_KEY, _THOUGHT = (110.0, 0.4), (900.0, 0.5)
"""Pauses: the median in milliseconds, and the spread."""
_SLIP = 0.02
"""Share of keys that are typos and corrected."""
_HOPE = 0.08
"""Share of words at which the rest of the line, or a few lines, are accepted from a suggestion."""
_HOPED_LINES = 3
_REGRET = 0.03
"""Share of words that are undone and typed again."""
_TOKEN = re.compile(r"\r?\n[ \t]*|\w+|[^\S\n]+|[^\w\s]")
GIT_S = 60.0
MAX_CHANGED_CHARS = 4000
"""A larger change was pasted or generated, not typed."""
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
    """A file before and after a change."""

    path: str
    before: str
    after: str

    @property
    def language(self) -> str:
        """The LSP identifier by the file's extension; empty if unknown."""
        return LANGUAGES.get(PurePosixPath(self.path).suffix, "")


def events(files: Sequence[Edited], seed: int) -> tuple[Event, ...]:
    """Events that open all files and make the changes, one after the other."""
    typist = _Typist(random=random.Random(seed))
    for file in files:
        typist.do(Open, path=file.path, language=file.language, text=file.before)
    for file in files:
        typist.pause(*_THOUGHT)
        if len(files) > 1:
            typist.do(Focus, path=file.path)
        for start, removed, new in changes(file.before, file.after):
            typist.change(start, removed, new)
    return tuple(typist.done)


def changes(before: str, after: str) -> Iterator[tuple[int, int, str]]:
    """Start, characters removed and new text of each change, with offsets of the text after the earlier ones.

    Lines are changed as people do it: a new line begins with a line break at the end of the one above.
    """
    old, new = lines(before), lines(after)
    starts = list(accumulate(map(len, new), initial=0))
    for first, last, start, end in changed(old, new):
        gone, come = "".join(old[first:last]), "".join(new[start:end])
        yield _between_breaks(starts[start], gone, come, old[first - 1] if first else "")


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

    def pause(self, median_ms: float, spread: float) -> None:
        self.now_ms = round(self.now_ms + self.random.lognormvariate(0, spread) * median_ms)

    def do(self, kind: Callable[..., Event], **what: Any) -> None:
        self.done.append(kind(at=self.now_ms, **what))

    def change(self, start: int, removed: int, new: str) -> None:
        self.pause(*_THOUGHT)
        self.do(Move, cursor=start + removed)
        if removed:
            self._key(Delete, count=removed)
        at = 0
        while at < len(new):
            hoped = self._hoped(new[at:]) if at else ""
            token = _TOKEN.match(new, at)
            assert token, "the tokens cover every character"
            if hoped or "\n" in token[0]:
                # The editor indents by itself.
                self.pause(*_THOUGHT)
                self.do(Accept if hoped else Type, text=hoped or token[0])
            else:
                self._write(token[0])
            at += len(hoped or token[0])

    def _hoped(self, left: str) -> str:
        """The text to accept from a suggestion now: none, the rest of the line, or a few lines."""
        hoped = lines(left)[:_HOPED_LINES]
        if not hoped[0].strip() or self.random.random() >= _HOPE:
            return ""
        return "".join(hoped[: self.random.randint(1, len(hoped))]).rstrip("\r\n")

    def _write(self, token: str) -> None:
        first = len(self.done)
        self._type(token)
        if self.random.random() < _REGRET:
            # A slip that was deleted is two steps more.
            for _ in range(sum(-1 if isinstance(each, Undo) else 1 for each in self.done[first:])):
                self._key(Undo)
            self._type(token)

    def _type(self, token: str) -> None:
        for character in token:
            if self.random.random() < _SLIP:
                self.pause(*_KEY)
                self.do(Type, text=self.random.choice("asdfjkl"))
                self.pause(*_KEY)
                self.do(Undo if self.random.random() < 0.5 else Delete)
            self._key(Type, text=character)

    def _key(self, kind: Callable[..., Event], **what: Any) -> None:
        self.pause(*_KEY)
        self.do(kind, **what)


def edited_files(repository: Path, commits: int) -> list[Edited]:
    """The changes of the latest `commits` commits that could have been typed, oldest first. Raises SessionError."""
    found, used = dict[str, Edited](), 0
    for commit in _git(repository, "rev-list", "--no-merges", "HEAD").split():
        files = {file.path: file for file in _typed(repository, commit)}
        # A session opens a document once: each file is as its last commit found it.
        found = files | found
        used += bool(files)
        if used == commits:
            break
    if not found:
        raise SessionError(f"The history of {repository} holds no change to code that somebody could have typed.")
    return list(found.values())


def _typed(repository: Path, commit: str) -> Iterator[Edited]:
    names = _git(repository, "diff-tree", "-r", "--no-commit-id", "--name-only", "--diff-filter=M", "-z", commit)
    for name in filter(None, names.split("\0")):
        # One that is not UTF-8 was read with a character in its place that nobody wrote.
        if PurePosixPath(name).suffix in LANGUAGES and "\ufffd" not in name:
            before, after = (_git(repository, "cat-file", "blob", f"{tree}:{name}") for tree in (f"{commit}^", commit))
            if 0 < sum(len(new) for _, _, new in changes(before, after)) <= MAX_CHANGED_CHARS:
                yield Edited(path=name, before=before, after=after)


def _git(repository: Path, *arguments: str) -> str:
    try:
        answer = run_git(repository, *arguments, timeout_s=GIT_S)
    except OSError as error:
        raise SessionError(f"git can't be run ({error.strerror}); it reads the history of a repository.") from None
    except subprocess.TimeoutExpired:
        raise SessionError(f"git did not answer within {GIT_S:g} s in {repository}.") from None
    if answer.returncode:
        reason = answer.stderr.decode(errors="replace").strip()
        raise SessionError(f"git can't read {repository} ({reason or 'unknown reason'}).")
    return answer.stdout.decode(errors="replace")
