"""People typing against one server: `python -m tests.vllm.load MODEL [--people 1,4,16] [--seconds 20]`.

MODEL is a name as dg-lsp takes it (`vllm+http://...`). Each person types held-out programs of the toy language with the
pauses of a typist, seeded so that they are the same again, and asks as the language server does: in a burst of typing
later than at rest, and what is not there by the next key is cancelled. Prints a line a number of people: times of
answers that came, canvases a second at the server, requests that were shed (the next key came first). Without MODEL:
our own time.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import re
import threading
import time
import urllib.request
from concurrent.futures import wait
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from multiprocessing.queues import SimpleQueue
from typing import Any

import torch

from dg_lsp.suggest.in_flight import Debounce
from engine.core.errors import ModelError
from engine.core.percentiles import percentile
from engine.core.request import Filled, FillRequest
from engine.core.server_address import server_address
from engine.decoding.executor import drive
from engine.edit.answering import answering
from engine.loader.loading import load
from engine.models.base import Model
from tests.engine.models.remote.fake_server import KEY, completion, fake_server
from tests.engine.toys.language import toy_program

PAUSES_S = (0.12, 0.2, 0.35, 0.8, 2.0)
"""Between keys, within a word and behind it, and to think."""
WEIGHTS = (8, 4, 2, 1, 1)
DEADLINE_MS = 2000.0
MAX_DELAY_MS = 150.0
"""Of `inline.max_delay_ms`."""


@dataclass(slots=True)
class Tally:
    keys: int = 0
    asked: int = 0
    suggestions: int = 0
    shed: int = 0
    failed: int = 0
    ms: list[float] = field(default_factory=list)


def type_for(model: Model, seconds: float, seed: int, tally: Tally) -> None:
    """One person."""
    rng = random.Random(seed)
    debounce = Debounce(MAX_DELAY_MS)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        text = toy_program(rng, "held-out")
        start = len("".join(text.splitlines(keepends=True)[:3]))
        for at in range(start, start + 40):
            suffix = "\n" + text[at:].partition("\n")[2]
            request = FillRequest(prefix=text[:at], suffix=suffix, max_tokens=8, deadline_ms=DEADLINE_MS)
            ask(model, request, rng.choices(PAUSES_S, WEIGHTS)[0], debounce, tally)
            if time.monotonic() > ends:
                return


@torch.inference_mode()
def ask(model: Model, request: FillRequest, pause_s: float, debounce: Debounce, tally: Tally) -> None:
    """A key, and what is asked for behind it; taken back where the next key comes first."""
    next_key = time.monotonic() + pause_s
    debounce.key(time.monotonic() * 1000)
    delay_s = debounce.delay_ms(time.monotonic() * 1000) / 1000
    time.sleep(min(delay_s, pause_s))
    tally.keys += 1
    if delay_s >= pause_s:
        return
    began, tally.asked = time.monotonic(), tally.asked + 1
    filling = answering(model, request)
    answer: Filled | None = None
    try:
        wanted = next(filling)
        while True:
            future = getattr(wanted, "elsewhere", None)
            if future is not None and not wait([future], max(0.0, next_key - time.monotonic())).done:
                break
            wanted = next(filling)
    except StopIteration as end:
        answer = end.value
    except ModelError:
        tally.failed += 1
    finally:
        filling.close()
    took_ms = (time.monotonic() - began) * 1000
    if answer is None:
        debounce.gave_up(took_ms)
        tally.shed += 1
    else:
        debounce.answered(took_ms)
        tally.ms.append(took_ms)
        tally.suggestions += bool(answer.candidates)
    time.sleep(max(0.0, next_key - time.monotonic()))


def committed(url: str) -> float:
    """Canvases that the server has finished; NaN where it does not tell."""
    with suppress(OSError), urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        told = answer.read().decode()
        return sum(map(float, re.findall(r"^vllm:request_success_total{[^\n]*} (\S+)$", told, re.MULTILINE)))
    return float("nan")


def measured(name: str, people: int, seconds: float) -> dict[str, float | int | None]:
    """The figures for so many people, each with an engine's client of their own."""
    url = server_address(name).url
    models = [load(name).model for _ in range(people)]
    tally = Tally()
    before, began = committed(url), time.monotonic()
    threads = [
        threading.Thread(target=type_for, args=(model, seconds, seed, tally)) for seed, model in enumerate(models)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    took_s = time.monotonic() - began
    return {
        "people": people,
        "keys": tally.keys,
        "asked": tally.asked,
        "answered": len(tally.ms),
        "suggestions": tally.suggestions,
        "p50_ms": percentile(tally.ms, 50),
        "p95_ms": percentile(tally.ms, 95),
        "canvases_per_s": round((committed(url) - before) / took_s, 1),
        "shed": tally.shed,
        "failed": tally.failed,
    }


def own_time() -> dict[str, float]:
    """Milliseconds (p50) that a fill of told width takes with a server in another process that answers at once, and
    those of the bare exchange."""
    context = multiprocessing.get_context("spawn")
    told = context.SimpleQueue()
    server = context.Process(target=answer_at_once, args=(told,), daemon=True)
    server.start()
    try:
        model = load(told.get()).model
        request = FillRequest(prefix="c = 4\nd = c * 7\ne =", suffix="\nf = e * 7\ng = f * 7\n", width=3)
        drive(model, answering(model, request))
        body = json.dumps(told.get()).encode()
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        bare = HTTPConnection(server_address(model.info.name).url.removeprefix("http://"))
        fills: list[float] = []
        exchanges: list[float] = []
        for _ in range(300):
            began = time.perf_counter()
            drive(model, answering(model, request))
            between = time.perf_counter()
            bare.request("POST", "/v1/completions", body, headers)
            bare.getresponse().read()
            fills.append((between - began) * 1000)
            exchanges.append((time.perf_counter() - between) * 1000)
        return {
            "fill_ms": round(percentile(fills, 50) or 0, 2),
            "server_ms": round(percentile(exchanges, 50) or 0, 2),
        }
    finally:
        server.kill()
        server.join()


def answer_at_once(told: SimpleQueue[Any]) -> None:
    """A server whose first answer is the toy's, and all others are the same."""
    with fake_server() as server:
        told.put(server.model)
        while not server.completions:
            time.sleep(0.01)
        body = server.completions[-1]
        server.canned = json.dumps(completion(body)).encode()
        told.put(body)
        while True:
            time.sleep(0.05)
            server.asked.clear()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", help="none: only our own time is measured, with a server that needs none")
    parser.add_argument("--people", default="1,4,16")
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    if options.model is None:
        print(json.dumps(own_time()))  # noqa: T201
        return
    for people in map(int, options.people.split(",")):
        print(json.dumps(measured(options.model, people, options.seconds)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
