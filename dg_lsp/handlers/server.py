"""The language server of one editor window: what its handlers, in the files beside this one, act on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
import time
from collections.abc import Coroutine, Sequence
from typing import Any, cast

from lsprotocol.types import TextDocumentContentChangeEvent
from pygls.exceptions import JsonRpcInternalError
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path

from dg_lsp import __version__
from dg_lsp.backend.chosen_engine import ChosenEngine
from dg_lsp.backend.client import EngineClient, Launch
from dg_lsp.backend.resident import Resident
from dg_lsp.backend.status import Status, StatusBoard
from dg_lsp.config.configuration import Configuration
from dg_lsp.config.settings import EngineSettings
from dg_lsp.documents.documents import Documents, OpenedText
from dg_lsp.documents.projects import Projects
from dg_lsp.edits.analyses import Analyses
from dg_lsp.edits.edits import Edits
from dg_lsp.handlers.menu import Menu
from dg_lsp.protocol.editor import EditorClient
from dg_lsp.protocol.initialize import NAME, ClientHello
from dg_lsp.protocol.lenience import TriggerKinds
from dg_lsp.protocol.progress import ProgressBars
from dg_lsp.protocol.rpc import Rpc
from dg_lsp.suggest.acceptance import Acceptance, SuggestionEvent
from dg_lsp.suggest.in_flight import Debounce, InFlight
from dg_lsp.suggest.next_edits import NextEdits
from dg_lsp.suggest.stats import Stats, stats_path
from dg_lsp.suggest.suggester import Suggester
from dg_lsp.workspace.context import ContextSelector
from dg_lsp.workspace.history import EditHistory
from dg_lsp.workspace.index import WorkspaceIndex
from engine.common.errors import EngineError
from engine.common.messages import EngineState
from engine.common.server_address import server_of

log = logging.getLogger(__name__)


class DgServer(LanguageServer):
    """One session. `launch`: how an engine is started if none runs; the editor's settings fill in what it leaves open.
    `begun`: the process of a start that is under way."""

    def __init__(self, launch: Launch, begun: subprocess.Popen[bytes] | None = None) -> None:
        super().__init__(NAME, __version__, protocol_cls=Rpc)
        self.rpc = cast(Rpc, self.protocol)
        self.editor = EditorClient(self)
        self.documents = Documents(policy=lambda uri, language: self.projects.policy(uri, language))
        self.configuration = Configuration(self.editor.complain)
        self.board = StatusBoard(self._publish)
        self.chosen_engine = ChosenEngine(
            launch, self._engine_settings, choose=self.editor.choose, complain=self.editor.complain
        )
        client = EngineClient(
            self.chosen_engine.launch, client=NAME, on_state=self.engine_is, on_advice=self.editor.advise, begun=begun
        )
        self.resident = Resident(client, self.board)
        self.acceptance = Acceptance(self._count)
        self.history = EditHistory(self.documents)
        self.context = ContextSelector(self.documents, self.history)
        self.index = WorkspaceIndex(self.documents, folders=lambda: self.configuration.folders)
        self.in_flight = InFlight(self.resident, Debounce())
        self.suggester = Suggester(
            documents=self.documents,
            resident=self.resident,
            context=self.context,
            index=self.index,
            in_flight=self.in_flight,
            on_outcome=self.board.shown,
        )
        self.menu = Menu(self.client_register_capability, self.editor.complain)
        self.projects = Projects(
            self.documents,
            self.configuration,
            in_background=self.in_background,
            reads=self.context.names_of,
            renewed=lambda snapshot: self.menu.offer(snapshot.policy.settings),
        )
        self.analyses = Analyses(self.resident)
        self.next_edits = NextEdits(documents=self.documents, resident=self.resident, history=self.history)
        self.edits = Edits(documents=self.documents, resident=self.resident, context=self.context)
        self.trigger_kinds = TriggerKinds()
        self.working = ProgressBars(self.work_done_progress, self.in_background, self.editor.can_show_progress)
        self._configured = asyncio.Event()
        self._stats = Stats(stats_path)
        self._background = set[asyncio.Task[None]]()
        self.rpc.on_lost = self.lose

    def begin(self, hello: ClientHello) -> None:
        """Take the client's settings and capabilities."""
        self.documents.encoding = hello.encoding
        self.configuration.initialize(hello.options)
        self.configuration.change_folders(_folders(hello))
        self.editor.begin(hello)
        self.menu.begin(hello, self.configuration.editor)

    def start(self) -> None:
        """The client is ready: start all background work."""
        self.in_background(self._stats.keep_writing(self.editor.complain))
        self.in_background(self.pull_configuration())
        self.in_background(self._warm_in_time())
        self._tell_off()
        if self.editor.is_copilots:
            self.editor.show_as_copilot(self.board.current)

    async def finish(self) -> None:
        """End the session; the engine keeps running for others."""
        self.acceptance.close()
        self.index.close()
        for task in self._background:
            task.cancel()
        await self.resident.close()
        with contextlib.suppress(EngineError):
            self._stats.write()

    def open(self, document: OpenedText) -> None:
        """Open a document; an open one of the same URI is replaced."""
        self.forget(document.uri)
        self.documents.open(document)
        self.index.opened(document.uri)

    def change(self, uri: str, version: int | None, events: Sequence[TextDocumentContentChangeEvent]) -> None:
        """Apply a change to a document. If that fails, its text is forgotten and requested again."""
        try:
            change = self.documents.change(uri, version, events)
            if change is None:
                log.info("A change to a document that is not open was ignored.")
                return
            self.edits.tracking.changed(change)
            self.acceptance.changed(change)
            self.next_edits.changed(change)
            self.in_flight.debounce.key(time.monotonic() * 1000)
            self.history.changed(change)
            self.index.changed()
            self.suggester.changed(change)
        except Exception:  # whatever it is, some may have heard of the change and others not
            self.lose(uri)
            raise
        self.projects.look_soon(uri)

    def close(self, uri: str) -> None:
        """Close a document."""
        self.forget(uri)
        self.documents.close(uri)

    def forget(self, uri: str) -> None:
        """Drop what was kept for a document that was closed, or whose text is lost."""
        self.suggester.closed(uri)
        self.context.forget(uri)
        self.index.closed(uri)
        self.next_edits.closed(uri)
        self.acceptance.closed(uri)
        self.edits.tracking.forget(uri)

    def lose(self, uri: str | None) -> None:
        """A change to a document or notebook was lost; None: nobody knows to which. Forget its text, with a notebook's
        order of cells, and request it again."""
        wanted = dict[str, None]()
        if uri is not None and self.documents.notebooks.is_open(uri):
            wanted[uri] = None
        for lost in self.documents.uris() if uri is None else self.documents.notebooks.cells(uri) or [uri]:
            self.forget(lost)
            snapshot = self.documents.forget(lost)
            if snapshot:
                wanted[lost if lost == uri else snapshot.file_uri] = None
        for each in wanted:
            self.documents.notebooks.close(each)
            self.editor.reopen(each)

    def refresh(self) -> None:
        """Apply changed settings or switches."""
        self._tell_off()
        # What was shown last, or was not, was by what held before.
        self.board.shown("", "")
        self.documents.renew()
        self.menu.offer(self.configuration.editor)
        if self.resident.is_ready:
            self.in_background(self.chosen_engine.compare(self.resident))
        elif self.configuration.switched_on:
            self.resident.warm()

    def engine_is(self, state: EngineState) -> None:
        self.board.engine(state, server_of(self.resident.client.model))
        if state.name in ("off", "starting", "error"):
            # Nothing that is known of an engine holds for the next one.
            self.resident.forget()
            self.analyses.forget()
            self.in_flight.debounce.forget_answers()
            self.chosen_engine.other = ""
        elif state.name != "loading":
            self.in_background(self.chosen_engine.compare(self.resident))

    async def pull_configuration(self) -> None:
        try:
            told = await self.editor.configuration()
            # Two names are asked for, and what is not there under one of them may be an empty table.
            for table in [each for each in told if each] or [each for each in told if each in ({}, [])][:1]:
                self.configuration.change(table)
        finally:
            self._configured.set()
        self.refresh()

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something in the background until it ends or the session does."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def report_server_error(self, error: Exception, source: type[Exception]) -> None:
        """Log an error; pygls would show a popup."""
        if source is JsonRpcInternalError:
            log.error("%s", error)

    async def _settings_known(self) -> None:
        """Wait for the client's settings, for `settings_s` at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.resident.client.timeouts.settings_s):
                await self._configured.wait()

    def _tell_off(self) -> None:
        self.board.off("" if self.configuration.switched_on else "Suggestions are switched off.")

    async def _engine_settings(self) -> EngineSettings:
        await self._settings_known()
        return self.configuration.editor.engine

    async def _warm_in_time(self) -> None:
        await self._settings_known()
        self.refresh()

    def _publish(self, status: Status) -> None:
        self.editor.show(status)
        self.working.show_load(status)

    def _count(self, language: str, event: SuggestionEvent, chars: int) -> None:
        if self.configuration.editor.stats:
            self._stats.add(language, event, chars)


def _folders(hello: ClientHello) -> list[str]:
    given = hello.said("workspaceFolders")
    said = [ClientHello(each).said("uri") for each in cast(list[object], given)] if isinstance(given, list) else []
    if folders := [each for each in said if isinstance(each, str)]:
        return folders
    root, path = hello.said("rootUri"), hello.said("rootPath")
    if not (isinstance(root, str) and root):
        root = from_fs_path(path) if isinstance(path, str) and path else None
    return [root] if root else []
