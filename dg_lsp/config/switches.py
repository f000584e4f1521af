"""What was switched on or off by hand: everything, a language, a folder, a language in a folder."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath, PurePosixPath
from urllib.parse import unquote

from dg_lsp.config.exclusion import file_of

_HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    enabled: bool
    language: str | None
    """None: all of them."""
    folder: PurePath | None
    """None: everywhere."""


class Switches:
    """Remembers how each was turned last."""

    def __init__(self) -> None:
        self._held: dict[tuple[str | None, PurePath | None], Switch] = {}

    def turn(self, *, enabled: bool, language: str | None, folder: str | None) -> None:
        """Turn one. Raises ValueError where `folder` is no URI."""
        if folder is not None and not _HAS_SCHEME.match(folder):
            raise ValueError(f"The folder must be a URI such as file:///home/me/project, not {folder!r}.")
        place = None if folder is None else _place(folder)
        self._held[language, place] = Switch(enabled=enabled, language=language, folder=place)

    def forget(self, language: str | None) -> None:
        """As if that language, or everything, had never been switched everywhere; folders keep theirs."""
        self._held.pop((language, None), None)

    @property
    def everywhere(self) -> Switch | None:
        """The one for everything, if it was turned."""
        return self._held.get((None, None))

    def nearest(self, uri: str, language: str | None) -> Switch | None:
        """Of those for a language, or for all of them, the one that is nearest to a document."""
        place = _place(uri)
        holding = [
            held
            for held in self._held.values()
            if held.language == language and (held.folder is None or place.is_relative_to(held.folder))
        ]
        return max(holding, key=lambda held: len(held.folder.parts) if held.folder else 0, default=None)


def _place(uri: str) -> PurePath:
    """A path that is inside another one where the document or folder is; of any scheme."""
    return file_of(uri) or PurePosixPath(unquote(uri.partition("#")[0]))
