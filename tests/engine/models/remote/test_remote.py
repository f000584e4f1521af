"""A model on a server, against one that goes wrong on demand."""

from __future__ import annotations

import asyncio
import json
import math
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from msgspec import structs

from engine.common.errors import BadInput, ModelError
from engine.common.request import Filled, FillRequest
from engine.fill.loading import Infiller, load
from engine.models.base import CanvasOrder, CanvasReply
from tests.engine.models.remote.fake_server import CERTIFICATES, KEY, MODEL, FakeServer, completion, fake_server, toy
from tests.engine.models.remote.next_edits import BELONGS, DOES_NOT
from tests.engine.processes import wait_until
from tests.engine.toy_gaps import exact_share, toy_gaps

GAP = FillRequest(prefix="c = 4\nd = c * 7\ne =", suffix="\nf = e * 7\ng = f * 7\n", width=3)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DG_LSP_SERVER_KEY", KEY)


@pytest.fixture
def server(key: None) -> Iterator[FakeServer]:
    with fake_server() as made:
        yield made


def filled(infiller: Infiller, **changes: Any) -> list[str]:
    values = {name: getattr(GAP, name) for name in ("prefix", "suffix", "width")} | changes
    return [each.text for each in infiller.answer(FillRequest(**values)).candidates]


def test_gaps_are_filled_as_here(server: FakeServer):
    remote, gaps = load(server.model), toy_gaps(toy(), 12, seed=0, longest=12)
    assert exact_share(remote, gaps, widths_known=True) >= 0.9
    assert exact_share(remote, gaps) >= 0.8


def test_candidates_are_asked_for_side_by_side(server: FakeServer):
    remote = load(server.model)
    filled(remote)
    filled(remote, n=4)
    seeds = [tuple(body["vllm_xargs"]["diffusion_seed_canvas"]) for body in server.completions[-4:]]
    assert len(set(seeds)) == 4
    assert len({tuple(body["prompt"]) for body in server.completions}) == 1
    assert server.connections >= 4


def test_connections_are_used_again(server: FakeServer):
    remote = load(server.model)
    for seed in range(10):
        filled(remote, seed=seed)
    # One after the other, and the metrics beside.
    assert len(server.completions) == 10
    assert server.connections <= 2


def test_an_edit_keeps_what_is_pinned(server: FakeServer):
    remote = load(server.model)
    request = FillRequest(
        prefix="c = 4\nd = c * 7\n", old="e = d * * 7\n", suffix="f = e * 7\n", language="python", task="fix"
    )
    answer = remote.answer(request)
    assert [each.text for each in answer.candidates][:1] == ["e = d * 7\n"]
    for body in server.completions:
        assert body["vllm_xargs"]["diffusion_read_only"] == 1
        assert not {"seed", "echo", "prompt_logprobs", "temperature"} & body.keys()


def test_where_else_an_edit_belongs_is_read_on_the_server(server: FakeServer):
    remote = load(server.model)
    (candidate,) = remote.answer(BELONGS).candidates
    assert candidate.text == "g"
    assert [body["logprobs"] for body in server.completions] == [20, 20]
    assert remote.answer(DOES_NOT).candidates == ()
    # A line that is longer than a canvas is read by nobody.
    count = len(server.completions)
    remote.answer(structs.replace(BELONGS, suffix=BELONGS.suffix.replace("* 7", f"* ({'1 + ' * 60}7)")))
    assert len(server.completions) == count


@pytest.mark.parametrize("late", [0, 1])
def test_what_was_read_in_half_speaks_neither_for_an_edit_nor_against_it(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, late: int
):
    remote = load(server.model)
    model: Any = remote.model
    denoise = model.denoise

    def denoised(orders: list[CanvasOrder], **how: Any) -> Future[list[CanvasReply | None]]:
        replies = denoise(orders, **how).result(10)
        replies[late] = None
        work: Future[list[CanvasReply | None]] = Future()
        work.set_result(replies)
        return work

    monkeypatch.setattr(model, "denoise", denoised)
    assert remote.answer(BELONGS).candidates == remote.answer(DOES_NOT).candidates == ()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"version": "0.30.2"}, "runs vLLM 0.30, which takes no canvas: have it run vLLM 0.31 or newer"),
        ({"version": "nginx"}, "is no vLLM"),
        ({"canvases": False}, "does not take a canvas for toy: have it run vLLM 0.31"),
    ],
)
def test_a_server_that_can_not_is_refused_before_it_gets_any_text(changes: dict[str, Any], told: str):
    with fake_server(**changes) as server, pytest.raises(ModelError, match=told):
        load(server.model)
    assert server.completions == []


