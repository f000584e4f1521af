"""People typing against one server: `python -m tests.vllm.load MODEL [--people 1,4,16] [--seconds 60]`.

MODEL is a name as dg-lsp takes it (`vllm+http://...`). Each person is a language server and an engine of their own, in
which a recorded session is replayed with its keys and pauses, as `dg-lsp replay` does it with VS Code's manners. Prints
a line a number of people: keys, times from a key to an answer that was still wanted, requests that were shed (the next
key came first), canvases a second at the server. Without MODEL: our own time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from http.client import HTTPConnection
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any

from dg_lsp.replay.clients import STYLES
from dg_lsp.replay.connection import served
from dg_lsp.replay.editor import Editor
from dg_lsp.replay.player import Player
from dg_lsp.replay.session import Session, read_session
from dg_lsp.replay.stage import own_engine, ready
from engine.common.credentials import SERVER_KEY
from engine.common.percentiles import percentile
from engine.common.processes import python_module
from engine.common.request import FillRequest
from engine.common.server_address import server_address
from engine.fill.answering import answering
from engine.fill.executor import drive
from engine.fill.loading import load
from tests.engine.models.remote.fake_server import KEY, completion, fake_server
from tests.vllm.server import metric

SESSIONS = sorted(Path(__file__).parents[1].joinpath("cases", "sessions").glob("*.jsonl"))
BEGIN_WITHIN_S = 3.0
"""People do not begin at the same moment."""


async def measured(
    model: str, people: int, sessions: Sequence[Path], seconds: float, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The figures for so many people, who take turns with the sessions and stop after `seconds`. Raises SessionError
    where a session can't be read, or the model is not there."""
    read = [first_seconds(read_session(path), seconds) for path in sessions]
    url = server_address(model).url
    async with AsyncExitStack() as stack:
        players = [await stack.enter_async_context(person(model, settings)) for _ in range(people)]

        async def types(at: int) -> float:
            await asyncio.sleep(random.Random(at).uniform(0, BEGIN_WITHIN_S))
            await players[at].play(read[at % len(read)])
            return time.monotonic()

        before, began = finished(url), time.monotonic()
        ended = max(await asyncio.gather(*map(types, range(people))))
        canvases = finished(url) - before
    outcomes = [player.outcome for player in players]
    times_ms = [each for outcome in outcomes for each in outcome.latencies_ms]
    return {
        "people": people,
        "seconds": round(ended - began),
        "keys": sum(each.keys for each in outcomes),
        "answered": len(times_ms),
        "suggestions": sum(each.suggestions for each in outcomes),
        "p50_ms": percentile(times_ms, 50, digits=0),
        "p95_ms": percentile(times_ms, 95, digits=0),
        "canvases_per_s": round(canvases / (ended - began), 1),
        "shed": sum(each.superseded for each in outcomes),
        "stale": sum(each.stale for each in outcomes),
        "errors": sum(each.errors for each in outcomes),
    }


@asynccontextmanager
async def person(model: str, settings: Mapping[str, Any]) -> AsyncGenerator[Player]:
    """Somebody in front of an editor, whose engine knows the server."""
    style = STYLES["vscode"]
    command = [*python_module("dg_lsp"), "serve", "--model", model]
    with own_engine() as environment:
        async with served(command, environment, encodings=style.encodings, settings=settings) as wire:
            await ready(wire)
            yield Player(Editor(wire, wire.initialized["capabilities"]["positionEncoding"]), style, speed=1)


def first_seconds(session: Session, seconds: float) -> Session:
    return replace(session, events=tuple(each for each in session.events if each.at < seconds * 1000))


def finished(url: str) -> float:
    """Canvases that the server has taken to their end; NaN where it does not tell."""
    with suppress(OSError):
        return metric(url, "request_success_total", 'finished_reason="length"')
    return float("nan")


def own_time() -> dict[str, float]:
    """Milliseconds (p50) that a fill of given width takes with a server in another process that answers at once, and
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
    parser.add_argument("--session", type=Path, action="append", help="others than those of the tests; may be repeated")
    parser.add_argument("--seconds", type=float, default=60, help="of each session")
    parser.add_argument("--settings", type=json.loads, default={}, help="the people's, as JSON")
    options = parser.parse_args()
    if options.model is None:
        os.environ[SERVER_KEY] = KEY
        print(json.dumps(own_time()))  # noqa: T201
        return
    for people in map(int, options.people.split(",")):
        figures = measured(options.model, people, options.session or SESSIONS, options.seconds, options.settings)
        print(json.dumps(asyncio.run(figures)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
