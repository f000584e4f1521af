"""`POST /v1/chat/completions`, as OpenAI's clients and llama.vim's instruct mode ask."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.engine.processes import WAIT_S, home, wait_until
from tests.engine.server.http.asking import Client, Got, http_server
from tests.engine.talking import Talking, loads

SAID = 'Here:\n```python\nreturn self.value + "é😋"\n```\n'
USER = {"role": "user", "content": "Rewrite `return self.depth`."}


@pytest.fixture(scope="module")
def talking() -> Talking:
    return Talking(says=SAID)


@pytest.fixture(scope="module")
def client(talking: Talking) -> Iterator[Client]:
    with pytest.MonkeyPatch.context() as patch, home() as place:
        for name in ("DG_LSP_RUNTIME_DIR", "DG_LSP_STATE_DIR"):
            patch.setenv(name, place.environment[name])
        with http_server(place, loads(talking), http_token_file="") as (client, _):
            yield client


def chat(client: Client, *messages: object, **fields: object) -> Got:
    return client.ask("POST", "/v1/chat/completions", {"messages": messages or [USER], **fields})


def test_an_answer_is_a_message(client: Client, talking: Talking):
    got = chat(client, {"role": "developer", "content": "Be short."}, USER, model="gpt-5", temperature=1.0, tools=[])
    assert got.status == 200
    held = got.json
    assert held["object"] == "chat.completion"
    (choice,) = held["choices"]
    assert choice["message"] == {"role": "assistant", "content": SAID, "refusal": None}
    assert choice["finish_reason"] == "stop"
    assert held["usage"]["prompt_tokens"] > 20 < held["usage"]["completion_tokens"]
    assert talking.heard[-1] == [{"role": "system", "content": "Be short."}, USER]


def test_it_is_streamed_in_whole_characters(client: Client):
    got = chat(client, stream=True, stream_options={"include_usage": True})
    *events, usage, done = got.events
    assert done == "[DONE]"
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] > 10
    deltas = [each["choices"][0]["delta"] for each in events]
    assert deltas[0] == {"role": "assistant", "content": ""}
    pieces = [each["content"] for each in deltas[1:-1]]
    assert len(pieces) > 3
    assert "".join(pieces) == SAID
    assert not any("\N{REPLACEMENT CHARACTER}" in piece for piece in pieces)
    assert events[-1]["choices"][0]["finish_reason"] == "stop"
    assert {each["object"] for each in events} == {"chat.completion.chunk"}


def test_llama_vims_instruct_mode_is_answered(client: Client):
    """What its `llama#inst_send` sends, and how it reads an event."""
    messages = [
        {"role": "system", "content": "You are a text-editing assistant."},
        {"role": "user", "content": [{"type": "text", "text": "Rewrite this."}]},
    ]
    more = {"min_p": 0.1, "temperature": 0.1, "samplers": ["min_p", "temperature"], "cache_prompt": True, "id_slot": 0}
    got = chat(client, *messages, stream=True, **more)
    said = [each["choices"][0]["delta"].get("content", "") for each in got.events[:-1]]
    assert "".join(said) == SAID


def test_it_ends_at_stop_words_and_lengths(client: Client, talking: Talking):
    before = talking.passes
    chat(client)
    whole = talking.passes - before
    for stream in (False, True):
        before = talking.passes
        got = chat(client, stop=["value", "never"], stream=stream)
        text = (
            "".join(each["choices"][0]["delta"].get("content", "") for each in got.events[:-1])
            if stream
            else (got.json["choices"][0]["message"]["content"])
        )
        assert text == SAID.partition("value")[0]
        assert talking.passes - before < whole
    got = chat(client, max_completion_tokens=3)
    assert got.json["choices"][0]["finish_reason"] == "length"
    assert got.json["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user"}]}, "content"),
        ({"messages": [{"role": "king", "content": ""}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages"),
        ({"n": 2}, "n"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
    ],
)
def test_what_is_wrong_is_told(client: Client, fields: dict[str, Any], param: str):
    got = client.ask("POST", "/v1/chat/completions", {"messages": [USER], **fields})
    assert got.status == 400
    assert got.json["error"]["type"] == "invalid_request_error"
    assert got.json["error"]["param"] == param


def test_a_conversation_that_is_too_long_is_refused(client: Client):
    got = chat(client, {"role": "user", "content": "depth " * 60_000})
    assert got.status == 400
    assert "send less" in got.json["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_sixty_thousand_characters_are_answered_where_they_fit_and_else_refused_at_once(
    client: Client, talking: Talking, stream: bool
):
    """The model reads 16,384 tokens; of the first text each has four characters, of the second three."""
    question = {"role": "assistant", "content": "?"}
    got = chat(client, {"role": "user", "content": "    " * 14_000}, question, USER, stream=stream)
    assert got.status == 200
    said = "".join(each["choices"][0]["delta"].get("content", "") for each in got.events[:-1]) if stream else ""
    assert (said or got.json["choices"][0]["message"]["content"]) == SAID
    passes = talking.passes
    got = chat(client, {"role": "user", "content": "depth " * 10_000}, stream=stream)
    assert got.status == 400
    assert (
        got.json["error"]["message"] == "The messages have more than the 16,384 tokens that scripted reads: send less."
    )
    assert talking.passes == passes


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_that_answers_nobody_names_one_that_does(place: Any, stream: bool):
    with http_server(place) as (client, _):
        got = chat(client, stream=stream)
    assert got.status == 400
    assert "--model coder-1.5b" in got.json["error"]["message"]
    assert got.json["error"]["type"] == "invalid_request_error"


def test_it_needs_the_token_as_everything_does(place: Any, tmp_path: Any):
    token = tmp_path / "token"
    token.write_text("a-long-enough-token-for-everybody\n")
    token.chmod(0o600)
    with http_server(place, loads(Talking(says=SAID)), http_token_file=str(token)) as (client, _):
        assert chat(client).status == 401
        headers = {"Authorization": "Bearer a-long-enough-token-for-everybody"}
        got = client.ask("POST", "/v1/chat/completions", {"messages": [USER]}, **headers)
        assert got.status == 200


def test_who_hangs_up_ends_it(place: Any):
    talking = Talking(says="value " * 400, delay_s=0.02)
    with http_server(place, loads(talking)) as (client, server):
        body = b'{"messages": [{"role": "user", "content": "x"}], "stream": true}'
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection((client.host, client.port), WAIT_S) as connection:
            connection.sendall(head.encode() + body)
            assert b"200" in connection.recv(100)
        wait_until(lambda: sum(server.scheduler.counts()) == 0, "its end")
        assert server.scheduler.failures() == {"cancelled": 1}
        time.sleep(0.2)
        passes = talking.passes
        time.sleep(0.2)
        assert talking.passes == passes