def test_another_model_key_tokenizer_or_kind_of_noise_is_refused(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(ModelError, match=r"has no model 'other': name one of those it has \(toy\)"):
        load(server.model.replace("/toy?", "/other?"))
    with pytest.raises(ModelError, match="has a mask token"):
        load(server.model.replace(str(MODEL), str(MODEL.with_name("toy-absorbing"))))
    with pytest.raises(ModelError, match="which has a mask token: run it on this machine"):
        load(server.model.replace(str(MODEL), str(MODEL.with_name("toy-masked"))))
    cut = Path(shutil.copytree(MODEL, tmp_path / "cut"))
    tokenizer = json.loads((cut / "tokenizer.json").read_text())
    words = tokenizer["model"]["vocab"]
    words["="], words["*"] = words["*"], words["="]
    (cut / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(ModelError, match="another tokenizer than the one here"):
        load(server.model.replace(str(MODEL), str(cut)))
    config = json.loads((MODEL / "config.json").read_text())
    config["text_config"]["vocab_size"] = 416
    shutil.copy(MODEL / "tokenizer.json", cut)
    (cut / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="has 400 tokens, the tokenizer here is for 416"):
        load(server.model.replace(str(MODEL), str(cut)))
    monkeypatch.setenv("DG_LSP_SERVER_KEY", "wrong")
    with pytest.raises(ModelError, match="does not take the key: set DG_LSP_SERVER_KEY"):
        load(server.model)
    assert server.completions == []


def test_names_of_a_server_are_told_as_far_as_a_message_may_go():
    names = ("\x1b]0;pwn\x07" + "x" * 1_000_000, "y" * 1_000_000, *(f"model-{at}" for at in range(1000)))
    with fake_server(names=names) as server, pytest.raises(ModelError, match="has no model 'toy'") as caught:
        load(server.model)
    told = str(caught.value)
    assert "(model-0, model-1, model-10, " in told
    assert told.isprintable()
    assert len(told) < 2000


def test_what_is_no_http_is_told_as_far_as_a_message_may_go():
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            for _ in range(2):
                with listening.accept()[0] as connection:
                    connection.recv(4096)
                    connection.sendall(b"x" * 10_000 + b"\r\n\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with pytest.raises(ModelError, match="can't be reached") as caught:
            load(f"vllm+http://127.0.0.1:{listening.getsockname()[1]}/toy")
        thread.join(10)
    assert len(str(caught.value)) < 2000


def test_a_path_that_a_server_names_is_not_read(server: FakeServer):
    with pytest.raises(ModelError, match="does not say which published model toy is"):
        load(server.model.partition("?")[0])


@pytest.mark.parametrize(
    ("root", "told"),
    [
        ("src/model", "is not on this machine"),
        ("src/a--model", "does not say which published model toy is"),
        ("a" * 300 + "/b", "does not say which published model toy is"),
    ],
)
def test_a_directory_that_a_server_names_is_not_read(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str, told: str
):
    shutil.copytree(MODEL, tmp_path / "src" / "model")
    monkeypatch.chdir(tmp_path)
    server.root = root
    with pytest.raises(ModelError, match=told):
        load(server.model.partition("?")[0])


def test_a_tokenizer_of_the_users_may_be_a_directory_in_the_form_of_a_hub_id(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shutil.copytree(MODEL, tmp_path / "src" / "model")
    monkeypatch.chdir(tmp_path)
    assert filled(load(server.model.replace(str(MODEL), "src/model"))) == [" d * 7"]
    for name in ("a" * 300, "a" * 300 + "/b"):
        with pytest.raises(ModelError, match="name a directory or a Hub id as tokenizer"):
            load(server.model.replace(str(MODEL), name))


def test_a_connection_that_was_closed_is_tried_once_more(server: FakeServer):
    remote = load(server.model)
    server.faults += ["cut before"]
    assert filled(remote) == [" d * 7"]
    server.faults += ["cut before", "cut before"]
    with pytest.raises(ModelError, match=r"can't be reached.*dg-lsp engine restart --model bundled"):
        filled(remote)
    assert filled(remote) == [" d * 7"]


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("500", "answered with 500"),
        ("503", "has too much to do"),
        ("cut within", "broke off in the middle of an answer"),
        ("wrong length", "answered with 6 tokens where 7 were asked for"),
        ("wrong ids", "tokens that the model does not have"),
    ],
)
def test_a_failure_is_told_once_and_over_with_the_next_answer(server: FakeServer, fault: str, told: str):
    remote = load(server.model)
    server.faults.append(fault)
    with pytest.raises(ModelError, match=told):
        filled(remote, suffix="\nf =")
    count = len(server.completions)
    time.sleep(1.1 if fault == "503" else 0)
    assert filled(remote) == [" d * 7"]
    assert len(server.completions) == count + 1


def _answer(*, choice: bytes = b'"token_id:1": -1.0', more: bytes = b"") -> bytes:
    one = b'{"token_ids": [1], "logprobs": {"token_logprobs": [-1.0], "top_logprobs": [{%s}]}}' % choice
    return b'{%s"choices": [%s]}' % (more, one)


@pytest.mark.parametrize(
    "canned",
    [
        _answer(choice=b'"token_id:%s": -1.0' % (b"9" * 5000)),
        _answer(choice=b'"\xff": -1.0'),
        _answer(choice=b'"token_id:1": -1e999'),
        _answer(more=b'"x": %s1%s, ' % (b"[" * 200_000, b"]" * 200_000)),
        b"\xff",
    ],
)
def test_an_answer_that_can_not_be_read_is_told_in_a_sentence(server: FakeServer, canned: bytes):
    model: Any = load(server.model).model
    server.canned = canned
    order = CanvasOrder(context=model.encode([20]), ids=(1,), pinned=())
    with pytest.raises(ModelError, match=r"The server at http://127\.0\.0\.1:\d+ .*can't be read") as caught:
        model.denoise([order], max_steps=1, choices=1, within_ms=10_000).result(10)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("said", [1e308, -1e308])
def test_what_is_said_of_a_token_is_a_probability_whatever_a_server_says(server: FakeServer, said: float):
    model: Any = load(server.model).model
    server.canned = _answer(choice=b'"token_id:1": %s' % str(said).encode())
    order = CanvasOrder(context=model.encode([20]), ids=(1,), pinned=())
    (reply,) = model.denoise([order], max_steps=1, choices=1, within_ms=10_000).result(10)
    assert 0.0 <= math.exp(reply.choices[0][1]) <= 1.0
    assert math.isfinite(100 * reply.choices[0][1])


_DEEP = b'{"x": %s1%s}' % (b"[" * 200_000, b"]" * 200_000)


@pytest.mark.parametrize("body", [_DEEP, b'{"version": "\xff"}', b'{"data": "\xff", "tokens": "\xff"}'])
@pytest.mark.parametrize("path", ["/version", "/v1/models", "/v1/completions", "/tokenize"])
def test_what_a_server_says_of_itself_and_can_not_be_read_is_told_in_a_sentence(path: str, body: bytes):
    with fake_server(told={path: body}) as server, pytest.raises(ModelError, match=r"http://127\.0\.0\.1") as caught:
        load(server.model)
    assert len(str(caught.value)) < 500
    assert server.completions == []


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"/version": b'{"version": "%s.1"}' % (b"9" * 5000)}, "is no vLLM"),
        ({"/v1/completions": b"must hold exactly %s ids" % (b"9" * 5000)}, "does not take a canvas"),
        ({"/v1/completions": b"must hold exactly %s ids must be in [0, 9)" % (b"9" * 4000)}, "does not take a canvas"),
    ],
)
def test_a_number_without_end_is_none(told: dict[str, bytes], why: str):
    with fake_server(told=told) as server, pytest.raises(ModelError, match=why) as caught:
        load(server.model)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("said", [b"1e999", b"1.2.3", b"1e308\nvllm:num_requests_waiting 1e308", b"9" * 5000])
