"""A server in this process that serves HTTP, and a client that may break every rule."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

from engine.models.oracle.model import Case, Oracle
from engine.server.server import EngineServer
from tests.engine.processes import WAIT_S, Home
from tests.engine.server.test_server import serving

BEFORE, ANSWER, AFTER = "def area(w, h):\n    return ", "w * h", "\n\nprint(area(2, 3))\n"
LONG = "+".join("abcdefghijklmnop")
LINES = "\n    a = 1\n\n    return a\nprint(2)"


def new_oracle(_on_percent: object = None) -> Oracle:
    return Oracle(
        "oracle",
        [
            Case(text=f"{BEFORE}▮{ANSWER}▮{AFTER}", alternatives=("h * w",)),
            Case(text=f"slow = ▮{LONG}▮\n", reveal=1, delay_ms=10),
            Case(text=f"def lines():▮{LINES}▮\n"),
            Case(text="smile = '😋' + ▮'é😋é'▮\n", reveal=1),
            Case(text="memory = ▮1▮\n", fault="out_of_memory"),
            Case(text="defect = ▮1▮\n", fault="defect"),
        ],
    )


@dataclass(frozen=True, slots=True)
class Got:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """Of a stream; what is no JSON stays text."""
        lines = [each.removeprefix("data: ") for each in self.body.split("\n\n") if each]
        assert all(f"data: {line}\n\n" in self.body for line in lines)
        return [json.loads(line) if line.startswith("{") else line for line in lines]


class Client:
    """Asks one server."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.host, self.port = host, int(port)

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Got:
        """`body`: bytes as they are, else JSON."""
        connection = HTTPConnection(self.host, self.port, timeout=WAIT_S)
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, sent, {"Content-Type": "application/json", **named})
            answer = connection.getresponse()
            return Got(answer.status, dict(answer.getheaders()), answer.read().decode())
        finally:
            connection.close()

    def infill(self, prefix: str, suffix: str = "\n", **fields: object) -> Got:
        return self.ask("POST", "/infill", {"input_prefix": prefix, "input_suffix": suffix, **fields})

    def complete(self, prompt: object, **fields: object) -> Got:
        return self.ask("POST", "/v1/completions", {"prompt": prompt, **fields})


@contextmanager
def http_server(place: Home, load: Any = new_oracle, **settings: Any) -> Iterator[tuple[Client, EngineServer]]:
    """The client, and the server that it asks."""
    with serving(place, load, **{"http": "127.0.0.1:0", **settings}) as server:
        yield Client(server.status().http), server
