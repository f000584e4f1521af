"""`dg-lsp http`, in real processes."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys

import pytest

from tests.engine.processes import WAIT_S, Home, home, running, wait_until
from tests.engine.server.http.asking import Client


@pytest.fixture
def place():
    with home() as place:
        yield place


def command(place: Home, *arguments: str) -> list[str]:
    model = place.oracle("x = ▮1▮\n")
    return [sys.executable, "-m", "dg_lsp", "http", "--port", "0", "--model", model, *arguments]


def run(place: Home, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = command(place, *arguments)
    return subprocess.run(argv, env=place.environment, capture_output=True, text=True, timeout=WAIT_S, check=False)


def test_the_engine_is_run_with_its_door_open_until_it_is_interrupted(place):
    argv = command(place)
    with subprocess.Popen(argv, env=place.environment, stdout=subprocess.PIPE, text=True) as process:
        wait_until(place.answers, "the engine")
        with place.client() as wire:
            client = Client(wire.status().http)
        assert client.complete("x = ", suffix="\n").json["choices"][0]["text"] == "1"
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 0
        assert process.stdout is not None
        assert "Ctrl-C ends it" in process.stdout.read()


def test_in_the_background_it_says_where_it_is(place):
    said = run(place, "--detach")
    assert said.returncode == 0, said
    with place.client() as wire:
        address = wire.status().http
    assert said.stdout == f"The engine serves http://{address}.\n"
    assert Client(address).ask("GET", "/health").status == 200
    again = run(place)
    assert (again.returncode, again.stdout) == (0, said.stdout)
    assert f"http      {address}" in place.command("status").stdout


def test_an_engine_without_the_door_is_left_alone_and_the_way_out_named(place):
    with running(place, "--model", place.oracle("x = ▮1▮\n")):
        said = run(place)
        assert said.returncode == 1
        assert "without an HTTP server: `dg-lsp engine restart --http 127.0.0.1:0` starts it" in said.stderr
        assert place.answers()


def test_where_its_port_is_taken_it_does_not_say_that_it_serves(place):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        said = run(place, "--port", str(other.getsockname()[1]))
    assert (said.returncode, said.stdout) == (1, "")
    assert "in use" in said.stderr
    assert not place.answers()


def test_what_could_never_be_opened_is_refused_before_anything_starts(place):
    for arguments, told in (
        (("--host", "a b"), "write HOST:PORT"),
        (("--host", "0.0.0.0"), "put a token into DG_LSP_HTTP_TOKEN"),
        (("--token-file", "/nowhere/token"), "/nowhere/token can't be read"),
        (("--http-token-file", "/nowhere/token"), "/nowhere/token can't be read"),
    ):
        said = run(place, *arguments)
        assert said.returncode == 2
        assert told in said.stderr
        assert not place.answers()
