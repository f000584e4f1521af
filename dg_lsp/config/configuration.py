"""The settings of a document: the editor's, its project's `dg-lsp.toml`, and the user's switches on top."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePath, PurePosixPath
from typing import Any
from urllib.parse import unquote

from msgspec.structs import replace

from dg_lsp.config.exclusion import file_of, innermost, place_of
from dg_lsp.config.languages import is_meant, is_on, unknown_language
from dg_lsp.config.rereading import Rereading, as_marked
from dg_lsp.config.sections import section
from dg_lsp.config.settings import Settings, applied

PROJECT_FILE = "dg-lsp.toml"
MAX_PROJECT_FILE_NBYTES = 64 * 1024
MAX_DOTS = 200
"""Limit of one line of it."""
MAX_NAMED = 100
"""How many problems one session reports."""
_HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class Configuration:
    """Workspace folders, settings and switches. `complain` is called once for each wrong key or value."""

    def __init__(self, complain: Callable[[str], None]) -> None:
        self._complain = complain
        self._named = set[str]()
        self._folders: dict[str, Path] = {}
        self._initial: object = {}
        self.editor = Settings()
        """The editor's settings, for everything that does not depend on a document."""
        self._projects = Rereading(_parsed, _refused, MAX_PROJECT_FILE_NBYTES)
        self._tables: dict[Path, tuple[dict[str, Any], str]] = {}
        self._real: dict[PurePath, Path] = {}
        """Resolved paths of documents and folders, as far as they were looked at."""
        self._switches = Switches()
        self.switch = self._switches.turn

    @property
    def switched_on(self) -> bool:
        """Whether suggestions are on at all."""
        everywhere = self._switches.everywhere
        return self.editor.enabled if everywhere is None else everywhere

    def initialize(self, options: object) -> None:
        """Take the settings of `initializationOptions`; None: none."""
        self._initial = {} if options is None else section(options)
        self.editor = self._applied(Settings(), self._initial)

    def change(self, settings: object) -> None:
        """Take new settings; those that are not named fall back to `initializationOptions`. None changes nothing.

        A setting that changed overrides the user's earlier switch.
        """
        if settings is None:
            return
        before = self.editor
        self.editor = self._applied(self._applied(Settings(), self._initial), section(settings))
        if self.editor.enabled != before.enabled:
            self._switches.forget(None)
        for language in before.languages.keys() | self.editor.languages.keys():
            if self.editor.languages.get(language) != before.languages.get(language):
                self._switches.forget(language)

    def change_folders(self, added: Iterable[str], removed: Iterable[str] = ()) -> None:
        for uri in removed:
            self._folders.pop(uri, None)
        for uri in added:
            path = file_of(uri)
            if path is not None:
                self._folders[uri] = path
        self._real.clear()

    @property
    def folders(self) -> Sequence[Path]:
        return tuple(self._folders.values())

    def folders_of(self, uri: str) -> Sequence[Path]:
        """The innermost workspace folders that hold a document: by its path, and by its resolved path."""
        path = place_of(uri)
        if path is None:
            return ()
        held = {self._real.get(folder, folder): folder for folder in self.folders}
        real = innermost(self._real.get(path, path), held)
        found = (innermost(path, self.folders), held[real] if real else None)
        return tuple(dict.fromkeys(filter(None, found)))

    def look(self, uri: str) -> None:
        """Read the project files for a document if they changed. Touches the disk; may run in any thread."""
        path = place_of(uri)
        for each in filter(None, (path, *self.folders, *self._switches.folders)):
            self._real[each] = _resolved(each)
        for folder in self.folders_of(uri):
            self._tables[folder] = self._projects.get(folder / PROJECT_FILE)

    def forget(self, uri: str) -> None:
        """A document was closed."""
        path = place_of(uri)
        if path:
            self._real.pop(path, None)

    def settings_of(self, uri: str) -> Settings:
        """The settings for a document. A project's file overrides the editor's, but can't switch suggestions on."""
        settings = replace(self.editor, enabled=self.switched_on)
        for folder in self.folders_of(uri):
            table, problem = self._tables.get(folder, ({}, ""))
            if problem:
                self._name([f"{folder / PROJECT_FILE} {problem}; it is ignored."])
            if table:
                changed = self._applied(settings, table, by_project=True)
                settings = replace(changed, enabled=changed.enabled and settings.enabled)
        return settings

    def why_off(self, uri: str, language: str) -> str:
        """A sentence if suggestions are switched off in a document; empty if they are on."""
        settings = self.settings_of(uri)
        if self._switches.everywhere is False or not settings.enabled:
            return "Suggestions are switched off."
        places = self._places(uri)
        by_settings = is_on(settings.languages, language), None
        enabled, folder = self._switches.nearest(places, self._real, language) or by_settings
        if not enabled:
            return f"Suggestions are switched off for {language}{f' in {folder}' if folder else ''}."
        enabled, folder = self._switches.nearest(places, self._real, None) or (True, None)
        return "" if enabled else f"Suggestions are switched off in {folder}."

    def _places(self, uri: str) -> frozenset[PurePath]:
        """The paths of a document, resolved and not."""
        by_name = {_place(uri), place_of(uri) or _place(uri)}
        return frozenset(by_name | {self._real.get(each, each) for each in by_name})

    def _applied(self, settings: Settings, given: object, *, by_project: bool = False) -> Settings:
        changed, problems = applied(settings, given, by_project=by_project)
        self._name([*problems, *map(unknown_language, changed.languages)])
        return changed

    def _name(self, problems: Iterable[str]) -> None:
        for problem in problems:
            if problem and problem not in self._named and len(self._named) < MAX_NAMED:
                self._named.add(problem)
                self._complain(problem)


