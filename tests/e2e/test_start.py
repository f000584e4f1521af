"""What a start costs, and that the early answer to `initialize` promises what the server keeps."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.app.routes import register
from dg_lsp.app.standard_io import begin_engine
from dg_lsp.backend.client import Launch
from dg_lsp.handlers import execute_command
from dg_lsp.handlers.server import DgServer
from dg_lsp.protocol import initialize
from dg_lsp.protocol.framing import frame, messages
from dg_lsp.protocol.initialize import ClientHello, answer_to, capabilities
from engine.common.json_values import read_json
from tests.e2e.window import CLIENTS, recorded
from tests.engine.processes import WAIT_S, Home, home, wait_until

RESIDENT_NBYTES = 80_000_000
HELLO = {
    "processId": None,
    "rootUri": None,
    "capabilities": recorded("vscode"),
    "initializationOptions": {"enabled": False},
}


@contextmanager
def served(
    place: Home, *arguments: str, errors: int | None = None, cwd: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A bare server process."""
    command = [sys.executable, "-m", "dg_lsp", "serve", *arguments]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env=place.environment, stdin=pipe, stdout=pipe, stderr=errors, cwd=cwd)
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=WAIT_S)


def send(process: subprocess.Popen[bytes], **message: Any) -> None:
    process.stdin.write(frame(json.dumps({"jsonrpc": "2.0", **message}).encode()))
    process.stdin.flush()


def test_a_fresh_process_answers_before_it_imports_what_takes_long():
    """How long it takes is a figure of `dg-lsp replay`; here the slow part would fail."""
    with home() as place:
        for name in ("asyncio", "pygls", "lsprotocol", "cattrs", "msgspec", "torch"):
            (place.folder / f"{name}.py").write_text(
                "import pathlib\npathlib.Path(__file__).with_suffix('.imported').touch()\nraise ImportError\n"
            )
        place.environment["PYTHONPATH"] = str(place.folder)
        with served(place, errors=subprocess.DEVNULL) as process:
            send(process, id=1, method="initialize", params=HELLO)
            assert "capabilities" in json.loads(next(messages(process.stdout)))["result"]
            process.wait(WAIT_S)
        assert {path.stem for path in place.folder.glob("*.imported")} == {"msgspec"}


def test_the_engine_starts_right_behind_the_answer():
    hello = {**HELLO, "initializationOptions": {"completion": "auto"}}
    with home() as place, served(place, "--model", place.oracle("x = ▮1▮\n")) as process:
        send(process, id=1, method="initialize", params=hello)
        wait_until(place.answers, "an engine, before the client says any more")


@pytest.mark.parametrize(
    ("capabilities", "options", "begins"),
    [
        ({}, None, True),
        ({}, {"dg-lsp": {"enabled": True}}, True),
        ({}, {"enabled": False}, False),
        # Its settings, asked for later, may name another model.
        ({"workspace": {"configuration": True}}, None, False),
        ({"workspace": {"configuration": True}}, {"inline": {}}, True),
        ({"workspace": True}, None, True),
        ({"workspace": [1]}, None, True),
    ],
)
def test_the_engine_is_begun_early_where_all_is_known_that_it_takes(
    capabilities: dict[str, Any], options: object, begins: bool, monkeypatch: pytest.MonkeyPatch
):
    with home() as place:
        monkeypatch.setenv("DG_LSP_RUNTIME_DIR", place.environment["DG_LSP_RUNTIME_DIR"])
        params = {"capabilities": capabilities, "initializationOptions": options}
        launch = Launch(starter=(sys.executable, "-c", "import sys; sys.exit('No torch here.')"))
        begun = begin_engine(params, launch)
        assert (begun is not None) == begins
        if begun:
            assert begun.communicate(timeout=WAIT_S)[1].strip() == b"No torch here."


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="reads /proc")
def test_a_server_at_work_is_small_and_has_no_model_library_in_it():
    with home() as place, served(place) as process:
        send(process, id=1, method="initialize", params=HELLO)
        send(process, method="initialized", params={})
        document = {"uri": "file:///a.py", "languageId": "python", "version": 1, "text": "x = 1\n" * 10_000}
        send(process, method="textDocument/didOpen", params={"textDocument": document})
        send(process, id=2, method="dg/status", params={"uri": "file:///a.py"})
        bodies = messages(process.stdout)
        while json.loads(next(bodies)).get("id") != 2:
            pass
        proc = Path(f"/proc/{process.pid}")
        peak_kib = int(proc.joinpath("status").read_text().partition("VmHWM:")[2].split()[0])
        assert peak_kib * 1024 < RESIDENT_NBYTES
        assert "torch" not in proc.joinpath("maps").read_text()


