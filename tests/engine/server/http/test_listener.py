"""Who may come in and with what; what is answered, and what becomes of those who hang up."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import shutil
import socket
import threading
import time

import pytest

from engine.common.credentials import HTTP_TOKEN
from engine.common.errors import BadInput
from engine.common.http_address import HttpAddress, http_address
from engine.common.messages import Fill, FillReply
from engine.common.request import FillRequest, Snippet
from engine.fill.loading import load
from engine.models.oracle.model import Case, Oracle
from engine.server.http import bodies
from engine.server.http import listener as listener_module
from engine.server.http.bodies import CompletionBody, read_body
from engine.server.settings import HttpBounds, Limits
from tests.dg_lsp.handlers.test_server import Session
from tests.engine.processes import Home, running, wait_until
from tests.engine.server.http.asking import AFTER, ANSWER, BEFORE, LINES, LONG, Client, http_server
from tests.test_key_path import ask


def through_the_socket(place: Home, request: FillRequest) -> list[str]:
    with place.client() as wire:
        wire.send(Fill(id=1, request=request))
        reply = wire.reply(1)
        assert isinstance(reply, FillReply)
        return [candidate.text for candidate in reply.filled.candidates]


def test_the_answer_is_that_of_the_socket(place):
    with http_server(place, lambda _: load("bundled").model) as (client, _):
        said = []
        for prefix, suffix in (
            (BEFORE, AFTER),
            ("import os\n\n\ndef names(folder):\n    return [", " for entry in os.scandir(folder)]\n"),
            ("x = max(1, ", ")\nprint(x)\n"),
        ):
            same = {"language": "python", "seed": 7, "max_tokens": 24, "n": 2}
            snippets = (Snippet(path="other.py", text="import this\n"),)
            said.append(through_the_socket(place, FillRequest(prefix=prefix, suffix=suffix, **same)))
            got = client.complete(prefix, suffix=suffix, **same).json["choices"]
            assert [choice["text"] for choice in got] == (said[-1] or [""])
            one = {**same, "n": 1}
            (text, *_) = [*through_the_socket(place, FillRequest(prefix=prefix, suffix=suffix, **one)), ""]
            streamed = client.complete(prefix, suffix=suffix, stream=True, **one).events[:-1]
            assert "".join(event["choices"][0]["text"] for event in streamed) == text
            request = FillRequest(prefix=prefix, suffix=suffix, snippets=snippets, **one)
            (text, *_) = [*through_the_socket(place, request), ""]
            extra = [{"filename": "other.py", "text": "import this\n"}]
            infilled = client.infill(prefix, suffix, input_extra=extra, n_predict=24, seed=7, language="python")
            assert infilled.json["content"] == text
        assert any(said)


@pytest.mark.asyncio
async def test_the_answer_is_that_of_the_language_server(place):
    with http_server(place, lambda _: Oracle("oracle", [Case(text="x = ▮len(y)▮\n")])) as (client, _):
        session = Session()
        await session.begin()
        session.server.configuration.initialize({"enabled": True})
        await session.open("x = \n")
        await session.server.resident.wait_until_ready()
        (item,) = (await ask(session, 1, line=0))["items"]
        answered = await asyncio.to_thread(client.complete, "x = ", suffix="\n", language="python")
        assert item["insertText"] == answered.json["choices"][0]["text"] == "len(y)"
        await session.server.finish()


def test_what_is_settled_comes_from_the_left_before_the_end(client: Client):
    for got, text_of in (
        (client.infill("slow = ", stream=True), lambda event: event["content"]),
        (client.complete("slow = ", suffix="\n", stream=True), lambda event: event["choices"][0]["text"]),
    ):
        events = [event for event in got.events if event != "[DONE]"]
        texts = [text_of(event) for event in events]
        assert "".join(texts) == LONG
        assert len([text for text in texts if text]) > 3
    assert [event["choices"][0]["finish_reason"] for event in events] == [*[None] * (len(events) - 1), "stop"]


def test_the_end_of_a_stream_has_the_figures(client: Client):
    last = client.infill("slow = ", stream=True).events[-1]
    assert (last["stop"], last["stop_type"], last["tokens_predicted"]) == (True, "eos", 31)
    *_, end, usage, done = client.complete(
        "slow = ", suffix="\n", stream=True, logprobs=1, stream_options={"include_usage": True}
    ).events
    assert "".join(end["choices"][0]["logprobs"]["tokens"]) == LONG
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 31
    assert done == "[DONE]"


def test_a_character_of_several_tokens_is_streamed_whole(client: Client):
    got = client.infill("smile = '😋' + ", stream=True)
    assert "".join(event["content"] for event in got.events) == "'é😋é'"


def test_answers_and_their_tokens_are_as_many_as_are_asked_for(client: Client):
    held = client.complete(BEFORE, suffix=AFTER, n=2, logprobs=1).json
    assert [choice["text"] for choice in held["choices"]] == [ANSWER, "h * w"]
    for choice in held["choices"]:
        said = choice["logprobs"]
        assert "".join(said["tokens"]) == choice["text"]
        assert said["text_offset"] == [sum(map(len, said["tokens"][:at])) for at in range(len(said["tokens"]))]
        assert all(value <= 0 for value in said["token_logprobs"])
        assert len(said["top_logprobs"]) == len(said["tokens"])
    assert held["usage"]["completion_tokens"] == sum(len(each["logprobs"]["tokens"]) for each in held["choices"])
    assert client.complete(BEFORE, suffix=AFTER).json["choices"][0]["logprobs"] is None


def test_stop_words_indentation_and_lengths_end_an_answer(client: Client):
    stopped = client.infill("def lines():", stop=["return"]).json
    assert stopped["content"] == LINES.partition("return")[0]
    assert (stopped["stop_type"], stopped["stopping_word"]) == ("word", "return")
    indented = client.infill("def lines():", n_indent=4).json
    assert (indented["content"], indented["stop_type"]) == (LINES.removesuffix("\nprint(2)"), "limit")
    short = client.complete("slow = ", suffix="\n", max_tokens=5).json["choices"][0]
    assert LONG.startswith(short["text"])
    assert (len(short["text"]), short["finish_reason"]) == (5, "length")
    assert client.infill("slow = ", n_predict=-1).json["content"] == LONG


def test_time_that_is_up_is_no_error(client: Client):
    began = time.monotonic()
    got = client.infill("slow = ", t_max_predict_ms=100)
    assert (got.status, LONG.startswith(got.json["content"])) == (200, True)
    assert len(got.json["content"]) < len(LONG)
    assert time.monotonic() - began < 10


def test_the_language_is_that_of_the_name_of_the_file(place):
    text = "<|file_sep|>a.py\n<|fim_prefix|>slow = <|fim_suffix|>\n<|fim_middle|>"
    with http_server(place) as (client, _):
        # What is checked against a grammar may still be mended: nothing of it is sent before that.
        assert len(client.complete(text, stream=True).events) == 2
        assert len(client.complete(text.replace("a.py", "a"), stream=True).events) > 3


@pytest.mark.parametrize(
    ("asked", "param", "told"),
    [
        ({"prompt": 5}, "prompt", '"prompt": Expected `str | array`'),
        ({}, "prompt", '"prompt" is required.'),
        ({"prompt": "a", "suffix": ["b"]}, "suffix", '"suffix": Expected `str | null`'),
        ({"prompt": "a", "n": 0}, "n", '"n": Expected `int` >= 1'),
        ({"prompt": "a", "n": "1"}, "n", '"n": Expected `int | null`'),
        ({"prompt": "a", "max_tokens": "many"}, "max_tokens", '"max_tokens": Expected'),
        ({"prompt": "a", "stop": [1]}, "stop[0]", "Expected `str`"),
        ({"prompt": ["a", "b"]}, "prompt", "Send one prompt per request"),
        ({"prompt": []}, "prompt", "Send one prompt per request"),
        ([1], None, "Expected `object`, got `array`."),
    ],
    ids=str,
)
def test_what_is_wrong_gets_the_error_object_of_openai(client: Client, asked, param, told):
    got = client.ask("POST", "/v1/completions", asked)
    assert got.status == 400
    assert set(got.json["error"]) == {"message", "type", "param", "code"}
    assert (got.json["error"]["type"], got.json["error"]["param"]) == ("invalid_request_error", param)
    assert told in got.json["error"]["message"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"input_suffix": "b"}, '"input_prefix" is required.'),
        ({"input_prefix": "a", "input_suffix": 3}, '"input_suffix": Expected `str`, got `int`.'),
        ({"input_prefix": "a", "input_suffix": "", "input_extra": [{"filename": "x"}]}, '"text" is required'),
        ({"input_prefix": "a", "input_suffix": "", "stream": "yes"}, '"stream": Expected `bool | null`'),
        (b"{", "The request body is not valid JSON."),
        (b"\xff", "The request body is not valid JSON."),
        (b'{"input_prefix": "", "input_suffix": "", "other": ' + b"[" * 100_000, "The request body is not valid JSON."),
    ],
)
def test_what_is_wrong_gets_the_error_object_of_llama_cpp(client: Client, asked, told):
    got = client.ask("POST", "/infill", asked)
    assert got.status == 400
    assert set(got.json["error"]) == {"code", "message", "type"}
    assert (got.json["error"]["code"], got.json["error"]["type"]) == (400, "invalid_request_error")
    assert told in got.json["error"]["message"]


def test_fields_that_mean_nothing_here_are_ignored_whatever_they_hold(client: Client):
    got = client.complete(BEFORE, suffix=AFTER, best_of={"a": 1}, samplers=3, temperature="hot", user=None, echo=[])
    assert got.json["choices"][0]["text"] == ANSWER


def test_what_fails_is_told_by_the_status(client: Client):
    for prefix, status in (("memory = ", 503), ("defect = ", 500)):
        got = client.infill(prefix)
        assert (got.status, got.json["error"]["code"]) == (status, status)
        streamed = client.complete(prefix, suffix="\n", stream=True)
        assert (streamed.status, streamed.json["error"]["type"]) == (status, "server_error")


def test_there_are_models_health_and_metrics(client: Client):
    client.infill(BEFORE, AFTER)
    assert client.ask("GET", "/health").json == {"status": "ok"}
    (model,) = client.ask("GET", "/v1/models").json["data"]
    assert (model["id"], model["object"], model["owned_by"]) == ("oracle", "model", "dg-lsp")
    got = client.ask("GET", "/metrics")
    assert got.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = got.body.splitlines()
    samples = [line.rpartition(" ") for line in lines if not line.startswith("#")]
    assert all(float(value) >= 0 for _, _, value in samples)
    helped = {line.split()[2] for line in lines if line.startswith("# HELP")}
    assert {name.partition("{")[0] for name, _, _ in samples} <= helped
    figures = {name: float(value) for name, _, value in samples}
    assert figures["dg_lsp_fills_total"] >= 1
    assert figures['dg_lsp_http_requests_total{path="/infill",status="200"}'] >= 1


def test_what_there_is_not_is_told_and_counted_together(client: Client):
    for method, path, status in (("GET", "/secret-name", 404), ("GET", "/infill", 405), ("POST", "/v1/nothing", 404)):
        got = client.ask(method, path)
        assert got.status == status
        told = (
            "Unknown path. Available: /infill, "
            if status == 404
            else "use POST for /infill, /v1/completions, /v1/chat/completions, GET"
        )
        assert told in got.json["error"]["message"]
    assert "secret" not in client.ask("GET", "/metrics").body


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://127.0.0.1"},
        {"Origin": "null"},
        {"Origin": "vscode-webview://1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-origin"},
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": ""},
        {"Host": "[::1].evil.example"},
        {"Host": "[::1]evil.example:80"},
        {"Host": "localhost:80.evil.example"},
        {"Host": "127.0.0.1:80@evil.example"},
        {"Host": "[::1"},
        {"Host": "192.0.2.1"},
    ],
    ids=str,
)
def test_no_page_in_a_browser_comes_in(client: Client, headers):
    for method, path in (("POST", "/infill"), ("GET", "/metrics"), ("GET", "/health"), ("OPTIONS", "/v1/completions")):
        got = client.ask(method, path, {"input_prefix": BEFORE, "input_suffix": AFTER}, **headers)
        assert got.status == 403
        assert ("The Host header names" if "Host" in headers else "Requests from web pages are refused.") in got.body
        assert not [name for name in got.headers if name.startswith("access-control")]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:80", "localhost."])
def test_this_machine_may_be_called_by_its_names(client: Client, host):
    assert client.ask("GET", "/health", Host=host).status == 200


def test_beyond_loopback_nothing_opens_without_a_token(place, monkeypatch, tmp_path):
    result = place.command("run", "--http", "0.0.0.0:0")
    assert result.returncode == 2
    assert "0.0.0.0:0 can be reached from other machines: put a token into DG_LSP_HTTP_TOKEN" in result.stderr
    file = tmp_path / "token"
    file.write_text("of-the-file\n")
    file.chmod(0o644)
    result = place.command("run", "--detach", "--http", "0.0.0.0:0", "--http-token-file", str(file))
    assert "can be read by others: run `chmod 600" in result.stderr
    assert not place.runtime.exists()
    file.chmod(0o600)
    with http_server(place, http="0.0.0.0:0", http_token_file=str(file)) as (client, _):
        check_token(Client(f"127.0.0.1:{client.port}"), "of-the-file")
    monkeypatch.setenv(HTTP_TOKEN, "of-the-environment")
    shutil.rmtree(place.runtime)
    with http_server(place) as (client, _):
        check_token(client, "of-the-environment")
    assert "of-the" not in place.log()


def check_token(client: Client, token: str) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": token}, {"Authorization": "Bearer é"}):
        for path in (
            "/infill",
            "/infill/",
            "/v1/completions",
            "/v1/models",
            "/models",
            "/props",
            "/metrics",
            "/nothing",
        ):
            got = client.ask("POST", path, {}, **headers)
            assert (got.status, got.json["error"]["type"]) == (401, "authentication_error")
            assert token not in got.body
    for path in ("/health", "/v1/health", "/health/"):
        assert client.ask("GET", path).status == 200
    for headers in ({"Authorization": f"Bearer {token}"}, {"X_Api_Key": token}):
        assert client.ask("GET", "/v1/models", **headers).status == 200


def test_beyond_loopback_the_host_is_an_address_or_a_name_of_this_machine(place, monkeypatch):
    monkeypatch.setenv(HTTP_TOKEN, "token")
    with http_server(place, http="0.0.0.0:0") as (client, _):
        near = Client(f"127.0.0.1:{client.port}")
        known = {"Authorization": "Bearer token"}
        for host, status in (("192.0.2.1:80", 200), (socket.gethostname(), 200), ("evil.example", 403)):
            assert near.ask("GET", "/v1/models", Host=host, **known).status == status


def test_bodies_are_bounded_in_size_and_time(place):
    with http_server(place, http_bounds=HttpBounds(body_nbytes=1000, body_s=0.2)) as (client, _):
        assert client.infill("x" * 2000).status == 413
        connection = http.client.HTTPConnection(client.host, client.port, timeout=30)
        connection.putrequest("POST", "/infill")
        connection.putheader("Content-Length", "10")
        connection.endheaders(b"{")
        assert connection.getresponse().status == 408
        connection.close()
        assert client.infill(BEFORE, AFTER).json["content"] == ANSWER


def test_a_header_that_drips_is_not_waited_for(place):
    with http_server(place, http_bounds=HttpBounds(header_s=0.2)) as (client, _):
        for said in (b"", b"GET /health HTTP/1.1\r\n"):
            with socket.create_connection((client.host, client.port), 30) as idle:
                idle.sendall(said)
                with contextlib.suppress(ConnectionResetError):
                    assert idle.recv(1) == b""
        # Neither a fill that takes longer nor a connection between two requests is in a hurry.
        connection = http.client.HTTPConnection(client.host, client.port, timeout=30)
        for _ in range(2):
            connection.request("POST", "/infill", b'{"input_prefix": "slow = ", "input_suffix": "\\n"}')
            assert connection.getresponse().read()
            time.sleep(0.3)
        connection.close()


def test_a_connection_is_kept_for_the_next_request_and_not_for_ever(place):
    with http_server(place, http_bounds=HttpBounds(idle_s=1)) as (client, _):
        connection = http.client.HTTPConnection(client.host, client.port, timeout=30)
        connection.request("GET", "/health")
        assert connection.getresponse().read()
        assert connection.sock.recv(1) == b""
        connection.close()


def test_who_comes_gets_the_place_of_who_rests_longest(place):
    with http_server(place, http_bounds=HttpBounds(connections=3)) as (client, _), contextlib.ExitStack() as stack:
        kept = [http.client.HTTPConnection(client.host, client.port, timeout=30) for _ in range(6)]
        for connection in kept:
            stack.callback(connection.close)
            connection.request("GET", "/health")
            answer = connection.getresponse()
            assert (answer.status, bool(answer.read())) == (200, True)
        assert kept[0].sock.recv(1) == b""
        kept[-1].request("GET", "/health")
        assert kept[-1].getresponse().status == 200


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"POST /infill HTTP/1.1\r\nHost: lo",
        b"POST /infill HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
    ],
    ids=["nothing", "half a header", "half a body"],
)
def test_the_oldest_that_have_no_request_give_way_when_another_comes(place: Home, begun: bytes):
    with (
        http_server(place, http_bounds=HttpBounds(connections=4)) as (client, server),
        Hanging(client, "slow = "),
        contextlib.ExitStack() as stack,
    ):
        wait_until(lambda: sum(server.scheduler.counts()) == 1, "the fill")
        idle = [stack.enter_context(socket.create_connection((client.host, client.port), 30)) for _ in range(12)]
        for sock in idle:
            with contextlib.suppress(OSError):  # it may have given way already
                sock.sendall(begun)
        assert client.ask("GET", "/v1/models").status == 200
        connections = server._http._state.connections
        wait_until(lambda: len(connections) <= 4, "fewer connections")
        # Who is answered keeps his place, and so do those who came last.
        assert sum(server.scheduler.counts()) == 1
        idle[-1].settimeout(0.2)
        with pytest.raises(TimeoutError):
            idle[-1].recv(1)
        assert client.infill(BEFORE, AFTER).json["content"] == ANSWER


@pytest.mark.parametrize("path", ["/infill", "/health"])
def test_a_body_that_could_end_at_two_places_ends_its_connection(client: Client, path: str):
    smuggled = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    sent = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {5 + len(smuggled)}\r\n"
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ).encode() + smuggled
    with socket.create_connection((client.host, client.port), 30) as sock:
        sock.sendall(sent)
        said = b""
        with contextlib.suppress(ConnectionResetError):
            while part := sock.recv(65536):
                said += part
    assert said.startswith(b"HTTP/1.1 400")
    assert said.count(b"HTTP/1.1") == 1
    assert b"not both" in said


def test_of_a_long_text_what_is_near_the_gap_is_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bodies, "_MOST_CHARS", 20)
    held = read_body(b'{"prompt": ""}', CompletionBody)
    request = held.request("#!/usr/bin/env python\n" + "x = 1\n" * 9 + "y = ", "\n" + "z = 2\n" * 9)
    assert (request.prefix, request.language) == ("x = 1\nx = 1\ny = ", "python")
    assert request.suffix == ("\n" + "z = 2\n" * 9)[:20]
    assert held.request("a" * 50, "").prefix == "a" * 20
    assert held.request("a = ", "\n").prefix == "a = "


def test_those_whose_bodies_drip_on_after_the_answer_lock_nobody_out(place, monkeypatch):
    monkeypatch.setenv(HTTP_TOKEN, "token")
    known = "Authorization: Bearer token\r\n"
    head = "POST /infill HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n"
    with (
        http_server(place, http_bounds=HttpBounds(connections=4, body_s=0.3)) as (client, _),
        contextlib.ExitStack() as stack,
    ):
        dripping: dict[socket.socket, bytes] = {}
        for more, told in ((known, b"HTTP/1.1 408"), ("", b"HTTP/1.1 401"), ("Origin: null\r\n", b"HTTP/1.1 403")):
            sock = stack.enter_context(socket.create_connection((client.host, client.port), 30))
            sock.sendall(f"{head}{more}\r\n{{".encode())
            dripping[sock] = told
        for sock, told in dripping.items():
            assert sock.recv(1000).startswith(told)

        def all_are_dropped() -> bool:
            time.sleep(0.03)
            for sock in list(dripping):
                try:
                    sock.sendall(b"x")
                except OSError:
                    del dripping[sock]
            return not dripping

        wait_until(all_are_dropped, "the connections to be closed", timeout_s=10)
        wait_until(lambda: client.ask("GET", "/health").status == 200, "room", timeout_s=10)


@pytest.mark.parametrize("count", [20, 400], ids=["within asyncio's buffer", "beyond it"])
def test_who_reads_no_answer_is_dropped(place, monkeypatch, count):
    bind = listener_module.bound

    def bound(address: HttpAddress) -> socket.socket:
        sock = bind(address)
        # Those that it takes have it, too.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        return sock

    monkeypatch.setattr(listener_module, "bound", bound)
    with http_server(place, http_bounds=HttpBounds(body_s=0.3)) as (client, server), socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        deaf.connect((client.host, client.port))
        deaf.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * count)
        connections = server._http._state.connections
        wait_until(lambda: connections, "the connection")
        wait_until(lambda: not connections, "its end", timeout_s=10)


def test_one_request_too_many_is_told_to_come_again(place):
    with http_server(place, http_bounds=HttpBounds(requests=2)) as (client, server):
        with Hanging(client, "slow = "), Hanging(client, "slow = "):
            wait_until(lambda: sum(server.scheduler.counts()) == 2, "two fills")
            got = client.infill(BEFORE, AFTER)
            assert (got.status, got.headers["retry-after"]) == (503, "1")
            assert got.json["error"]["type"] == "unavailable_error"
        wait_until(lambda: client.infill(BEFORE, AFTER).status == 200, "room")


def test_those_for_whom_the_queue_has_no_room_wait(place):
    with http_server(place, limits=Limits(jobs_per_client=2)) as (client, _):
        got: list[int] = []
        threads = [threading.Thread(target=lambda: got.append(client.infill("slow = ").status)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert got == [200] * 6


class Hanging:
    """A request for a fill, whose client hangs up at the end of the block."""

    def __init__(self, client: Client, prefix: str, **fields: object) -> None:
        body = json.dumps({"input_prefix": prefix, "input_suffix": "\n", **fields}).encode()
        head = f"POST /infill HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        self._sent = head.encode() + body
        self._client = client

    def __enter__(self) -> socket.socket:
        self._socket = socket.create_connection((self._client.host, self._client.port), 30)
        self._socket.sendall(self._sent)
        return self._socket

    def __exit__(self, *_: object) -> None:
        self._socket.close()


@pytest.mark.parametrize("stream", [False, True])
def test_who_hangs_up_cancels_the_fill(place, stream):
    with http_server(place) as (client, server):
        fields = {"stream": True} if stream else {}
        with Hanging(client, "slow = ", **fields) as sock:
            wait_until(lambda: server.scheduler.counts()[1] == 1, "the fill")
            if stream:
                assert sock.recv(9) == b"HTTP/1.1 "
        wait_until(lambda: sum(server.scheduler.counts()) == 0, "its end", timeout_s=5)
        assert server.scheduler.failures() == {"cancelled": 1}
        assert server.status().served == 0
        assert 'path="/infill",status="499"} 1' in client.ask("GET", "/metrics").body


def test_who_hangs_up_while_waiting_for_room_is_forgotten(place):
    with http_server(place, limits=Limits(jobs_per_client=1)) as (client, server):
        with Hanging(client, "slow = "):
            wait_until(lambda: sum(server.scheduler.counts()) == 1, "the fill")
            with Hanging(client, "slow = "):
                time.sleep(0.1)
            assert sum(server.scheduler.counts()) == 1
        wait_until(lambda: sum(server.scheduler.counts()) == 0, "both to end", timeout_s=5)
        assert client.infill(BEFORE, AFTER).json["content"] == ANSWER
        assert server.status().served == 1


def test_many_by_http_take_no_turns_of_a_window(place):
    with http_server(place) as (client, server), place.client() as wire:
        held = [Hanging(client, "slow = ") for _ in range(12)]
        for each in held:
            each.__enter__()
        wait_until(lambda: sum(server.scheduler.counts()) == 12, "a dozen fills")
        wire.fill(1, BEFORE, AFTER)
        assert isinstance(wire.reply(1), FillReply)
        # It overtook most of those that were there before.
        assert sum(server.scheduler.counts()) > 6
        for each in held:
            each.__exit__()


def test_the_end_of_the_engine_is_told(place):
    with http_server(place) as (client, server):
        got: list[int] = []
        thread = threading.Thread(target=lambda: got.append(client.infill("slow = ").status))
        thread.start()
        wait_until(lambda: sum(server.scheduler.counts()) == 1, "the fill")
        place.stop()
        thread.join()
        assert got == [503]


def test_an_engine_with_a_door_stays_without_clients(place):
    with running(
        place, "--exit-after", "0.2", "--model", place.oracle("x = ▮1▮\n"), "--http", "127.0.0.1:0"
    ) as process:
        time.sleep(1.0)
        assert process.poll() is None
        status = place.status()
        assert status is not None
        client = Client(status["http"])
        assert client.infill("x = ").json["content"] == "1"
        restarted = place.command("restart", "--exit-after", "60")
        assert restarted.returncode == 0, restarted
        again = place.status()
        assert again is not None
        assert (again["http"], again["exit_after_s"]) == (status["http"], 60)


def test_nothing_of_a_request_is_logged(place):
    defect = {"text": "secret_prefix = ▮1▮\n", "fault": "defect"}
    with running(place, "--model", place.oracle(defect), "--http", "127.0.0.1:0"):
        status = place.status()
        assert status is not None
        client = Client(status["http"])
        client.infill("secret_prefix = ", stop=["secret_stop"])
        client.ask("GET", "/secret_path?secret_query", Host="secret_host")
        client.ask("POST", "/infill", b"secret_body", secret_header="secret_value")
        with socket.create_connection((client.host, client.port), 30) as sock:
            sock.sendall(b"secret_nonsense\r\n\r\n")
            assert b"400" in sock.recv(1000)
        assert "RuntimeError" in place.log()
        assert "secret" not in place.log()


def test_a_port_that_is_taken_and_an_address_that_is_none_are_told(place):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = place.command("run", "--http", f"127.0.0.1:{port}")
        assert result.returncode == 1
        assert "choose another port" in result.stderr
    for text in ("8012", "127.0.0.1", "a b:1", "[::1:1", "x:70000", "::1:80"):
        with pytest.raises(BadInput, match=r"write HOST:PORT, such as 127\.0\.0\.1:8012"):
            http_address(text)
    assert http_address(" [::1]:80 ") == HttpAddress(host="::1", port=80)
    assert str(http_address("[::1]:80")) == "[::1]:80"
    assert http_address("[::1]:80").local
    assert not http_address("0.0.0.0:80").local
    assert not http_address("[::]:80").local


def test_without_the_extra_the_way_out_is_named(place, tmp_path):
    (tmp_path / "uvicorn").mkdir()
    (tmp_path / "uvicorn" / "__init__.py").write_text("raise ModuleNotFoundError('gone', name='uvicorn')")
    place.environment["PYTHONPATH"] = str(tmp_path)
    result = place.command("run", "--http", "127.0.0.1:0")
    assert result.returncode == 2
    assert (
        "uvicorn, which is not installed: run `pipx install --force '.[http]'` in a clone of dg-lsp." in result.stderr
    )
