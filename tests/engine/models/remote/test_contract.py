"""What the real server answered, as recorded: our own server of the tests says the same, and we read it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec
import pytest

from engine.models.remote.completions import read_reply
from engine.models.remote.probe import CANVAS, VOCABULARY
from tests.engine.models.remote.exchanges import FILE, SEED, SERVED, Exchange, asked, exchanges
from tests.engine.models.remote.fake_server import MODEL, FakeServer, fake_server

RECORDED = {each.about: each for each in msgspec.json.decode(FILE.read_bytes(), type=list[Exchange])}


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    with fake_server() as made:
        yield made


def test_what_we_would_ask_is_what_was_recorded():
    now = [(each.about, each.path, each.body) for each in exchanges()]
    assert now == [(each.about, each.path, each.body) for each in RECORDED.values()]


@pytest.mark.parametrize("about", RECORDED)
def test_our_server_accepts_and_refuses_as_the_real_one_does(server: FakeServer, about: str):
    recorded = RECORDED[about]
    status, answer = asked(f"http://127.0.0.1:{server.port}", recorded)
    assert status == recorded.status
    if status == 200 and recorded.path == "/v1/models":
        theirs = recorded.answer["data"][0]
        assert answer["data"] == [{name: theirs[name] for name in ("id", "max_model_len")} | {"root": str(MODEL)}]


def test_the_probe_reads_canvas_and_vocabulary():
    told = [RECORDED[about].answer["error"]["message"] for about in ("probe: canvas", "probe: words")]
    assert [int(pattern.search(text)[1]) for pattern, text in zip((CANVAS, VOCABULARY), told, strict=True)] == [
        96,
        400,
    ]


def test_an_answer_is_read_and_our_server_says_the_same_tokens(server: FakeServer):
    recorded = RECORDED["one step"]
    theirs = read_reply(json.dumps(recorded.answer).encode(), SERVED, len(SEED), choices=3)
    _, answer = asked(f"http://127.0.0.1:{server.port}", recorded)
    ours = read_reply(json.dumps(answer).encode(), SERVED, len(SEED), choices=3)
    assert theirs.ids == ours.ids
    assert theirs.log_probabilities == pytest.approx(ours.log_probabilities, abs=0.2)
    assert [len(each) for each in theirs.choices] == [3] * len(SEED)
