"""What goes wrong on the editor's side of the server: it answers or recovers, and what comes later succeeds."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import zlib

import psutil
import pytest
from lsprotocol.types import MessageActionItem, ShowMessageRequestParams
from pygls.exceptions import JsonRpcException

from dg_lsp.backend.chosen_engine import LATER, REPLACE
from dg_lsp.protocol.framing import frame, messages
from engine.common.version import __version__
from tests.e2e.cases import ADD, CALL, DEEP, END, FAR, SLOW, text_of
from tests.e2e.test_start import HELLO, send, served
from tests.e2e.window import Window, recorded, until, window
from tests.engine.processes import WAIT_S, home, running

pytestmark = pytest.mark.asyncio

PATIENT = {"inline": {"deadline_ms": 20_000}}
QUICK = {"inline": {"deadline_ms": 2_000}}
INLINE = "textDocument/inlineCompletion"


def raw(held: Window, data: bytes) -> None:
    """Bytes as they are."""
    held.client.server.stdin.write(data)


def unread(held: Window, method: str, params: object) -> None:
    """A notification that need not be what the protocol says."""
    raw(held, frame(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()))


async def still_works(held: Window) -> None:
    held.open(ADD)
    assert await held.ghost() == "a + b"


async def pid_of(held: Window) -> int:
    """The engine's."""
    return (await held.status(engine=True))["engine"]["pid"]


async def replaced(held: Window, first: int) -> None:
    """Another engine knows what was typed meanwhile, and nothing is left of the first one."""
    held.open(CALL)
    held.editor.type("compute(")

    async def answered() -> bool:
        return await held.ghost() == "first, second)"

    await until(answered, "a suggestion of a new engine")
    assert await pid_of(held) != first
    assert not psutil.pid_exists(first) or psutil.Process(first).status() == psutil.STATUS_ZOMBIE


async def refused(held: Window, method: str, params: object, code: int) -> None:
    with pytest.raises(JsonRpcException) as caught:
        await asyncio.wait_for(held.ask(method, params)[1], WAIT_S)
    assert caught.value.code == code
    assert caught.value.data is None
    assert "Traceback" not in str(caught.value)


async def test_malformed_messages(shared):
    async with window(shared, options=PATIENT) as held:
        for data in (
            frame(b"{"),
            frame(b"\xff\xfe"),
            frame(b"[" * 100_000),
            frame(b"[]"),
            frame(b"3"),
            frame(b"{}"),
            frame(b'{"jsonrpc": "2.0"}'),
            frame(b'{"jsonrpc": "2.0", "method": 3}'),
            frame(b'{"jsonrpc": "2.0", "method": "textDocument/didOpen"}'),
            frame(b'{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": {"uri": 1}}}'),
            frame(b'{"jsonrpc": "2.0", "id": 99999, "result": null}'),
            frame(b'{"jsonrpc": "2.0", "id": {}, "error": 3}'),
            b"Content-Length: nonsense\r\n\r\n{}",
            b"Content-Length: -5\r\n\r\n",
            b"\r\n\r\n\r\n",
            b"GET / HTTP/1.1\r\n\r\n",
        ):
            raw(held, data)
        for method in (INLINE, "textDocument/didOpen", "workspace/executeCommand", "dg/setEnabled"):
            number, answer = held.ask("dg/status", {})
            await answer
            message = {"jsonrpc": "2.0", "id": number + 10_000, "method": method, "params": {"textDocument": 3}}
            raw(held, frame(json.dumps(message).encode()))
        await still_works(held)


async def test_requests_that_can_not_be_served_are_refused(shared):
    async with window(shared, options=PATIENT) as held:
        await refused(held, "dg/unknown", {}, -32601)
        await refused(held, "$/unknown", None, -32601)
        await refused(held, "initialize", {"processId": None, "rootUri": None, "capabilities": {}}, -32600)
        await refused(held, "workspace/executeCommand", {"command": "rm"}, -32602)
        assert (
            await held.request("workspace/executeCommand", {"command": "dg.accepted", "arguments": ["nonsense"]})
            is None
        )
        held.notify("$/unknown", {})
        held.notify("workspace/didChangeWatchedFiles", {"changes": []})
        await still_works(held)


