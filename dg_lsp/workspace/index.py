"""The workspace index: open documents and the workspace's files, searched for code like that around the cursor.

A thread updates it while nobody types. The event loop looks things up in it and never touches the disk for that.
Files are indexed if a document of their kind was opened. Excluded files never reach the model: each file is checked
before it is read, and again before any text of it is sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from dg_lsp.config.exclusion import Exclusions, Seen, file_of, innermost, name_of
from dg_lsp.config.looking import Looking
from dg_lsp.config.rereading import file_signature
from dg_lsp.config.walking import files_below
from dg_lsp.documents.documents import Documents, Snapshot
from dg_lsp.documents.gap import CursorGap
from dg_lsp.documents.positions import Lines
from dg_lsp.workspace.cursor_line import CursorLine
from dg_lsp.workspace.definitions import as_snippets
from dg_lsp.workspace.imports import Imported, Imports
from dg_lsp.workspace.matches import Occurrence, likeliest, look_up
from dg_lsp.workspace.missing_imports import import_texts
from dg_lsp.workspace.modules import LANGUAGES
from dg_lsp.workspace.text_index import TextIndex, kind_of
from dg_lsp.workspace.unused_names import name_texts
from engine.common.errors import NotRead
from engine.common.files import read_regular, sendable
from engine.common.newlines import with_line_feeds
from engine.common.request import Snippet, WorkspaceMatch

log = logging.getLogger(__name__)

MOST = 3
"""Workspace matches in one request."""
MOST_LIKENESS = 1000.0
"""The largest likeness that a request may hold."""
MAX_FILES = 10_000
MAX_FILE_NBYTES = 128 * 1024
"""Longer files are skipped: people rarely write them."""
MAX_NBYTES = 90_000_000
"""Size limit of the index of files."""
IDLE_S = 1.0
"""The index is updated after this long without a key."""
WALK_AGAIN_S = 600.0
WAIT_S = 0.05
"""How long a request waits for the files that its matches are from; those on a slow disk come with a later key."""
LOOK_UP_S = 0.0006
"""Time limit of one look-up. The likeliest place is read in any case, further ones only within this time."""
_AROUND_CHARS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class _LookUp:
    """The latest look-up in a document."""

    lines: Lines
    cursor: int
    generation: int
    imported: Imported | None
    found: tuple[Occurrence, ...]


class WorkspaceIndex:
    """The workspace index of one session. `folders()` returns the workspace folders."""

    def __init__(self, documents: Documents, folders: Callable[[], Sequence[Path]] = tuple) -> None:
        self._documents = documents
        self._folders = folders
        self._files = TextIndex()
        self._open = TextIndex(bucket_bits=10)
        self._indexed_lines: dict[str, Lines] = {}
        """The text that was indexed, for each document in `_open`."""
        self._open_names = set[str]()
        """All open documents, as the thread saw them last: their files' contents are outdated."""
        self._signatures: dict[str, int] = {}
        """The signature of each file in `_files` when it was read."""
        self._exclusions = Exclusions()
        self._looking = Looking(self._look)
        self._looked_up: dict[str, _LookUp] = {}
        self._imports = Imports(
            self._text,
            exists=lambda name: name in self._files or name in self._open,
            files=lambda: [*self._open.names(), *self._files.names()],
        )
        self._generation = 0
        """Counts changes to the index."""
        self._files_generation = 0
        """Counts changes to the index of files."""
        self._writing = threading.Lock()
        self._kinds = set[str]()
        self._last_key_s = time.monotonic()
        self._walk_at_s = -math.inf
        self._work = threading.Event()
        self._is_working = False
        self._over = False
        self._thread: threading.Thread | None = None

    def opened(self, uri: str) -> None:
        """A document was opened: index it, and files of its kind, once nobody types."""
        kind = kind_of(_name(uri))
        # A notebook's file holds JSON, not code.
        if kind not in self._kinds and self._documents.file_uri(uri) == uri:
            self._kinds.add(kind)
            self._walk_at_s = -math.inf
        self._work.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep, name="text index", daemon=True)
            self._thread.start()

    def changed(self) -> None:
        """Somebody types."""
        self._last_key_s = time.monotonic()
        self._work.set()

    def closed(self, uri: str) -> None:
        self._looked_up.pop(uri, None)
        self._imports.closed(uri)
        self._work.set()

    def look_anew(self) -> None:
        """Files or folders changed: check all of them again."""
        self._looking = Looking(self._look)
        self._walk_at_s = -math.inf
        self._work.set()

    def close(self) -> None:
        self._over = True
        self._work.set()

    async def matches(self, gap: CursorGap) -> tuple[WorkspaceMatch, ...]:
        """Code from places whose surroundings are like the gap's, names adapted, the likeliest first. Lines end in line
        feeds."""
        if not _wanted(gap.snapshot):
            return ()
        found = self.found(gap)
        await self._look_at(each.name for each in found)
        shown = [each for each in found if self._may_show(each.name)][:MOST]
        return tuple(
            WorkspaceMatch(
                text=each.text,
                origin=f"{self._shown_path(each.name)}:{each.number}",
                likeness=likeness(each.score),
            )
            for each in shown
        )

    async def definitions(self, gap: CursorGap) -> tuple[Snippet, ...]:
        """Signatures of what the document imports from files that are not open, as far as they matter at the gap."""
        if not _wanted(gap.snapshot):
            return ()
        found = self._imports.near(gap, self._indexed_lines)
        await self._look_at(each.file for each in found)
        return tuple(as_snippets(each for each in found if self._may_show(each.file)))

    async def _look_at(self, names: Iterable[str]) -> None:
        """Check files that are not open on disk, for `WAIT_S` at most."""
        unsure = {each for each in names if not self._is_open(each) and not self._looking.is_fresh(each)}
        if unsure:
            await asyncio.wait([asyncio.ensure_future(self._looking.at(*unsure))], timeout=WAIT_S)

    @property
    def is_complete(self) -> bool:
        """Whether the index is up to date, as far as anybody knows."""
        return self._walk_at_s > time.monotonic() and not self._work.is_set() and not self._is_working

    @property
    def files(self) -> int:
        """How many files are indexed, open documents not counted."""
        return len(self._files)

    def found(self, gap: CursorGap) -> tuple[Occurrence, ...]:
        """All matches for a gap, unused imports and missing names, excluded files included. Touches no disk."""
        uri = gap.snapshot.uri
        held, imported = self._looked_up.get(uri), self._imports.of(uri)
        at = gap.cursor, self._generation, imported
        if held and held.lines is gap.lines and (held.cursor, held.generation, held.imported) == at:
            return held.found
        before, after = gap.text[: gap.cursor], gap.text[gap.cursor :]
        found = look_up(
            (self._open, self._files),
            _name(uri),
            with_line_feeds(before[-_AROUND_CHARS:]),
            with_line_feeds(after[:_AROUND_CHARS]),
            number=gap.lines.line_of(gap.cursor) + 1,
            single_line=not gap.ends_line,
            within_s=LOOK_UP_S,
        )
        if imported:
            prefix = with_line_feeds(before)
            name, line = _name(uri), CursorLine.of(prefix + with_line_feeds(after), len(prefix))
            found += [*name_texts(imported.unused, name, line), *import_texts(imported.missing, name, line)]
        held = self._looked_up[uri] = _LookUp(
            lines=gap.lines,
            cursor=gap.cursor,
            generation=self._generation,
            imported=imported,
            found=tuple(likeliest(found)),
        )
        return held.found

    def _is_open(self, name: str) -> bool:
        return name in self._indexed_lines

    def _may_show(self, name: str) -> bool:
        """Whether text of a file or document may be sent now."""
        if self._is_open(name):
            return any(_name(uri) == name and self._shown(uri) for uri in self._documents.uris())
        if name not in self._files or not self._looking.is_fresh(name):
            return False
        path = file_of(name)
        # An open document is in the other index, or will be.
        is_open = any(_name(uri) == name for uri in self._documents.uris())
        return path is not None and innermost(path, self._folders()) is not None and not is_open

    def _shown_path(self, name: str) -> str:
        path = file_of(name)
        folder = path and innermost(path, self._folders())
        shown = path and folder and sendable(path.relative_to(folder))
        return PurePath(shown).as_posix() if shown else name_of(name).rpartition("/")[2]

    def _look(self, name: str, seen: Seen) -> None:
        """Drop a file that is excluded now, or has changed since it was read."""
        path = file_of(name)
        if path is None or self._why_not(path, seen) or self._signatures.get(name) != file_signature(path):
            self._drop(name)

    def _why_not(self, path: Path, seen: Seen | None = None) -> str:
        folders = self._folders()
        inside = innermost(path, folders)
        return self._exclusions.reason(path.as_uri(), folders, seen=seen) if inside else "it is in no folder"

    def _drop(self, name: str) -> None:
        with self._writing:
            self._signatures.pop(name, None)
            if name in self._files:
                self._files.remove(name)
                self._generation += 1
                self._files_generation += 1

    def _keep(self) -> None:
        """The thread: index changed documents, then walk through the folders, while nobody types."""
        while not self._over:
            self._work.wait(WALK_AGAIN_S)
            self._rest()
            self._is_working = True
            self._work.clear()
            try:
                self._take_documents()
                if time.monotonic() >= self._walk_at_s and any(map(self._suggests, self._documents.uris())):
                    self._walk_at_s = time.monotonic() + WALK_AGAIN_S
                    self._walk()
                self._resolve()
                self._tidy()
            except Exception:  # whatever a file system comes up with
                log.exception("The index of the workspace could not be brought up to date.")
            self._is_working = False

    def _rest(self) -> None:
        """Wait until nobody types."""
        while not self._over and (left_s := self._last_key_s + IDLE_S - time.monotonic()) > 0:
            time.sleep(min(left_s, IDLE_S))

    def _take_documents(self) -> None:
        uris = self._documents.uris()
        shown = [(_name(uri), snapshot) for uri in uris if (snapshot := self._shown(uri))]
        wanted = {name: snapshot for name, snapshot in shown if len(snapshot.text) <= MAX_FILE_NBYTES}
        for name in [*self._indexed_lines]:
            if name not in wanted:
                with self._writing:
                    del self._indexed_lines[name]
                    self._open.remove(name)
                    self._generation += 1
        were_open, self._open_names = self._open_names, {_name(uri) for uri in uris}
        for name in were_open - self._open_names:
            self._take(name)
        for name, snapshot in wanted.items():
            if self._indexed_lines.get(name) is not snapshot.lines:
                self._rest()
                with self._writing:
                    self._open.add(name, with_line_feeds(snapshot.text))
                    self._indexed_lines[name] = snapshot.lines
                    self._signatures.pop(name, None)
                    self._files.remove(name)
                    self._generation += 1

    def _shown(self, uri: str) -> Snapshot | None:
        snapshot = self._documents.known(uri)
        return snapshot if snapshot and snapshot.policy.may_show else None

    def _suggests(self, uri: str) -> bool:
        snapshot = self._documents.known(uri)
        return snapshot is not None and not snapshot.policy.off and _wanted(snapshot)

    def _walk(self) -> None:
        """Index new and changed files of the folders; drop those that are gone or excluded."""
        seen = set[str]()
        for path in files_below(self._folders(), self._exclusions, lambda name: kind_of(name) in self._kinds):
            self._rest()
            if self._over:
                return
            if len(seen) == MAX_FILES:
                break
            name = path.as_uri()
            seen.add(name)
            self._take(name)
        for name in self._files.names():
            if name not in seen:
                self._drop(name)

    def _take(self, name: str) -> None:
        """Index a file as it is now, or drop it; for an open document, only the editor's text counts."""
        path = None if name in self._open_names else file_of(name)
        signature = path and file_signature(path)
        # A cell's name is not its file's, which holds JSON.
        if path is None or signature is None or path.as_uri() != name or self._why_not(path):
            self._drop(name)
            return
        if self._signatures.get(name) == signature:
            return
        try:
            text = read_regular(path, MAX_FILE_NBYTES).decode()
        except (OSError, NotRead, UnicodeDecodeError):
            self._drop(name)
            return
        with self._writing:
            if self._files.nbytes < MAX_NBYTES and "\0" not in text:
                self._files.add(name, with_line_feeds(text))
            else:
                self._files.remove(name)
            self._signatures[name] = signature
            self._generation += 1
            self._files_generation += 1

    def _resolve(self) -> None:
        """Resolve the imports of documents, where they or the files changed."""
        for uri in self._documents.uris():
            snapshot = self._shown(uri)
            if snapshot is None or snapshot.content_language not in LANGUAGES or not self._suggests(uri):
                continue
            generation = self._files_generation
            if len(snapshot.text) <= MAX_FILE_NBYTES and not self._imports.is_known(snapshot, generation):
                self._rest()
                name = _name(snapshot.file_uri)
                self._imports.resolve(snapshot, name, generation, self._roots(name))

    def _roots(self, name: str) -> list[str]:
        """Where absolute imports may start: the folders above a document, up to the workspace's, and their `src`."""
        path = file_of(name)
        folder = path and innermost(path, self._folders())
        if path is None or folder is None:
            return []
        above = [each for each in path.parents if each.is_relative_to(folder)]
        return [each.as_uri() for each in (*above, *(each / "src" for each in above))]

    def _text(self, name: str) -> str | None:
        for index in (self._open, self._files):
            with contextlib.suppress(KeyError):
                return index.text(name)
        return None

    def _tidy(self) -> None:
        """Rebuild indexes in which too many entries are dead."""
        if self._open.dead_lines > 4 * self._open.lines // 5 and self._open.dead_lines > 20_000:
            with self._writing:
                self._open, self._indexed_lines = TextIndex(bucket_bits=10), {}
            self._work.set()
        old = self._files
        if old.dead_lines > old.lines // 3 and old.dead_lines > 20_000:
            new = TextIndex()
            for name in old.names():
                self._rest()
                with contextlib.suppress(KeyError):
                    new.add(name, old.text(name))
            with self._writing:
                for name in new.names():
                    if name not in old:
                        new.remove(name)
                self._files = new


def _wanted(snapshot: Snapshot) -> bool:
    context = snapshot.policy.settings.context
    return context.enabled and context.workspace


def _name(uri: str) -> str:
    """One name for a file, however an editor writes its URI."""
    path = file_of(uri)
    return path.as_uri() if path and "#" not in uri else uri


def likeness(score: float) -> float:
    """A look-up's score, limited to what a request may hold."""
    return min(max(score, 0.0), MOST_LIKENESS)