def _parsed(raw: bytes) -> tuple[dict[str, Any], str]:
    text = as_marked(raw)
    # Of a key with n parts each costs as much as all before it.
    if any(line.count(".") > MAX_DOTS for line in text.split("\n")):
        return {}, f"has a line with more than {MAX_DOTS} dots"
    try:
        return tomllib.loads(text), ""
    except (ValueError, RecursionError) as error:
        return {}, f"is not valid TOML ({error})"


def _refused(reason: str) -> tuple[dict[str, Any], str]:
    return {}, reason


class Switches:
    """The user's switches: for a language or all (None), in a folder or everywhere (None)."""

    def __init__(self) -> None:
        self._enabled: dict[tuple[str | None, PurePath | None], bool] = {}

    def turn(self, *, enabled: bool, language: str | None = None, folder: str | None = None) -> None:
        """Switch suggestions on or off: everywhere, for a language, in a folder (by its URI), or for a language there.

        Raises ValueError where `folder` is no URI.
        """
        if folder is not None and not _HAS_SCHEME.match(folder):
            raise ValueError(f"The folder must be a URI such as file:///home/me/project, not {folder!r}.")
        key = language and language.lower(), None if folder is None else _place(folder)
        self._enabled = {each: held for each, held in self._enabled.items() if each != key} | {key: enabled}

    def forget(self, language: str | None) -> None:
        """Forget the switch of a language, or of all, that holds everywhere; those in folders stay."""
        self._enabled.pop((language and language.lower(), None), None)

    @property
    def everywhere(self) -> bool | None:
        return self._enabled.get((None, None))

    @property
    def folders(self) -> Sequence[Path]:
        """The folders on this machine that have switches."""
        return [folder for _, folder in list(self._enabled) if isinstance(folder, Path)]

    def nearest(
        self, places: frozenset[PurePath], real: Mapping[PurePath, PurePath], language: str | None
    ) -> tuple[bool, PurePath | None] | None:
        """The switch for a language (None: for all) in the innermost folder around a document, with that folder; the
        latest of several. `places`: the document's paths. `real`: resolved paths of folders."""
        holding = [
            (enabled, folder)
            for (each, folder), enabled in reversed(self._enabled.items())
            if is_meant(each, language)
            and (
                folder is None
                or any(place.is_relative_to(named) for place in places for named in (folder, real.get(folder, folder)))
            )
        ]
        return max(holding, key=lambda held: len(held[1].parts) if held[1] else 0, default=None)


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # links in a circle, say
        return path


def _place(uri: str) -> PurePath:
    """The path of a document or folder, for a URI of any scheme."""
    return file_of(uri) or PurePosixPath(unquote(uri.partition("#")[0]))