async def test_messages_out_of_order(shared):
    async with window(shared, options=PATIENT) as held:
        nowhere = {"uri": "file:///never/opened.py", "version": 7}
        held.notify("textDocument/didChange", {"textDocument": nowhere, "contentChanges": [{"text": "x"}]})
        held.notify("textDocument/didClose", {"textDocument": nowhere})
        asked = {"textDocument": nowhere, "position": {"line": 0, "character": 0}, "context": {"triggerKind": 2}}
        assert await held.request(INLINE, asked) is None
        held.open(ADD, "twice.py")
        held.open(END, "twice.py")
        assert await held.ghost() == "line"
        unread(held, "$/cancelRequest", {"id": 424242})
        unread(held, "$/cancelRequest", {"id": None})
        unread(held, "window/workDoneProgress/cancel", {"token": "unknown"})
        await still_works(held)


async def test_ranges_outside_of_the_text_are_mapped_into_it(shared):
    async with window(shared, options=PATIENT) as held:
        held.open("def add(a, b):\n    ▮")
        buffer = held.editor.buffer

        def change(start: tuple[int, int], end: tuple[int, int], text: str) -> None:
            spots = [{"line": line, "character": character} for line, character in (start, end)]
            edit = {"range": {"start": spots[0], "end": spots[1]}, "text": text}
            buffer.version += 1
            document = {"uri": buffer.uri, "version": buffer.version}
            unread(held, "textDocument/didChange", {"textDocument": document, "contentChanges": [edit]})

        change((99, 0), (120, 7), "return ")
        change((-3, -1), (0, -2), "")
        change((1, 400), (1, 4), "return ")
        asked = {"textDocument": {"uri": buffer.uri}, "position": {"line": 1, "character": 11}}
        found = await held.request(INLINE, {**asked, "context": {"triggerKind": 2}})
        assert found["items"][0]["insertText"] == "a + b\n"


async def test_a_change_that_can_not_be_read_forgets_the_document_until_all_of_it_comes(shared):
    async with window(shared, options=PATIENT) as held:
        held.open(ADD, "a.py")
        document = {"uri": held.editor.buffer.uri, "version": 2}
        unread(held, "textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": 3}]})
        assert await held.ghost() is None
        whole = {"textDocument": {**document, "version": 3}, "contentChanges": [{"text": held.editor.buffer.text}]}
        unread(held, "textDocument/didChange", whole)
        assert await held.ghost() == "a + b"
        unread(held, "textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": 3}]})
        assert await held.ghost() is None
        held.open(ADD, "a.py")
        assert await held.ghost() == "a + b"


def range_in_line(line: int, start: int, end: int) -> dict[str, object]:
    return {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}


def notification(method: str, params: object) -> bytes:
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")


def change(text: str) -> bytes:
    document = {"uri": "file:///untitled/a.py", "version": 9}
    edit = {"range": range_in_line(0, 0, 0), "text": text}
    return notification("textDocument/didChange", {"textDocument": document, "contentChanges": [edit]})


LOST = {
    "cut short": frame(change("x")[:-2]),
    "not UTF-8": frame(change("x?").replace(b"x?", b"\xff\xfe")),
    "another encoding": frame(change("x").decode().encode("utf-16")),
    "a batch": frame(b"[" + change("x") + b"]"),
    "no JSON-RPC": frame(change("x").replace(b"2.0", b"1.0").replace(b'textDocument"', b'document"')),
    "of no document": frame(change("x").replace(b"uri", b"url")),
    "longer than announced": frame(change("x")).replace(b"Content-Length: ", b"Content-Length: -"),
    "shorter than announced": frame(change("x")[:50]).replace(b"Content-Length: 5", b"Content-Length: 9")
    + frame(change("x")),
}


@pytest.mark.parametrize("lost", LOST)
async def test_a_message_that_is_lost_may_have_been_a_change_to_any_document(shared, lost):
    given = recorded("vscode") | {"experimental": {"dgReopen": True}}
    async with window(shared, given, options=PATIENT) as held:
        asked = list[str]()
        held.client.feature("dg/reopen")(lambda params: asked.append(params["uri"]))
        held.open(ADD, "b.py")
        held.open(ADD, "a.py")
        await held.status()
        raw(held, LOST[lost])
        for name in ("b.py", "a.py"):
            held.editor.path = name
            assert await held.ghost() is None
        assert asked == ["file:///untitled/b.py", "file:///untitled/a.py"]
        held.open(ADD, "a.py")
        assert await held.ghost() == "a + b"


