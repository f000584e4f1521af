"""What projects say of documents, in a session's server whose client is played by a list of messages."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from dg_lsp.config import looking
from dg_lsp.config.exclusion import Seen
from dg_lsp.config.looking import AT_ONCE, LOOK_AGAIN_S, TRUSTED_S, Looking
from dg_lsp.documents.documents import REMEMBERED_AFTER_CLOSING
from dg_lsp.handlers.server import DgServer
from tests.dg_lsp.handlers.test_server import URI, Session


@pytest.fixture
def session() -> Session:
    return Session()


class Disk:
    """What looks at files find: a document is excluded where `excludes` says why, and `answers` holds them up."""

    def __init__(self, server: DgServer) -> None:
        self.now_s = 0.0
        self.excludes = ""
        self.looked_at: list[str] = []
        self.answers = threading.Event()
        self.answers.set()
        self._server = server
        server.projects._looking = Looking(self._look, server.projects._looked, lambda: self.now_s)

    def _look(self, uri: str, seen: Seen) -> None:
        self.answers.wait(10)
        time.sleep(0.0 if uri == URI else 0.1)
        self.looked_at.append(uri)
        self._server.projects._exclusions._reasons[uri] = self.excludes


@pytest.mark.asyncio
async def test_a_key_waits_for_no_look_while_the_last_one_is_young(session):
    server, disk = session.server, Disk(session.server)
    await session.begin()
    await session.open("a = 1\n")
    assert (await server.projects.snapshot(URI)).policy.may_show
    disk.excludes = "it says so"
    disk.answers.clear()
    disk.now_s += TRUSTED_S - 0.1
    assert (await server.projects.snapshot(URI)).policy.may_show
    assert disk.looked_at == [URI]
    async with asyncio.timeout(10):
        while server.documents.get(URI).policy.may_show:
            await asyncio.sleep(0.01)
            disk.answers.set()


@pytest.mark.asyncio
async def test_a_key_sees_no_document_by_a_look_that_is_old(session):
    server, disk = session.server, Disk(session.server)
    other = "file:///w/b.py"
    await session.begin()
    for uri in (URI, other):
        await session.open("a = 1\n", uri)
        await server.projects.look(uri)
    disk.excludes = "it says so"
    disk.now_s += TRUSTED_S
    assert not (await server.projects.snapshot(URI)).policy.may_show
    assert not server.documents.get(other).policy.may_show


@pytest.mark.asyncio
async def test_nothing_is_kept_of_files_that_are_no_longer_remembered_or_were_only_asked_about(session):
    server, disk = session.server, Disk(session.server)
    projects = server.projects
    await session.begin()
    for number in range(REMEMBERED_AFTER_CLOSING + 5):
        uri = f"file:///w/{number}.py"
        await session.open("a = 1\n", uri)
        await session.change("b", uri)
        await session.send("textDocument/didClose", {"textDocument": {"uri": uri}})
        await projects.look(f"file:///w/never-open-{number}.py")
    disk.now_s += TRUSTED_S
    projects.look_soon(URI)
    async with asyncio.timeout(10):
        while len(projects._exclusions.uris) > REMEMBERED_AFTER_CLOSING:
            await asyncio.sleep(0.01)
            projects.look_soon(URI)
    held = {each.uri for each in server.documents.others("")}
    assert held.issuperset(projects._exclusions.uris)
    assert held.issuperset(projects._looking._looked_at_s)


@pytest.mark.asyncio
async def test_a_key_is_answered_before_files_are_looked_at(session):
    server, disk = session.server, Disk(session.server)
    await session.begin()
    await session.open("a = 1\n")
    await server.projects.look(URI)
    disk.now_s += LOOK_AGAIN_S
    await session.change("x")
    await server.projects.snapshot(URI)
    assert disk.looked_at == [URI]
    async with asyncio.timeout(10):
        while len(disk.looked_at) < 2:
            await asyncio.sleep(0.01)


@pytest.mark.asyncio
async def test_a_file_that_the_editor_says_changed_is_looked_at_before_the_next_key(session, tmp_path):
    server, file = session.server, tmp_path / ".dgignore"
    uri = (tmp_path / "a.py").as_uri()
    await session.begin()
    await session.open("a = 1\n", uri)
    assert (await server.projects.snapshot(uri)).policy.may_show
    file.write_text("a.py\n")
    assert (await server.projects.snapshot(uri)).policy.may_show
    await session.send("workspace/didChangeWatchedFiles", {"changes": [{"uri": file.as_uri(), "type": 1}]})
    assert not (await server.projects.snapshot(uri)).policy.may_show


async def known(server: DgServer, uris: list[str]) -> None:
    server.projects.look_soon(uris[0])
    async with asyncio.timeout(20):
        while not all(map(server.projects._looking.is_fresh, uris)):
            await asyncio.sleep(0.01)


@pytest.mark.asyncio
async def test_a_key_beside_many_documents_starts_few_threads_and_reads_their_folder_once(
    session, tmp_path, monkeypatch
):
    monkeypatch.setattr(looking, "LOOK_AGAIN_S", 60.0)
    server, uris = session.server, [(tmp_path / f"{number}.py").as_uri() for number in range(200)]
    await session.begin()
    for uri in uris:
        await session.open("a = 1\n", uri)
    await known(server, uris)
    patterns, start = server.projects._exclusions._patterns, threading.Thread.start
    read, started = list[str](), list[str]()
    monkeypatch.setattr(threading.Thread, "start", lambda thread: (started.append(thread.name), start(thread)))
    monkeypatch.setattr(patterns, "get", lambda path: read.append(path.name) or "")
    server.projects.look_anew()
    await session.change("x", uris[0])
    await known(server, uris)
    assert started.count("look at files") <= AT_ONCE
    assert read.count(".dgignore") == 1
