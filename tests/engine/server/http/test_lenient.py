"""What clients send in ways of their own, and what llama.cpp's clients look for."""

from __future__ import annotations

import json

import pytest

from engine.server.http.bodies import InfillBody
from tests.engine.processes import wait_until
from tests.engine.server.http.asking import AFTER, ANSWER, BEFORE, LONG, Client, http_server
from tests.engine.server.http.test_clients import QWEN


def test_half_a_surrogate_pair_costs_no_answer(client: Client):
    for half in ("\\ud83d", "\\ude0b"):
        body = json.dumps({"input_prefix": f"# HALF\n{BEFORE}", "input_suffix": AFTER, "stream": False})
        assert client.ask("POST", "/infill", body.replace("HALF", half).encode()).status == 200
        body = json.dumps({"prompt": BEFORE, "suffix": AFTER, "user": "HALF"})
        got = client.ask("POST", "/v1/completions", body.replace("HALF", half).encode())
        assert got.json["choices"][0]["text"] == ANSWER
    got = client.ask("POST", "/infill", b'{"input_prefix": "a\xed\xa0\xbd", "input_suffix": ""}')
    assert got.status == 200


def test_whole_numbers_may_be_written_as_floats(client: Client):
    held = client.infill("slow = ", n_predict=5.0, seed=7.0, n_indent=0.0, t_max_predict_ms=60_000).json
    assert (held["content"], held["generation_settings"]) == (LONG[:5], {"n_predict": 5, "seed": 7})
    held = client.complete(BEFORE, suffix=AFTER, n=2.0, max_tokens=64.0, logprobs=1.0).json
    assert [choice["text"] for choice in held["choices"]] == [ANSWER, "h * w"]
    assert client.infill("slow = ", n_predict=2.5).status == 400


def test_a_suffix_that_is_sent_makes_markers_text(client: Client):
    prompt = QWEN.format(BEFORE, AFTER)
    assert client.complete(prompt).json["choices"][0]["text"] == ANSWER
    assert client.complete(prompt, suffix=None).json["choices"][0]["text"] == ANSWER
    assert client.complete(prompt, suffix="").json["choices"][0]["text"] != ANSWER


@pytest.mark.parametrize("path", ["/infill/", "//infill", "/infill//"])
def test_a_slash_too_many_is_none(client: Client, path: str):
    assert client.ask("POST", path, {"input_prefix": BEFORE, "input_suffix": AFTER}).json["content"] == ANSWER
    assert client.ask("GET", "/v1/models/").status == 200
    assert client.ask("GET", "/infill/").status == 405


def test_several_answers_are_wanted_by_either_name(client: Client):
    for name in ("n", "n_cmpl"):
        held = client.complete(BEFORE, suffix=AFTER, **{name: 2}).json
        assert [choice["text"] for choice in held["choices"]] == [ANSWER, "h * w"]
        answers = client.infill(BEFORE, AFTER, response_fields=["content", "index"], **{name: 2}).json
        assert answers == [{"content": ANSWER, "index": 0}, {"content": "h * w", "index": 1}]
        streamed = client.infill(BEFORE, AFTER, stream=True, **{name: 2}).events
        assert [(each["index"], each["content"]) for each in streamed if each["stop"]] == [(0, ANSWER), (1, "h * w")]
        assert client.infill(BEFORE, AFTER, **{name: 0}).status == 400
    assert client.infill(BEFORE, AFTER, n=1).json["content"] == ANSWER


@pytest.mark.parametrize(
    ("line", "language"),
    [
        ("# language: python", "python"),
        ("#language: py", "python"),
        ("// Language: typescript", "typescript"),
        ("-- language: lua\r", "lua"),
        ("/* language: c */", "c"),
        ("<!-- language: html -->", "html"),
        ("// language: c++", "cpp"),
        ("# language: of birds", ""),
        ("language = python", ""),
        ("#!/bin/bash", "bash"),
    ],
)
def test_the_first_line_may_tell_the_language(line: str, language: str):
    for prefix in (f"{line}\nx = ", line):
        asked = InfillBody(input_prefix=prefix, input_suffix="\n")
        assert asked.fill_request().language == language
    assert InfillBody(input_prefix=f"x\n{line}\n", input_suffix="").fill_request().language == ""
    told = InfillBody(input_prefix=f"{line}\nx = ", input_suffix="", language="go")
    assert told.fill_request().language == "go"


def test_health_properties_and_models_are_as_llama_cpp_tells_them(place):
    with http_server(place) as (client, server):
        client.infill(BEFORE, AFTER)
        wait_until(lambda: server.status().loaded_s is not None, "the model")
        assert client.ask("GET", "/v1/health").json == client.ask("GET", "/health").json == {"status": "ok"}
        assert client.ask("GET", "/models").json == client.ask("GET", "/v1/models").json
        (model,) = client.ask("GET", "/models").json["data"]
        assert model["meta"] == {"n_params": server.status().parameters, "n_ctx_train": server.status().context_limit}
        held = client.ask("GET", "/props").json
        assert held["default_generation_settings"]["n_ctx"] == server.status().context_limit > 0
        assert (held["total_slots"], held["model_path"], held["is_sleeping"]) == (1, "oracle", False)
        assert held["modalities"] == {"vision": False, "audio": False}
        assert isinstance(held["chat_template"], str)
        assert isinstance(held["build_info"], str)
        # What is not served is told as such: /slots, and a change of properties.
        assert (held["endpoint_slots"], held["endpoint_props"], held["endpoint_metrics"]) == (False, False, True)
        assert client.ask("GET", "/slots").status == 404
        assert client.ask("POST", "/props", {}).status == 405
        assert (held["bos_token"], held["eos_token"], held["chat_template_caps"]) == ("", "", {})
        usual = held["default_generation_settings"]
        assert (usual["id"], usual["id_task"], usual["speculative"], usual["is_processing"]) == (0, -1, False, False)


@pytest.mark.parametrize("prompt", [[1, 2, 3], [[1, 2], [3]], ["a", 1], [1.5]], ids=str)
def test_who_sends_tokens_is_told_to_send_text(client: Client, prompt: object):
    for got in (client.complete(prompt), client.infill("a", prompt=prompt)):
        assert got.status == 400
        assert "Send text as the prompt" in got.json["error"]["message"]
