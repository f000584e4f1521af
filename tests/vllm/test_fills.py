"""The real server with the toy model: what it fills, rewrites and fixes, beside the same weights here."""

from __future__ import annotations

import json
import shutil
import time
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from itertools import pairwise
from pathlib import Path
from string import ascii_lowercase

import psutil
import pytest
import torch

from engine.common.errors import BadInput, ModelError
from engine.common.request import FillRequest
from engine.fill.loading import Infiller, load
from engine.models.base import CanvasOrder, CanvasReply, Rows
from engine.models.remote.model import Remote
from tests.engine.models.remote.next_edits import BELONGS, DOES_NOT
from tests.engine.processes import wait_until
from tests.engine.toy_gaps import exact_share, toy_gaps
from tests.vllm.server import MODEL, VllmServer

GAPS = 40


def orders(remote: Infiller, width: int, seed: int, count: int = 1) -> list[CanvasOrder]:
    """Canvases of noise behind the beginning of a program, the last 4 positions pinned."""
    model = remote.model
    generator = torch.Generator().manual_seed(seed)
    context = model.encode(model.prompt(FillRequest(prefix="c = 4\nd = c * 7\n", suffix="g = f * 7\n")).context)
    return [
        CanvasOrder(
            context=context,
            ids=tuple(model.info.noise.draw((width,), generator).tolist()),
            pinned=tuple(range(width - 4, width)),
        )
        for _ in range(count)
    ]


def asked(remote: Infiller, orders: list[CanvasOrder], steps: int) -> Future[list[CanvasReply | None]]:
    assert isinstance(remote.model, Remote)
    return remote.model.denoise(orders, max_steps=steps, choices=0, within_ms=float("inf"))


def test_told_widths_are_filled(remote: Infiller, local: Infiller):
    assert exact_share(remote, toy_gaps(local, GAPS, seed=0), widths_known=True) >= 0.95


def test_unknown_widths_are_found_as_well_as_here(remote: Infiller, local: Infiller):
    gaps = toy_gaps(local, GAPS, seed=1)
    assert abs(exact_share(remote, gaps) - exact_share(local, gaps)) <= 0.03


@pytest.mark.parametrize("seed", range(4))
def test_one_step_says_what_the_same_weights_say_here(remote: Infiller, local: Infiller, seed: int):
    (order,) = orders(remote, 16, seed)
    (reply,) = asked(remote, [order], 1).result(60)
    assert reply is not None
    canvas = torch.tensor([order.ids])
    open_ = torch.ones_like(canvas, dtype=torch.bool)
    open_[0, list(order.pinned)] = False
    rows = Rows(
        contexts=[local.model.encode(order.context.ids)],  # pyright: ignore[reportAttributeAccessIssue]
        canvas=canvas,
        lengths=[16],
        open=open_,
        self_conditioning=None,
        conditioned=[False],
    )
    with torch.inference_mode():
        mine = local.model.step(rows).whole().argmax(dim=-1).tolist()
    assert [token for at, token in enumerate(reply.ids) if at not in order.pinned] == mine


def test_a_broken_line_is_fixed(remote: Infiller):
    request = FillRequest(
        prefix="c = 4\nd = c * 7\n", old="e = d * * 7\n", suffix="f = e * 7\n", language="python", task="fix"
    )
    answer = remote.answer(request)
    assert answer.candidates
    assert answer.candidates[0].text == "e = d * 7\n"


def test_a_line_is_rewritten(remote: Infiller):
    request = FillRequest(
        prefix="c = 4\nd = c * 7\n",
        old="e = c * 3\n",
        suffix="f = e * 7\ng = f * 7\n",
        language="python",
        task="rewrite",
    )
    answer = remote.answer(request)
    assert "e = d * 7\n" in [each.text for each in answer.candidates]


def test_a_missing_argument_is_filled_here(remote: Infiller):
    request = FillRequest(
        prefix="c = 4\nd = c * 7\ne =", old=" ...", suffix="\nf = e * 7\ng = f * 7\nh = g * 7\n", language="python", n=2
    )
    assert " d * 7" in [each.text for each in remote.answer(request).candidates]


def test_where_else_an_edit_belongs_is_read_there_as_here(remote: Infiller, local: Infiller):
    for infiller in (remote, local):
        assert [each.text for each in infiller.answer(BELONGS).candidates] == ["g"]
        assert infiller.answer(DOES_NOT).candidates == ()


def test_single_steps_are_refused_by_name(remote: Infiller):
    with pytest.raises(BadInput, match="on a server, which has no scores"):
        remote.model.score(remote.model.encode([1]), [[5]], [])


def test_the_servers_prefix_cache_holds_what_typing_leaves_as_it_is(server: VllmServer, tmp_path: Path):
    # Its blocks have 128 tokens, so the context has to be longer than the toy's own.
    longer = Path(shutil.copytree(MODEL, tmp_path / "longer"))
    told = json.loads((longer / "dg_lsp.json").read_text())
    (longer / "dg_lsp.json").write_text(json.dumps(told | {"context": 512}))
    remote = load(server.model.replace(str(MODEL), str(longer)))
    lines = "".join(f"{name} = {before} * 7\n" for before, name in pairwise(ascii_lowercase * 2))
    before = server.metric("prefix_cache_hits_total")
    for typed in ("q", "q =", "q = p", "q = p *"):
        remote.fill(lines + typed, "\n", width=4)
    assert server.metric("prefix_cache_hits_total") - before >= 3 * 256


def test_cancelling_ends_the_steps_there(server: VllmServer, remote: Infiller):
    steps = "diffusion_num_denoising_steps_total"
    work = asked(remote, orders(remote, 96, 0), 48)
    wait_until(lambda: server.metric("num_requests_running") > 0, "the request to run")
    work.cancel()
    wait_until(lambda: server.metric("num_requests_running") == 0, "the request to end")
    after = server.metric(steps)
    time.sleep(1)
    assert server.metric(steps) == after


def test_a_thousand_requests_a_third_of_them_cancelled_leave_nothing(server: VllmServer, remote: Infiller):
    flying: list[Future[list[CanvasReply | None]]] = []
    for number in range(1000):
        flying.append(asked(remote, orders(remote, 8, number), 2))
        if number % 3 == 0:
            time.sleep(0.002)
            flying[-1].cancel()
        if len(flying) >= 32:
            wait_for(flying[:16])
            flying = flying[16:]
    for work in flying:
        wait_for([work], 120)
    wait_until(lambda: server.metric("num_requests_running") == 0 == server.metric("num_requests_waiting"), "an end")
    held = [each for each in psutil.Process().net_connections("tcp") if each.raddr and each.raddr.port == server.port]
    assert len(held) <= 64
    assert exact_share(remote, toy_gaps(remote, 3, seed=7), widths_known=True) >= 0.6


def test_another_model_is_refused(server: VllmServer, tmp_path: Path):
    cut = Path(shutil.copytree(MODEL, tmp_path / "cut"))
    tokenizer = json.loads((cut / "tokenizer.json").read_text())
    words = tokenizer["model"]["vocab"]
    words["="], words["*"] = words["*"], words["="]
    (cut / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(ModelError, match=r"has no model 'other': name one of those it has \(toy\)"):
        load(server.model.replace("/toy?", "/other?"))
    with pytest.raises(ModelError, match="another tokenizer"):
        load(server.model.replace(str(MODEL), str(cut)))
    with pytest.raises(ModelError, match="mask token"):
        load(server.model.replace(str(MODEL), str(MODEL.with_name("toy-absorbing"))))