async def test_an_editor_that_is_asked_for_a_document_sends_all_of_it_and_goes_on(shared):
    given = recorded("vscode") | {"experimental": {"dgReopen": True}}
    async with window(shared, given, options=PATIENT) as held:

        def send_again(params: dict[str, str]) -> None:
            buffer = held.editor.buffer
            assert params["uri"] == buffer.uri
            held.notify("textDocument/didClose", {"textDocument": {"uri": buffer.uri}})
            document = {"uri": buffer.uri, "languageId": "python", "version": buffer.version, "text": buffer.text}
            held.notify("textDocument/didOpen", {"textDocument": document})

        held.client.feature("dg/reopen")(send_again)
        held.open(ADD, "a.py")
        raw(held, LOST["cut short"])
        # Typed before anything is known to be wrong.
        held.editor.type("a")

        async def is_known() -> bool:
            told = (await held.status(uri=held.editor.buffer.uri))["document"]
            return told.get("crc32") == zlib.crc32(held.editor.buffer.text.encode())

        await until(is_known, "the text as it is")
        assert await held.ghost() == " + b"


async def test_an_editor_that_can_not_be_asked_is_told_once(shared):
    given = recorded("vscode") | {"experimental": {}}
    async with window(shared, given, options=PATIENT) as held:
        held.open(ADD, "a.py")
        for _ in range(3):
            raw(held, LOST["cut short"])
        assert await held.ghost() is None
        (told,) = held.client.log_messages
        assert told.message.startswith(f"A change to {held.editor.buffer.uri} could not be read")


async def test_half_a_surrogate_pair_as_it_is_becomes_a_replacement(shared):
    async with window(shared, options=PATIENT) as held:
        held.open(ADD, "a.py")
        await held.status()
        # On the cursor's line, before it: its offset in UTF-16 is worked out with it.
        edit = {"range": range_in_line(1, 4, 4), "text": "'\ud83d'; "}
        document = {"uri": held.editor.buffer.uri, "version": 2}
        sent = {"textDocument": document, "contentChanges": [edit]}
        raw(held, frame(notification("textDocument/didChange", sent)))
        back = {"range": range_in_line(1, 4, 9), "text": ""}
        held.notify("textDocument/didChange", {"textDocument": {**document, "version": 3}, "contentChanges": [back]})
        assert await held.ghost() == "a + b"