def test_metrics_without_sense_stop_no_fill(server: FakeServer, said: bytes):
    remote: Any = load(server.model)
    model = remote.model
    server.told["/metrics"] = b"vllm:num_requests_waiting %s\n" % said
    assert filled(remote) == [" d * 7"]
    wait_until(lambda: model._looking.done(), "the metrics")
    assert model._looking.exception() is None
    assert filled(remote) == [" d * 7"]


def test_a_server_with_too_much_to_do_is_left_alone_for_a_moment(server: FakeServer):
    remote = load(server.model)
    server.faults.append("503")
    count = len(server.completions)
    for _ in range(3):
        with pytest.raises(ModelError, match="too much to do"):
            filled(remote)
    assert len(server.completions) == count + 1


def test_less_is_asked_of_a_server_whose_requests_wait(server: FakeServer):
    remote = load(server.model)
    server.waiting = 8
    filled(remote)
    wait_until(lambda: remote.model.waiting == 8, "the metrics")  # pyright: ignore
    count = len(server.completions)
    order = _order(remote.model)
    for _ in range(5):
        # Keys that come sooner than the pause ends.
        work = remote.model.denoise([order], max_steps=2, choices=0, within_ms=10_000)  # pyright: ignore
        time.sleep(0.02)
        work.cancel()
    filled(remote)
    assert len(server.completions) == count + 1


