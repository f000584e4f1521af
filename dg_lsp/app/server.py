"""The language server: what one editor window talks to. The features themselves are in `routes`."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import subprocess
import time
from collections.abc import Coroutine, Sequence
from typing import Any, cast

import psutil
from lsprotocol.types import (
    ConfigurationItem,
    ConfigurationParams,
    InitializeParams,
    LogMessageParams,
    MessageActionItem,
    MessageType,
    NotebookDocumentFilterWithNotebook,
    NotebookDocumentSyncOptions,
    ShowMessageRequestParams,
    TextDocumentContentChangeEvent,
    TextDocumentItem,
)
from pygls.capabilities import ServerCapabilitiesBuilder
from pygls.exceptions import JsonRpcException, JsonRpcInternalError
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path

from dg_lsp import __version__
from dg_lsp.app.menu import Menu
from dg_lsp.backend.chosen_engine import ChosenEngine
from dg_lsp.backend.client import EngineClient, Launch
from dg_lsp.backend.resident import Resident
from dg_lsp.backend.status import Status, StatusBoard
from dg_lsp.config.configuration import Configuration
from dg_lsp.config.sections import SECTIONS
from dg_lsp.config.settings import EngineSettings
from dg_lsp.documents.documents import Documents
from dg_lsp.documents.projects import Projects
from dg_lsp.edits.analyses import Analyses
from dg_lsp.edits.edits import Edits
from dg_lsp.protocol.copilot import is_copilots
from dg_lsp.protocol.initialize import ANY_NOTEBOOK, NAME
from dg_lsp.protocol.messages import DID_CHANGE_STATUS, REOPEN, STATUS
from dg_lsp.protocol.progress import ProgressBars
from dg_lsp.protocol.rpc import Rpc, converter
from dg_lsp.suggest.acceptance import Acceptance, Event
from dg_lsp.suggest.next_edits import NextEdits
from dg_lsp.suggest.stats import Stats, StatsError, stats_path
from dg_lsp.suggest.suggester import Suggester
from engine.core.server_address import server_of
from engine.ipc.messages import EngineState

log = logging.getLogger(__name__)

NOTEBOOKS = NotebookDocumentSyncOptions(notebook_selector=[NotebookDocumentFilterWithNotebook(notebook=ANY_NOTEBOOK)])
WRITE_STATS_S = 5.0
CONFIGURATION_S = 10.0
"""For a client to tell its settings when asked."""
LAUNCH_S = 2.0
"""How long the start of an engine, which may be set up by these settings, waits for them."""


class DgServer(LanguageServer):
    """One session. `launch` says how the engine is started if none runs; the editor's settings fill its gaps. `begun`:
    the start of one that is under way."""

    def __init__(self, launch: Launch, begun: subprocess.Popen[bytes] | None = None) -> None:
        super().__init__(
            NAME, __version__, notebook_document_sync=NOTEBOOKS, protocol_cls=Rpc, converter_factory=converter
        )
        self.rpc = cast(Rpc, self.protocol)
        self.documents = Documents(policy=lambda uri, language: self.projects.policy(uri, language))
        self.configuration = Configuration(self.complain)
        self.board = StatusBoard(self._publish)
        self.chosen_engine = ChosenEngine(launch, self._engine_settings, choose=self._choose, complain=self.complain)
        client = EngineClient(self.chosen_engine.launch, client=NAME, on_state=self.engine_is, begun=begun)
        self.resident = Resident(client, self.board)
        self.acceptance = Acceptance(self._count)
        self.suggester = Suggester(
            documents=self.documents,
            resident=self.resident,
            told=self.board.shown,
            folders=lambda: self.configuration.folders,
        )
        self.menu = Menu(self.client_register_capability, self.complain)
        self.projects = Projects(
            self.documents,
            self.configuration,
            in_background=self.in_background,
            reads=self.suggester.context_selector.reading,
            renewed=lambda snapshot: self.menu.offer(snapshot.policy.settings),
        )
        self.analyses = Analyses(self.resident)
        self.next_edits = NextEdits(
            documents=self.documents,
            resident=self.resident,
            history=self.suggester.context_selector.history,
        )
        self.edits = Edits(
            documents=self.documents, resident=self.resident, context_selector=self.suggester.context_selector
        )
        self.working = ProgressBars(self.work_done_progress, self.in_background, self._shows_progress)
        self.wants_status = False
        self.is_copilots = False
        """Whether it is told how things stand as Copilot's clients are."""
        self.editor_pid: int | None = None
        """The process whose end is the session's, too."""
        self._can_reopen = False
        self._configured = asyncio.Event()
        self._stats = Stats(stats_path())
        self._background = set[asyncio.Task[None]]()
        self.rpc.on_lost = self.lose

    def begin(self, params: InitializeParams) -> None:
        chosen = ServerCapabilitiesBuilder.choose_position_encoding(params.capabilities)
        self.documents.encoding = "utf-8" if chosen == "utf-8" else "utf-32" if chosen == "utf-32" else "utf-16"
        self.configuration.initialize(params.initialization_options)
        self.configuration.change_folders(_folders(params))
        # A process that is not there is one of another machine or container.
        self.editor_pid = params.process_id if params.process_id and psutil.pid_exists(params.process_id) else None
        experimental = params.capabilities.experimental
        announced = cast(dict[str, object], experimental) if isinstance(experimental, dict) else {}
        self.wants_status = announced.get("dgStatus") is True
        self._can_reopen = announced.get("dgReopen") is True
        self.is_copilots = is_copilots(params.initialization_options)

    def start(self) -> None:
        """The client is ready: start what goes on by itself."""
        self.in_background(self._write_stats())
        self.in_background(self.pull_configuration())
        self.in_background(self._warm_in_time())
        self._tell_off()
        if self.is_copilots:
            self.tell_as_copilot()

    def tell_as_copilot(self) -> None:
        """Tell the client how things stand, now and from now on, as Copilot's language server does."""
        self.is_copilots = True
        self.rpc.tell(DID_CHANGE_STATUS, _as_copilot(self.board.current))

    async def finish(self) -> None:
        """The session is over; the engine goes on for others."""
        self.acceptance.close()
        self.suggester.elsewhere.close()
        for task in self._background:
            task.cancel()
        await self.resident.close()
        with contextlib.suppress(StatsError):
            self._stats.write()

    def open(self, document: TextDocumentItem) -> None:
        """Take a document in; what was known of one of that name is forgotten."""
        self.forget(document.uri)
        self.documents.open(document)
        self.suggester.elsewhere.opened(document.uri)

    def change(self, uri: str, version: int, events: Sequence[TextDocumentContentChangeEvent]) -> None:
        """A document changed. Where that fails, its text is no longer known."""
        try:
            change = self.documents.change(uri, version, events)
            if change is None:
                log.info("A change to a document that is not open was ignored.")
                return
            self.edits.tracking.changed(change)
            self.acceptance.changed(change)
            self.next_edits.changed(change)
            self.suggester.changed(change, time.monotonic() * 1000)
        except Exception:
            self.lose(uri)
            raise
        self.projects.look_soon(uri)

    def close(self, uri: str) -> None:
        """The editor let go of a document."""
        self.forget(uri)
        self.documents.close(uri)

    def forget(self, uri: str) -> None:
        """A document was closed, or its text is no longer known."""
        self.suggester.closed(uri)
        self.next_edits.closed(uri)
        self.acceptance.closed(uri)
        self.edits.tracking.forget(uri)

    def lose(self, uri: str | None) -> None:
        """A change to a document or notebook, or to nobody knows which (None), was lost: forget its text and ask for it
        again. With the text of a notebook goes the order of its cells."""
        wanted = dict[str, None]()
        if uri is not None and self.documents.is_notebook(uri):
            wanted[uri] = None
        for lost in self.documents.uris() if uri is None else self.documents.cells(uri) or [uri]:
            snapshot = self.documents.get(lost)
            self.forget(lost)
            self.documents.forget(lost)
            if snapshot:
                wanted[lost if lost == uri else snapshot.file_uri] = None
        for each in wanted:
            self.documents.close_notebook(each)
            if self._can_reopen:
                self.rpc.tell(REOPEN, {"uri": each})
            else:
                sentence = f"A change to {each} could not be read: close the document and open it again."
                self.window_log_message(LogMessageParams(type=MessageType.Warning, message=sentence))

    def refresh(self) -> None:
        """Settings or switches changed."""
        self._tell_off()
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
            self.suggester.debounce.forget_answers()
            self.chosen_engine.other = ""
        elif state.name != "loading":
            self.in_background(self.chosen_engine.compare(self.resident))

    async def pull_configuration(self) -> None:
        try:
            for table in await self._asked_configuration():
                if table:
                    self.configuration.change(table)
        finally:
            self._configured.set()
        self.refresh()

    async def _asked_configuration(self) -> Sequence[Any]:
        workspace = self.client_capabilities.workspace
        if workspace is None or not workspace.configuration:
            return ()
        asked = ConfigurationParams(items=[ConfigurationItem(section=section) for section in SECTIONS])
        try:
            async with asyncio.timeout(CONFIGURATION_S):
                return await self.workspace_configuration_async(asked) or ()
        except (JsonRpcException, TimeoutError):
            return ()

    def complain(self, sentence: str) -> None:
        """Put a sentence into the client's log, which shows nothing by itself."""
        log.warning("%s", sentence)
        self.window_log_message(LogMessageParams(type=MessageType.Warning, message=sentence))

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something until it ends or the session does."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def report_server_error(self, error: Exception, source: type[Exception]) -> None:
        """pygls would show a popup."""
        if source is JsonRpcInternalError:
            log.error("%s", error)

    async def _settings_known(self) -> None:
        """Wait for the settings that the client was asked for; one that never answers costs little."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAUNCH_S):
                await self._configured.wait()

    def _tell_off(self) -> None:
        self.board.off("" if self.configuration.switched_on else "Suggestions are switched off.")

    async def _engine_settings(self) -> EngineSettings:
        await self._settings_known()
        return self.configuration.editor.engine

    async def _choose(self, sentence: str, choices: tuple[str, ...]) -> str:
        """What the user chooses; nothing where the client can't ask, or nobody answers."""
        window = self.client_capabilities.window
        if window is None or window.show_message is None:
            return ""
        actions = [MessageActionItem(title=choice) for choice in choices]
        asked = ShowMessageRequestParams(type=MessageType.Info, message=sentence, actions=actions)
        with contextlib.suppress(JsonRpcException):
            chosen = await self.window_show_message_request_async(asked)
            return chosen.title if chosen else ""
        return ""

    async def _warm_in_time(self) -> None:
        await self._settings_known()
        self.refresh()

    def _publish(self, status: Status) -> None:
        if self.wants_status:
            self.rpc.tell(STATUS, dataclasses.asdict(status))
        if self.is_copilots:
            self.rpc.tell(DID_CHANGE_STATUS, _as_copilot(status))
        self.working.show_load(status)

    def _shows_progress(self) -> bool:
        window = self.client_capabilities.window
        return bool(window and window.work_done_progress)

    def _count(self, language: str, event: Event, chars: int) -> None:
        if self.configuration.editor.stats:
            self._stats.add(language, event, chars)

    async def _write_stats(self) -> None:
        while True:
            await asyncio.sleep(WRITE_STATS_S)
            try:
                await asyncio.to_thread(self._stats.write)
            except StatsError as error:
                self.complain(str(error))
                return


def _as_copilot(status: Status) -> dict[str, Any]:
    kind = "Error" if status.state == "error" else "Inactive" if status.state == "off" else "Normal"
    return {"busy": status.state in ("starting", "loading", "busy"), "kind": kind, "message": status.message}


def _folders(params: InitializeParams) -> list[str]:
    if params.workspace_folders:
        return [folder.uri for folder in params.workspace_folders]
    if params.root_uri:
        return [params.root_uri]
    uri = from_fs_path(params.root_path) if params.root_path else None
    return [uri] if uri else []
