"""Policies of open documents by their project's files: settings, and whether the model may see them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from dg_lsp.config.configuration import Configuration
from dg_lsp.config.exclusion import Exclusions, Seen
from dg_lsp.config.looking import SOON_S, Looking
from dg_lsp.documents.documents import Documents, Policy, Snapshot


class Projects:
    """Keeps policies up to date with the projects' files, which are read in threads.

    `reads` is called in a thread with each document whose project is looked at; `renewed` on the event loop with one
    document of each file whose policy was renewed. `in_background` runs a look that nobody waits for.
    """

    def __init__(
        self,
        documents: Documents,
        configuration: Configuration,
        *,
        in_background: Callable[[Coroutine[Any, Any, None]], None],
        reads: Callable[[Snapshot], object],
        renewed: Callable[[Snapshot], object],
    ) -> None:
        self._documents = documents
        self._configuration = configuration
        self._in_background = in_background
        self._reads = reads
        self._renewed = renewed
        self._exclusions = Exclusions()
        self._looking = Looking(self._look, self._looked)
        self._looks_soon = False

    def policy(self, uri: str, language: str) -> Policy:
        """A document's policy by the last look at its project."""
        excluded = self._exclusions.why_excluded(uri)
        why_off = f"The document is excluded from the model: {excluded}." if excluded else ""
        return Policy(
            settings=self._configuration.settings_of(uri),
            off=why_off or self._configuration.why_off(uri, language),
            may_show=not excluded,
        )

    async def look(self, uri: str) -> None:
        """Wait until a document's policy is fresh and no other document's is outdated."""
        self.look_soon(uri)
        await self._looking.at(self._documents.file_uri(uri), *self._outdated(uri))

    def look_soon(self, uri: str) -> None:
        """Renew all policies soon, unless that of a document is fresh; the current key is answered first."""
        if not self._looking.is_fresh(self._documents.file_uri(uri)) and not self._looks_soon:
            self._looks_soon = True
            asyncio.get_running_loop().call_later(SOON_S, self._look_again)

    async def snapshot(self, uri: str) -> Snapshot | None:
        """A document with a recent policy; None where it is not open, or changes during the look."""
        before = self._documents.get(uri)
        if before:
            self.look_soon(uri)
            await self._looking.at(*self._outdated(uri))
        now = self._documents.get(uri)
        return now if before and now and now.lines is before.lines else None

    def look_anew(self) -> None:
        """Project files may have changed: look at all of them again."""
        for held in self._documents.others(""):
            self._looking.forget(held.file_uri)

    def forget(self, uri: str) -> None:
        """A file was closed, or belongs to another project now."""
        self._exclusions.forget(uri)
        self._configuration.forget(uri)
        self._looking.forget(uri)

    def forget_all(self) -> None:
        """The workspace folders changed: files may belong to other projects."""
        for held in self._documents.others(""):
            self.forget(held.file_uri)
        self._documents.renew()

    def _outdated(self, uri: str) -> list[str]:
        """The files, of a document and of others that may be its context, whose last look is too old."""
        shown = (other.file_uri for other in self._documents.others(uri) if other.policy.may_show)
        each_once = dict.fromkeys((self._documents.file_uri(uri), *shown))
        return [each for each in each_once if not self._looking.is_trusted(each)]

    def _look_again(self) -> None:
        self._looks_soon = False
        held = dict.fromkeys(each.file_uri for each in self._documents.others(""))
        # Nobody reports when these are no longer remembered, and some were only queried by clients.
        for uri in self._exclusions.uris:
            if uri not in held:
                self.forget(uri)
        self._in_background(self._looking.at(*held))

    def _looked(self, file_uri: str) -> None:
        self._documents.renew(file_uri)
        for snapshot in self._documents.of_file(file_uri)[:1]:
            self._renewed(snapshot)

    def _look(self, file_uri: str, seen: Seen) -> None:
        self._configuration.look(file_uri)
        self._exclusions.look(file_uri, self._configuration.folders, seen)
        for snapshot in self._documents.of_file(file_uri):
            self._reads(snapshot)