def test_the_deadline_is_kept_and_a_long_silence_is_told(server: FakeServer):
    remote = load(server.model)
    server.faults += ["slow"] * 3
    for _ in range(2):
        began = time.monotonic()
        assert filled(remote, deadline_ms=300) == []
        # The server takes five seconds.
        assert time.monotonic() - began < 4.0
    with pytest.raises(ModelError, match="gives no answer in time"):
        filled(remote, deadline_ms=300)
    assert filled(remote) == [" d * 7"]


def test_fewer_steps_are_asked_for_where_time_is_short(server: FakeServer):
    remote = load(server.model)
    server.delay_s = 0.3
    filled(remote)
    filled(remote, deadline_ms=150)
    first, second = (body["vllm_xargs"]["diffusion_max_steps"] for body in server.completions)
    assert second < first


@pytest.mark.parametrize("silent", ["when asked for a fill", "before that"])
def test_after_an_outage_as_many_steps_are_asked_for_as_before(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, silent: str
):
    remote = load(server.model)
    model: Any = remote.model
    filled(remote)
    with monkeypatch.context() as patch:
        if silent == "before that":
            model._served = None
            patch.setattr(model, "_known", lambda: asyncio.sleep(60))
        else:
            server.faults += ["slow"] * 30
        for _ in range(30):
            with suppress(ModelError):
                filled(remote, deadline_ms=50)
    server.faults.clear()
    for _ in range(4):
        filled(remote, deadline_ms=10_000)
    asked = [body["vllm_xargs"]["diffusion_max_steps"] for body in server.completions]
    assert asked[-1] == asked[0]


def test_a_server_that_became_slow_is_asked_for_fewer_steps_until_it_answers(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
):
    model: Any = load(server.model).model
    order, asked, step_s = _order(model), list[int](), 0.001

    async def one(_served: Any, _order: Any, steps: int, _choices: int) -> CanvasReply:
        asked.append(steps)
        await asyncio.sleep(steps * step_s)
        return CanvasReply(ids=order.ids, log_probabilities=(0.0,) * 7, choices=())

    def answers() -> bool:
        with suppress(ModelError):
            return any(model.denoise([order], max_steps=40, choices=0, within_ms=200).result(10))
        return False

    monkeypatch.setattr(model, "_one", one)
    assert answers()
    step_s = 0.03
    assert any(answers() for _ in range(15))
    assert asked[0] == 40
    assert asked[-1] < 7


def test_requests_that_fail_at_once_say_nothing_of_how_long_steps_take(server: FakeServer):
    remote = load(server.model)
    server.delay_s = 0.3
    filled(remote)
    server.faults += ["500"] * 15
    for _ in range(15):
        with pytest.raises(ModelError, match="answered with 500"):
            filled(remote)
    filled(remote, deadline_ms=150)
    asked = [body["vllm_xargs"]["diffusion_max_steps"] for body in server.completions]
    assert asked[-1] < asked[0]


def test_cancelling_closes_the_socket(server: FakeServer):
    remote = load(server.model)
    server.delay_s = 0.5
    model = remote.model
    order = _order(model)
    work = model.denoise([order], max_steps=2, choices=0, within_ms=60_000)  # pyright: ignore
    wait_until(lambda: server.completions, "the request")
    work.cancel()
    wait_until(lambda: server.cut, "the socket to close")


