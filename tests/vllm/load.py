"""People typing against one server: `python -m tests.vllm.load MODEL [--people 1,4,16] [--seconds 20]`.

MODEL is a name as dg-lsp takes it (`vllm+http://...`). Each person types held-out programs of the toy language, a token
after the other with the pauses of a typist (seeded, so that it is the same again), and asks at every pause; what is not
there by the next one is cancelled. Prints a line a number of people: times of suggestions that came, canvases a second
at the server, and requests that were shed (cancelled, refused, or not in time).
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

PAUSES_S = (0.12, 0.2, 0.35, 0.8)
"""Between keys, within a word and behind it, and to think."""
WEIGHTS = (8, 4, 2, 1)
DEADLINE_MS = 1000.0


@dataclass(slots=True)
class Tally:
    asked: int = 0
    shed: int = 0
    failed: int = 0
    ms: list[float] = field(default_factory=list)


def type_for(model: Model, seconds: float, seed: int, tally: Tally) -> None:
    """One person."""
    rng = random.Random(seed)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        text = toy_program(rng, "held-out")
        at = len("".join(text.splitlines(keepends=True)[:3]))
        behind = text[at:].split("\n", 1)[1]
        for key in range(at, min(at + 40, len(text) - len(behind))):
            pause_s = rng.choices(PAUSES_S, WEIGHTS)[0]
            ask(model, FillRequest(prefix=text[:key], suffix="\n" + behind, max_tokens=16, deadline_ms=DEADLINE_MS),
                pause_s, tally)  # fmt: skip
            if time.monotonic() > ends:
                return


@torch.inference_mode()
def ask(model: Model, request: FillRequest, pause_s: float, tally: Tally) -> None:
    """Ask, and take it back where the next key comes first."""
    began, tally.asked = time.monotonic(), tally.asked + 1
    filling = answering(model, request)
    answer: Filled | None = None
    try:
        wanted = next(filling)
        while True:
            future = getattr(wanted, "elsewhere", None)
            if future is not None and not wait([future], began + pause_s - time.monotonic()).done:
                break
            wanted = next(filling)
    except StopIteration as end:
        answer = end.value
    except ModelError:
        tally.failed += 1
    finally:
        filling.close()
    if answer and answer.candidates:
        tally.ms.append((time.monotonic() - began) * 1000)
    else:
        tally.shed += 1
    time.sleep(max(0.0, began + pause_s - time.monotonic()))


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
        "asked": tally.asked,
        "suggestions": len(tally.ms),
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
