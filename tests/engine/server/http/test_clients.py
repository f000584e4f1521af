"""Requests as the clients send them, read as they read the answers.

Their published sources say what is sent: llama.vim and llama.vscode (`/infill`), minuet-ai.nvim, Continue, Zed and
Twinny (`/v1/completions`).
"""

from __future__ import annotations

import pytest

from tests.engine.server.http.asking import AFTER, ANSWER, BEFORE, Client

TIMINGS = [
    f"timings/{kind}_{what}" for kind in ("prompt", "predicted") for what in ("n", "ms", "per_token_ms", "per_second")
]
QWEN = "<|fim_prefix|>{}<|fim_suffix|>{}<|fim_middle|>"


def test_llama_vim_fills_a_gap(client: Client):
    above, _, line = BEFORE.rpartition("\n")
    got = client.infill(
        f"{above}\n",
        AFTER,
        prompt=line,
        input_extra=[{"text": "import this\n", "time": [1, 2], "filename": "other.py"}],
        n_predict=128,
        stop=[],
        n_indent=4,
        top_k=40,
        top_p=0.90,
        stream=False,
        samplers=["top_k", "top_p", "infill"],
        cache_prompt=True,
        t_max_prompt_ms=60_000,
        t_max_predict_ms=60_000,
        response_fields=["content", *TIMINGS, "truncated", "tokens_cached"],
    )
    assert got.status == 200
    held = got.json
    # It finds its figures by the paths themselves, and shows a warning where the context was too long.
    assert set(held) == {"content", *TIMINGS, "truncated", "tokens_cached"}
    assert held["content"] == ANSWER
    assert held["truncated"] is False
    assert held["timings/prompt_n"] > 0 < held["timings/predicted_n"]
    assert all(isinstance(held[name], int | float) for name in TIMINGS)


def test_llama_vim_warms_up(client: Client):
    got = client.infill(
        "",
        "",
        input_extra=[{"text": "import this\n", "time": [1, 2], "filename": "other.py"}],
        prompt="",
        n_predict=0,
        temperature=0.0,
        stream=False,
        samplers=[],
        cache_prompt=True,
        t_max_prompt_ms=1,
        t_max_predict_ms=1,
        response_fields=[""],
    )
    assert (got.status, got.json) == (200, {})


def test_llama_vscode_fills_a_gap_and_warms_up(client: Client):
    above, _, line = BEFORE.rpartition("\n")
    shared = {"input_extra": [], "cache_prompt": True, "t_max_prompt_ms": 60_000, "lora": [{"id": 0, "scale": 0.5}]}
    asked = {"prompt": line, "n_predict": 128, "top_k": 40, "top_p": 0.99, "stream": False, "n_indent": 4}
    got = client.infill(
        f"{above}\n", AFTER, samplers=["top_k", "top_p", "infill"], t_max_predict_ms=60_000, **asked, **shared
    )
    assert got.status == 200
    assert got.headers["content-type"] == "application/json"
    held = got.json
    assert held["content"] == ANSWER
    assert held["tokens_cached"] > 0
    assert held["truncated"] is False
    assert {"prompt_n", "prompt_ms", "prompt_per_second", "predicted_n", "predicted_ms", "predicted_per_second"} <= set(
        held["timings"]
    )
    warmed = client.infill("", "", prompt="", n_predict=0, samplers=[], t_max_predict_ms=1, **shared)
    assert (warmed.status, warmed.json["content"], warmed.json["stop"]) == (200, "", True)


def text_of(events: list) -> str:
    """What a client makes of a streamed completion."""
    assert events[-1] == "[DONE]"
    return "".join(choice["text"] for event in events[:-1] for choice in event["choices"])


@pytest.mark.parametrize("stream", [True, False])
def test_minuet_fills_a_gap_by_the_suffix_or_by_markers(client: Client, stream: bool):
    head = {"Accept": "application/json", "Authorization": "Bearer TERM"}
    options = {"model": "PLACEHOLDER", "stream": stream, "max_tokens": 56, "top_p": 0.9, "stop": ["\n\n"]}
    for asked in ({"prompt": BEFORE, "suffix": AFTER}, {"prompt": QWEN.format(BEFORE, AFTER)}):
        got = client.ask("POST", "/v1/completions", {**options, **asked}, **head)
        assert got.status == 200
        assert (text_of(got.events) if stream else got.json["choices"][0]["text"]) == ANSWER


def test_continue_streams_a_completion_by_its_own_template(client: Client):
    got = client.ask(
        "POST",
        "/v1/completions",
        {
            "model": "dg",
            "prompt": "<|repo_name|>mine\n<|file_sep|>other.py\nimport this\n<|file_sep|>area.py\n"
            + QWEN.format(BEFORE, AFTER),
            "max_tokens": 4096,
            "temperature": 0.01,
            "stop": ["<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|repo_name|>", "/src/"],
            "stream": True,
        },
        Authorization="Bearer undefined",
        api_key="",
    )
    assert got.status == 200
    assert got.headers["content-type"].startswith("text/event-stream")
    assert text_of(got.events) == ANSWER
    assert client.ask("GET", "/v1/models").json["data"][0]["id"] == "oracle"


ZED = {
    "code_llama": f"<PRE> {BEFORE} <SUF>{AFTER} <MID>",
    "star_coder": f"<fim_prefix>{BEFORE}<fim_suffix>{AFTER}<fim_middle>",
    "deepseek_coder": f"<｜fim▁begin｜>{BEFORE}<｜fim▁hole｜>{AFTER}<｜fim▁end｜>",
    "qwen": QWEN.format(BEFORE, AFTER),
    "codestral": f"[SUFFIX]{AFTER}[PREFIX]{BEFORE}",
    "glm": f"<|code_prefix|>{BEFORE}<|code_suffix|>{AFTER}<|code_middle|>",
}


@pytest.mark.parametrize("prompt_format", ZED)
def test_zed_fills_a_gap_in_each_of_its_formats(client: Client, prompt_format: str):
    got = client.complete(ZED[prompt_format], model="dg", max_tokens=64, stop=["<|endoftext|>"], environment=None)
    assert got.status == 200
    held = got.json
    # It refuses an answer without these.
    assert isinstance(held["id"], str)
    assert isinstance(held["created"], int)
    assert (held["object"], held["model"]) == ("text_completion", "oracle")
    assert [(choice["text"], choice["finish_reason"]) for choice in held["choices"]] == [(ANSWER, "stop")]
    assert set(held["usage"]) == {"prompt_tokens", "completion_tokens", "total_tokens"}


def test_twinny_streams_a_completion_whichever_provider_it_takes_us_for(client: Client):
    prompt = f"<PRE> {BEFORE} <SUF> {AFTER} <MID>"
    for own in ({"max_tokens": 512}, {"keep_alive": "5m", "options": {"temperature": 0.2, "num_predict": 512}}):
        got = client.complete(prompt, model="dg", stream=True, temperature=0.2, stop=["<PRE>", "<EOT>"], **own)
        assert got.status == 200
        # It takes the first of the fields that a chunk has.
        chunks = [event["choices"][0]["text"] for event in got.events if event != "[DONE]"]
        assert "".join(chunks) == ANSWER