def test_text_that_may_not_stand_there_is_asked_for_again_with_all_else_pinned(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
):
    remote, end = load(server.model), toy().model.info.forbidden_ids[0]

    def ending(body: Any, fault: str = "") -> dict[str, Any]:
        told = completion(body)
        if len(server.completions) == 1:
            told["choices"][0]["token_ids"][1] = end
        return told

    monkeypatch.setattr("tests.engine.models.remote.fake_server.completion", ending)
    assert filled(remote, prefix="c = 4\nd = c * 7\n", suffix="\nf = e * 7\n", width=5) == ["e = d * 7"]
    again = server.completions[-1]["vllm_xargs"]
    assert len(server.completions) == 2
    assert {0, 1, 2}.isdisjoint(again["diffusion_pinned"])
    assert {3, 4, 5}.issubset(again["diffusion_pinned"])


def test_what_does_not_parse_is_asked_for_again_where_it_is_broken_and_no_more(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
):
    remote = load(server.model)

    def breaking(body: Any, fault: str = "") -> dict[str, Any]:
        told = completion(body)
        if len(server.completions) == 1:
            ids = told["choices"][0]["token_ids"]
            ids[9] = ids[8]
        return told

    monkeypatch.setattr("tests.engine.models.remote.fake_server.completion", breaking)
    request = FillRequest(prefix="c = 4\nd = c * 7\n", suffix="\ng = f * 7\nh = g * 7\n", language="python", width=11)
    (candidate,) = remote.answer(request).candidates
    assert (candidate.text, candidate.syntax) == ("e = d * 7\nf = e * 7", "repaired")
    first, again = (body["vllm_xargs"] for body in server.completions)
    assert set(first["diffusion_pinned"]).isdisjoint(range(11))
    assert set(range(6)).issubset(again["diffusion_pinned"])
    assert again["diffusion_seed_canvas"][:6] == toy().model.tokenize("e = d * 7\n")


def test_candidates_are_ranked_by_what_the_server_said_of_their_tokens(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
):
    remote = load(server.model)
    nine = toy().model.tokenize(" 9")[0]
    said: list[float] = []

    def unlike(body: Any, fault: str = "") -> dict[str, Any]:
        told = completion(body)
        (choice,) = told["choices"]
        if not said:
            choice["token_ids"][2], choice["logprobs"]["token_logprobs"][2] = nine, -3.0
        said.append(sum(choice["logprobs"]["token_logprobs"]))
        return told

    monkeypatch.setattr("tests.engine.models.remote.fake_server.completion", unlike)
    better, worse = remote.answer(structs.replace(GAP, n=2)).candidates
    assert (better.text, worse.text) == (" d * 7", " d * 9")
    # What it would have instead of the suffix counts against both alike.
    assert better.score - worse.score == pytest.approx(said[1] - said[0], abs=1e-3)


def test_a_deadline_that_leaves_no_time_for_another_call_ranks_alike(server: FakeServer):
    remote = load(server.model)
    server.delay_s = 1.0
    (calm,) = remote.answer(GAP).candidates
    (hurried,) = remote.answer(structs.replace(GAP, deadline_ms=1900)).candidates
    assert hurried.text == calm.text
    assert hurried.score == pytest.approx(calm.score, abs=1e-3)


def test_a_long_gap_whose_text_ends_on_its_first_canvas_does_not_go_on_behind_padding(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
):
    remote, info = load(server.model), toy().model.info
    end = info.forbidden_ids[0]

    def ending(body: Any, fault: str = "") -> dict[str, Any]:
        told = completion(body)
        pinned = body["vllm_xargs"]["diffusion_pinned"]
        ids = told["choices"][0]["token_ids"]
        told["choices"][0]["token_ids"] = [token if at < 4 or at in pinned else end for at, token in enumerate(ids)]
        return told

    monkeypatch.setattr("tests.engine.models.remote.fake_server.completion", ending)
    request = structs.replace(GAP, width=None, suffix="\nnothing = like(that)\n", max_tokens=3 * info.canvas_length)
    assert [each.text for each in remote.answer(request).candidates]
    assert all(info.pad_id not in body["prompt"] for body in server.completions)


def test_what_still_may_not_stand_there_is_cut_off(server: FakeServer, monkeypatch: pytest.MonkeyPatch):
    remote, end = load(server.model), toy().model.info.forbidden_ids[0]

    def ending(body: Any, fault: str = "") -> dict[str, Any]:
        told = completion(body)
        told["choices"][0]["token_ids"][2] = end
        return told

    monkeypatch.setattr("tests.engine.models.remote.fake_server.completion", ending)
    (text,) = filled(remote)
    assert " d * 7".startswith(text)
    assert text != " d * 7"