async def test_a_huge_document_is_served_as_any_other(shared):
    async with window(shared, options=PATIENT) as held:
        around = FAR * (2_500_000 // len(FAR))
        held.open(f"{around}{DEEP}{around}")
        assert await held.ghost() == "a + b"
        for at, character in enumerate("a + ", 1):
            held.editor.type(character)
            assert await held.ghost() == "a + b"[at:]


async def test_many_messages_while_the_client_reads_nothing(shared):
    async with window(shared, options=PATIENT) as held:
        held.client.server.stdout._transport.pause_reading()
        answers = [held.ask("dg/status", {})[1] for _ in range(3000)]
        await asyncio.sleep(0.5)
        held.client.server.stdout._transport.resume_reading()
        async with asyncio.timeout(WAIT_S):
            assert len(await asyncio.gather(*answers)) == 3000
        await still_works(held)


async def test_a_client_that_never_reads_again_is_given_up(shared):
    with served(shared, errors=subprocess.PIPE) as process:
        send(process, id=1, method="initialize", params=HELLO)
        with contextlib.suppress(BrokenPipeError):
            for number in range(2, 1000):
                # The answer repeats the name.
                send(process, id=number, method="dg/status", params={"uri": "file:///" + "x" * 100_000, "engine": True})
        assert process.wait(WAIT_S) == 1
        told = process.stderr.read().decode().splitlines()
        assert ["bytes unread; the session ends" in line for line in told] == [True], told[:3]


async def test_shutdown_in_the_middle_of_a_request(shared):
    async with window(shared, options=PATIENT) as held:
        held.open(text_of(SLOW))
        asked = held.editor.ask()
        await asyncio.sleep(0.1)
        await held.request("shutdown", None)
        with pytest.raises(JsonRpcException, match="cancel"):
            await asked.answer
        await refused(held, "dg/status", {}, -32600)
        held.notify("exit", None)
        async with asyncio.timeout(WAIT_S):
            assert await held.client.server.wait() == 0


async def test_exit_without_shutdown_is_told_by_the_exit_code(shared):
    with served(shared) as process:
        send(process, id=1, method="initialize", params=HELLO)
        send(process, method="exit")
        assert process.wait(WAIT_S) == 1


@pytest.mark.parametrize("kept", [False, True], ids=["its pipes close", "somebody holds its pipes open"])
async def test_an_editor_that_is_killed_takes_its_server_along_but_not_the_engine(shared, kept):
    editor = subprocess.Popen(["sleep", "600"])
    with served(shared) as process:
        send(process, id=1, method="initialize", params={**HELLO, "processId": editor.pid})
        send(process, id=2, method="dg/status", params={})
        bodies = messages(process.stdout)
        while json.loads(next(bodies))["id"] != 2:
            pass
        editor.kill()
        editor.wait()
        if not kept:
            process.stdin.close()
            process.stdin = None
        process.wait(10)
    assert shared.answers()


async def test_an_engine_killed_in_the_middle_of_a_request_is_replaced():
    with home() as place:
        async with window(place, options=PATIENT, model=place.oracle(ADD, CALL, SLOW)) as held:
            await still_works(held)
            first = await pid_of(held)
            held.open(text_of(SLOW))
            asked = held.editor.ask()
            await asyncio.sleep(0.2)
            os.kill(first, signal.SIGKILL)
            assert await asyncio.wait_for(asked.answer, WAIT_S) is None
            await replaced(held, first)


async def test_an_engine_killed_at_rest_is_replaced_before_anybody_asks():
    with home() as place:
        async with window(place, options=PATIENT, model=place.oracle(ADD, CALL)) as held:
            await still_works(held)
            first = await pid_of(held)
            held.client.statuses.clear()
            os.kill(first, signal.SIGKILL)

            async def ready() -> bool:
                told = held.client.statuses
                replaced = any(status["state"] == "starting" for status in told)
                return replaced and told[-1]["state"] == "ready" and not told[-1]["message"]

            await until(ready, "the model of a new engine")
            held.open(CALL)
            assert await held.ghost() == "compute(first, second)"
            assert await pid_of(held) != first


async def test_an_engine_that_is_frozen_is_replaced():
    with home() as place:
        async with window(place, options=QUICK, model=place.oracle(ADD, CALL)) as held:
            await still_works(held)
            first = await pid_of(held)
            os.kill(first, signal.SIGSTOP)
            held.open(text_of(SLOW))
            assert await held.ghost() is None
            await replaced(held, first)


async def test_an_engine_whose_model_hangs_is_replaced():
    hung = {"text": "hung = ▮1▮\n", "delay_ms": 3_600_000}
    with home() as place:
        model = place.oracle(ADD, CALL, hung)
        # To import what the model needs takes seconds on a busy machine, and that is no hang.
        with running(place, "--model", model, "--stall-after", "15") as process:
            async with window(place, options=QUICK, model=model) as held:
                await still_works(held)
                held.open("hung = ▮\n")
                assert await held.ghost() is None
                await replaced(held, process.pid)
            assert process.wait(WAIT_S) != 0


async def test_running_out_of_memory_costs_one_suggestion_only():
    with home() as place:
        greedy = {"text": "huge = ▮1▮\n", "fault": "out_of_memory"}
        async with window(place, options=PATIENT, model=place.oracle(greedy, ADD)) as held:
            held.open("huge = ▮\n")
            assert await held.ghost() is None
            assert await held.ghost(invoked=True) is None
            await still_works(held)
            engine = (await held.status(engine=True))["engine"]
            assert engine["failed"]["out_of_memory"] >= 1


async def test_what_a_killed_engine_left_behind_is_in_nobodys_way():
    with home() as place:
        place.runtime.mkdir(mode=0o700)
        stale = socket.socket(socket.AF_UNIX)
        stale.bind(str(place.socket_path))
        stale.close()
        async with window(place, options=PATIENT, model=place.oracle(ADD)) as held:
            await still_works(held)


async def test_without_a_home_suggestions_come_and_the_status_says_what_is_missing():
    with home() as place:
        for name in ("DG_LSP_STATE_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            place.environment.pop(name, None)
        place.environment["HOME"] = "/proc/none"
        async with window(place, options=PATIENT, model=place.oracle(ADD), ready=False) as held:
            held.open(ADD)

            async def ready() -> str:
                told = await held.status()
                return told["message"] if told["state"] == "ready" and "not in memory" not in told["message"] else ""

            assert "set DG_LSP_STATE_DIR" in await until(ready, "the model")
            assert await held.ghost() == "a + b"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root can give a folder away")
async def test_a_folder_of_another_user_is_a_sentence_in_the_status():
    with home() as place:
        place.runtime.mkdir(mode=0o700)
        os.chown(place.runtime, 65534, -1)
        try:
            async with window(place, model=place.oracle(ADD), ready=False) as held:

                async def error() -> str:
                    told = await held.status()
                    return told["message"] if told["state"] == "error" else ""

                assert "belongs to user 65534" in await until(error, "the error")
                held.open(ADD)
                assert await held.ghost() is None
        finally:
            os.chown(place.runtime, os.geteuid(), -1)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no named pipes")
async def test_a_repository_whose_files_are_pipes_and_devices_is_served_and_left(shared, tmp_path):
    (tmp_path / "dg-lsp.toml").symlink_to("/dev/stdin")
    (tmp_path / "sub").mkdir()
    os.mkfifo(tmp_path / "sub" / ".dgignore")
    async with window(shared, options=PATIENT, folders=[tmp_path], log="dg-lsp.toml is no ordinary file") as held:
        held.open(ADD, "sub/a.py")
        assert await held.ghost() is None
        off = (await held.status(uri=held.editor.buffer.uri))["document"]["off"]
        assert off.endswith(".dgignore is no ordinary file.")
        held.open(ADD, "a.py")
        assert await held.ghost() == "a + b"


STUCK = """
import asyncio, sys, time
from dg_lsp.app import session
from dg_lsp.backend.client import Launch
from dg_lsp.protocol.framing import messages
from engine.common.json_values import read_json

def register(server):
    asyncio.get_running_loop().call_soon(time.sleep, 3600)

session.register = register
asyncio.run(session.run(map(read_json, messages(sys.stdin.buffer)), sys.stdout.buffer, Launch()))
"""
"""A server whose event loop waits for something that never comes."""


@pytest.mark.parametrize("behind", [0, 1000], ids=["its input ends", "its input ends behind many messages"])
async def test_a_server_that_is_stuck_ends_with_its_input(behind):
    script = STUCK.replace("asyncio.run(", "session.STUCK_S = 1\nasyncio.run(")
    with home() as place:
        process = subprocess.Popen([sys.executable, "-c", script], env=place.environment, stdin=subprocess.PIPE)
        try:
            process.communicate(frame(b"{}") * behind, timeout=WAIT_S)
            assert process.returncode == 1
        finally:
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    ("capabilities", "choice", "is_replaced"),
    [("vscode", REPLACE, True), ("neovim", LATER, False), ("vscode", None, False), ("emacs", None, False)],
)
async def test_an_engine_of_another_release_is_replaced_at_once_if_the_user_agrees(capabilities, choice, is_replaced):
    questions: list[str] = []

    def answer(params: ShowMessageRequestParams) -> MessageActionItem | None:
        questions.append(params.message)
        return next((action for action in params.actions or () if action.title == choice), None)

    with home() as place, running(place, package="0.0.1") as process:
        older = place.connect()
        older.handshake(package="0.0.1")
        async with window(place, capabilities, ready=False, log="of dg-lsp 0.0.1") as held:
            held.client.feature("window/showMessageRequest")(answer)

            async def said() -> bool:
                return any("of dg-lsp 0.0.1" in told.message for told in held.client.log_messages)

            await until(said, "word of the other engine")
            if is_replaced:
                assert await asyncio.to_thread(process.wait, WAIT_S) == 0

            async def release() -> str:
                return (await held.status(engine=True))["engine"].get("engine")

            assert await until(release, "an engine") == (__version__ if is_replaced else "0.0.1")
            assert len(questions) == (capabilities != "emacs")
        older.close()