CODE_ACTION = {"codeAction": {"codeActionLiteralSupport": {}}}
ODD: tuple[dict[str, Any], ...] = (
    {"workspaceFolders": [{"uri": "file:///x"}]},
    {"clientInfo": {}},
    {"trace": "compact"},
    {"processId": 2**31},
    {"rootUri": "file://["},
    {"capabilities": {"workspace": True}},
    {"capabilities": {"textDocument": {**CODE_ACTION, "publishDiagnostics": {"tagSupport": True}}}},
    {"capabilities": 3},
)
"""What a client may say of itself, and is no reason to leave it without a server."""


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_a_client_that_says_odd_things_of_itself_is_served(odd: dict[str, Any]):
    with home() as place, served(place, errors=subprocess.DEVNULL) as process:
        send(process, id="hello", method="initialize", params={**HELLO, **odd})
        send(process, method="initialized", params={})
        send(process, id="status", method="dg/status", params={})
        bodies, told = map(json.loads, messages(process.stdout)), list[Any]()
        while not told or told[-1].get("id") != "status":
            told.append(next(bodies))
    assert "result" in told[-1], told[-1]
    assert ["result" in each for each in told if each.get("id") == "hello"] == [True]


class Kept:
    """Takes the place of a connection."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data


async def answer_of_the_server(body: bytes) -> Any:
    server, kept = DgServer(Launch()), Kept()
    register(server)
    server.rpc.set_writer(kept)
    server.rpc.take(read_json(body))
    while not kept.data:
        await asyncio.sleep(0)
    return json.loads(next(messages(io.BytesIO(kept.data))))


COPILOT = {"editorInfo": {}, "editorPluginInfo": {"name": "Github Copilot LSP for Neovim"}}


@pytest.mark.parametrize("options", [None, {"completion": "on"}, {"dg": {"completion": "off"}}, COPILOT], ids=str)
@pytest.mark.parametrize("client", [*CLIENTS, "without inline completion", "without anything"])
def test_the_early_answer_says_what_the_server_would_say(client, options):
    given = recorded(client if client in CLIENTS else "emacs") if client != "without anything" else {}
    if client not in CLIENTS:
        given.get("textDocument", {}).pop("inlineCompletion", None)
    params = {"processId": None, "rootUri": None, "capabilities": given, "initializationOptions": options}
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": params}).encode()
    answered = answer_to(read_json(body))
    assert answered is not None
    assert answered[0] == 7
    assert json.loads(answered[1]) == asyncio.run(answer_of_the_server(body))


def test_all_commands_that_are_offered_are_carried_out():
    assert set(initialize.COMMANDS) == set(execute_command.COMMANDS)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_with_inline_completion_is_offered_the_menu_where_it_wants_it_or_can_not_be_told_later(client):
    def is_offered(**options: str) -> bool:
        return "completionProvider" in capabilities(
            ClientHello({"capabilities": given, "initializationOptions": options})
        )

    given = recorded(client)
    # Neovim could not be told later that a project or a setting wants it.
    assert is_offered() == (client == "neovim")
    assert not is_offered(completion="off")
    assert is_offered(completion="on")
    del given["textDocument"]["inlineCompletion"]
    assert is_offered()
    assert not is_offered(completion="off")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"jsonrpc": "2.0", "id": 1, "method": "shutdown"}',
        b'{"jsonrpc": "2.0", "method": "initialize", "params": {"capabilities": {}}}',
        b'{"jsonrpc": "2.0", "id": null, "method": "initialize", "params": {"capabilities": {}}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": []}',
        b'{"jsonrpc": "1.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "initialize"}',
    ],
)
def test_what_is_no_proper_initialize_is_left_to_the_server(body):
    assert answer_to(read_json(body)) is None


def test_no_port_is_served():
    """A web page can reach one, and no editor could prove by it who it is."""
    command = [sys.executable, "-m", "dg_lsp", "serve", "--tcp", "127.0.0.1:0"]
    asked = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=WAIT_S, check=False)
    assert asked.returncode == 2
    assert b"No such option '--tcp'" in asked.stderr


def test_an_input_that_ends_at_once_ends_the_server():
    with home() as place, served(place) as process:
        process.stdin.close()
        assert process.wait(WAIT_S) == 1
        process.stdin = None