@pytest.mark.parametrize("damage", ["{{ nothing.at.all }}", ""])
def test_a_tokenizers_directory_that_is_damaged_is_a_sentence(changeable: Path, damage: str):
    if damage:
        (changeable / "chat_template.jinja").write_text(damage)
    else:
        config = json.loads((changeable / "config.json").read_text())
        del config["text_config"]
        (changeable / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="can't be loaded"):
        load(f"vllm+http://127.0.0.1:9/toy?tokenizer={changeable}")


def test_a_file_of_authorities_that_is_not_there_is_named():
    for file in ("/nosuch.pem", "~nobody-of-that-name/nosuch.pem"):
        with pytest.raises(ModelError, match=f"{file} holds no certificates that can be read"):
            load(f"vllm+https://localhost:1/m?ca_file={file}")


@pytest.mark.parametrize("certificate", ["valid", "expired"])
def test_certificates_are_verified(certificate: str):
    with fake_server(certificate=certificate) as server:
        with pytest.raises(ModelError, match="certificate that is not trusted"):
            load(server.model.partition("?")[0])
        ours = f"{server.model}&ca_file={CERTIFICATES / 'authority.pem'}"
        if certificate == "valid":
            assert filled(load(ours)) == [" d * 7"]
        else:
            # Who names a tokenizer may begin before the server is there; the first request says what is wrong.
            with pytest.raises(ModelError, match="certificate has expired"):
                filled(load(ours))
            assert server.asked == []


def test_a_server_may_come_later_and_go_and_come_back():
    with fake_server() as server:
        name, port = server.model, server.port
    remote = load(name)
    with pytest.raises(ModelError, match="can't be reached"):
        filled(remote)
    with fake_server(port=port):
        assert filled(remote) == [" d * 7"]
    with pytest.raises(ModelError, match="can't be reached"):
        filled(remote)
    with fake_server(port=port, version="0.30.0") as older:
        with pytest.raises(ModelError, match=r"runs vLLM 0\.30"):
            filled(remote)
        assert older.completions == []


def test_a_server_that_takes_connections_and_says_nothing_hangs_nobody(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("engine.models.remote.model.PROBE_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        name = f"vllm+http://127.0.0.1:{silent.getsockname()[1]}/toy?tokenizer={MODEL}"
        began = time.monotonic()
        remote = load(name)
        with pytest.raises(ModelError, match=r"says nothing: .*dg-lsp engine restart --model bundled"):
            filled(remote)
        assert time.monotonic() - began < 20


def test_http_is_imported_for_those_who_use_it():
    script = "import sys, engine.fill.loading, engine.cli.engine, engine.cli.doctor; print('httpx2' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert told.stdout.strip() == "False"


def test_bad_requests_never_reach_a_server(server: FakeServer):
    remote = load(server.model)
    model: Any = remote.model
    good = _order(model)
    for wrong in ({"ids": (400,) * 7}, {"ids": (-1,) * 7}, {"pinned": (7,)}, {"ids": ()}, {"ids": (20,) * 97}):
        order = type(good)(**{"context": good.context, "ids": good.ids, "pinned": good.pinned} | wrong)
        with pytest.raises(BadInput):
            model.denoise([order], max_steps=2, choices=0, within_ms=1000).result(10)
    long = type(good)(context=model.encode([20] * 1020), ids=good.ids, pinned=good.pinned)
    with pytest.raises(BadInput, match="more than the server's 1024"):
        model.denoise([long], max_steps=2, choices=0, within_ms=1000).result(10)
    assert server.completions == []


def test_our_own_time_is_short(server: FakeServer):
    remote = load(server.model)
    request = GAP
    said: Filled = remote.answer(request)
    server.canned = json.dumps(completion(server.completions[-1])).encode()
    times: list[float] = []
    for _ in range(60):
        began = time.perf_counter()
        assert remote.answer(request).candidates[0].text == said.candidates[0].text
        times.append((time.perf_counter() - began) * 1000)
    # Beside other tests; by itself, `python -m tests.vllm.load` says what it is.
    assert median(times) <= 50, times


def _order(model: Any) -> Any:
    context = model.encode(model.prompt(GAP).context)
    return CanvasOrder(context=context, ids=tuple(range(20, 27)), pinned=(5, 6))
