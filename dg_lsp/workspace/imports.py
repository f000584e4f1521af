"""The imports of open documents: definitions, unused and missing names. The index's thread updates them, the event loop
reads them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from dg_lsp.documents.documents import Snapshot
from dg_lsp.documents.gap import CursorGap
from dg_lsp.documents.positions import Lines
from dg_lsp.workspace.context import FAR_LINES
from dg_lsp.workspace.definitions import Definition, Definitions, names_used, near, within
from dg_lsp.workspace.missing_imports import Missing, found_imports, missing_names
from dg_lsp.workspace.modules import PYTHON, bindings
from dg_lsp.workspace.unused_names import unused_of
from engine.common.newlines import with_line_feeds

DEFINITION_CHARS = 400
"""Limit of definitions in one request."""


@dataclass(slots=True, kw_only=True, eq=False)
class Imported:
    """What one document imports."""

    lines: Lines
    generation: int
    """The index's generation when this was resolved."""
    definitions: tuple[Definition, ...]
    used: frozenset[str]
    """Names that the document uses."""
    unused: tuple[str, ...]
    """Names that it imports and does not use."""
    missing: tuple[Missing, ...]
    """Names that it uses and does not import."""

    @property
    def says(self) -> tuple[object, ...]:
        return self.definitions, self.used, self.unused, self.missing


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """The definitions chosen for a line."""

    imported: Imported
    line: int
    definitions: tuple[Definition, ...]


class Imports:
    """Imports of one session's documents, by URI. `text(file)` returns a file's text or None, `exists(file)` whether
    there is one, `files()` all of them."""

    def __init__(
        self, text: Callable[[str], str | None], exists: Callable[[str], bool], files: Callable[[], Iterable[str]]
    ) -> None:
        self._text, self._files = text, files
        self._definitions = Definitions(text, exists)
        self._imported: dict[str, Imported] = {}
        self._chosen: dict[str, _Chosen] = {}

    def of(self, uri: str) -> Imported | None:
        return self._imported.get(uri)

    def closed(self, uri: str) -> None:
        self._imported.pop(uri, None)
        self._chosen.pop(uri, None)

    def is_known(self, snapshot: Snapshot, generation: int) -> bool:
        """Whether the document and the files are unchanged since they were resolved."""
        held = self._imported.get(snapshot.uri)
        return held is not None and held.lines is snapshot.lines and held.generation == generation

    def resolve(self, snapshot: Snapshot, name: str, generation: int, roots: Sequence[str]) -> None:
        """Resolve a document's imports. `name`: its file; `roots`: folders where absolute imports start."""
        text, language = with_line_feeds(snapshot.as_code(snapshot.text)), snapshot.content_language
        imported, used = list(dict.fromkeys(bindings(text, language))), names_used(text)
        names = missing_names(text) if language in PYTHON else []
        now = Imported(
            lines=snapshot.lines,
            generation=generation,
            definitions=self._definitions.of(name, imported, language, roots),
            used=used,
            unused=unused_of(imported, used),
            missing=found_imports(names, name, self._files(), self._text),
        )
        held = self._imported.get(snapshot.uri)
        if held and held.says == now.says:
            # An earlier choice stays valid.
            held.lines, held.generation = now.lines, generation
        else:
            self._imported[snapshot.uri] = now

    def near(self, gap: CursorGap, open_files: Collection[str]) -> tuple[Definition, ...]:
        """Definitions from files that are not open, chosen for the gap; kept while the cursor stays near."""
        imported = self._imported.get(gap.snapshot.uri)
        if imported is None:
            return ()
        line = gap.lines.line_of(gap.cursor)
        held = self._chosen.get(gap.snapshot.uri)
        if held is None or held.imported is not imported or abs(held.line - line) > FAR_LINES:
            others = [each for each in imported.definitions if each.file not in open_files]
            chosen = within(near(others, imported.used, gap.text, gap.cursor), DEFINITION_CHARS)
            held = self._chosen[gap.snapshot.uri] = _Chosen(imported=imported, line=line, definitions=tuple(chosen))
        return held.definitions
