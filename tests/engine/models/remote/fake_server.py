"""A server that enforces the rules of vLLM's canvases, with a real model behind it, and goes wrong on demand.

The rules are those of the exchanges recorded with the real server (`exchanges.json`): test_contract.py holds both
against the same requests.
"""

from __future__ import annotations

import json
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.common.request import Draft
from engine.fill.canvas import new_canvas
from engine.fill.constraints import in_turn
from engine.fill.denoise import denoise
from engine.fill.executor import drive
from engine.fill.loading import Infiller, load
from engine.fill.sampling import published_policies
from engine.models.base import Rows

MODEL = Path(__file__).parents[3] / "models" / "toy-uniform"
CERTIFICATES = Path(__file__).parent / "certificates"
NAME, KEY = "toy", "secret"
MAX_MODEL_LEN = 1024


@cache
def toy() -> Infiller:
    return load(str(MODEL), "cpu")


@dataclass
class FakeServer:
    """`faults`: what goes wrong with the next completions, one after the other; "" is nothing."""

    port: int = 0
    scheme: str = "http"
    faults: list[str] = field(default_factory=list)
    version: str = "0.32.0"
    root: str = str(MODEL)
    names: tuple[str, ...] = (NAME,)
    """Of the models it lists."""
    delay_s: float = 0.0
    canvases: bool = True
    """Whether it knows seeded canvases."""
    asked: list[tuple[str, Any]] = field(default_factory=list)
    """Paths and bodies."""
    waiting: int = 0
    """Requests that its metrics say are waiting."""
    cut: int = 0
    """Requests whose client went away before it was answered."""
    connections: int = 0
    canned: bytes = b""
    """An answer to give at once, whatever is asked."""
    told: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """By path, bodies in place of its own; of completions, with 400, to what is asked before there is any text."""

    @property
    def model(self) -> str:
        return f"vllm+{self.scheme}://127.0.0.1:{self.port}/{NAME}?tokenizer={MODEL}"

    @property
    def completions(self) -> list[Any]:
        """Those that were more than a probe."""
        return [body for path, body in self.asked if path == "/v1/completions" and "diffusion_pinned" in str(body)]


@contextmanager
def fake_server(*, certificate: str = "", port: int = 0, **options: Any) -> Iterator[FakeServer]:
    """A server on the loopback interface until the end of the block. `certificate`: valid or expired, for TLS."""
    told = FakeServer(**options)
    lock = threading.Lock()
    sockets: list[socket.socket] = []
    stopping = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet

        def setup(self) -> None:
            super().setup()
            told.connections += 1
            sockets.append(self.connection)

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            told.asked.append((self.path, None))
            if self.path in told.told:
                self.send(200, told.told[self.path])
            else:
                self.answer(*self.get())

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            told.asked.append((self.path, body))
            if self.path in told.told and "diffusion_pinned" not in str(body):
                self.send(400 if self.path == "/v1/completions" else 200, told.told[self.path])
            elif self.path == "/tokenize":
                self.answer(200, {"tokens": toy().model.tokenize(body["prompt"])})
            elif self.headers.get("Authorization") != f"Bearer {KEY}":
                self.answer(401, {"error": "Unauthorized"})
            elif told.canned and "diffusion_pinned" in str(body):
                self.send(200, told.canned)
            else:
                self.complete(body)

        def get(self) -> tuple[int, Any]:
            if self.path == "/metrics":
                return 200, f'vllm:num_requests_waiting{{engine="0"}} {told.waiting}.0\n'
            if self.path == "/version":
                return 200, {"version": told.version}
            if self.headers.get("Authorization") != f"Bearer {KEY}":
                return 401, {"error": "Unauthorized"}
            if self.path == "/v1/models":
                shared = {"root": told.root, "max_model_len": MAX_MODEL_LEN}
                return 200, {"data": [{"id": name} | shared for name in told.names]}
            return 404, {"detail": "Not Found"}

        def complete(self, body: Any) -> None:
            fault = told.faults.pop(0) if told.faults and "diffusion_pinned" in str(body) else ""
            if fault == "cut before":
                self.close_connection = True
                self.connection.close()
                return
            if fault in ("500", "503"):
                self.answer(int(fault), {"error": {"message": "EngineCore is gone.", "code": int(fault)}})
                return
            why = refusal(body) if told.canvases else ""
            if why:
                code = 404 if "does not exist" in why else 400
                self.answer(code, {"error": {"message": why, "code": code}})
                return
            stopping.wait(5.0 if fault == "slow" else told.delay_s)
            if self.client_is_gone():
                told.cut += 1
                self.close_connection = True
                return
            with lock:
                reply = completion(body, fault) if told.canvases else {"choices": []}
            if fault == "cut within":
                data = json.dumps(reply).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data[: len(data) // 2])
                self.close_connection = True
                return
            self.answer(200, reply)

        def client_is_gone(self) -> bool:
            readable = select.select([self.connection], [], [], 0)[0]
            try:
                return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)
            except (OSError, ValueError):  # TLS sockets can't be peeked at
                return False

        def answer(self, status: int, value: Any) -> None:
            self.send(status, value.encode() if isinstance(value, str) else json.dumps(value).encode())

        def send(self, status: int, data: bytes) -> None:
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
                self.wfile.flush()
            except OSError:
                told.cut += 1

    class Server(ThreadingHTTPServer):
        # Awaited at the end: who leaves a thread in the middle of a model's step ends in a crash.
        daemon_threads = False
        request_queue_size = 64

        def handle_error(self, request: Any, client_address: Any) -> None:
            # Clients go away; that is what some tests are about.
            told.cut += 1

    server = Server(("127.0.0.1", port), Handler)
    told.port = server.server_address[1]
    if certificate:
        told.scheme = "https"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATES / f"{certificate}.pem", CERTIFICATES / "server.key")
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield told
    finally:
        stopping.set()
        server.shutdown()
        # Its threads would go on answering those who are connected.
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        server.server_close()
        thread.join(5)


def refusal(body: Any) -> str:
    """Why vLLM would answer with 400 or 404, in its words; empty where it would not."""
    xargs = body.get("vllm_xargs", {})
    info = toy().model.info
    if body["model"] != NAME:
        return f"The model `{body['model']}` does not exist. Valid aliases: {NAME}."
    for name in ("seed", "min_p", "min_tokens", "logit_bias", "allowed_token_ids", "response_format"):
        if name in body:
            return f"{name} is not supported for diffusion models."
    if body.get("temperature", 1) != 1:
        return "temperature must be 1 for diffusion models."
    if body.get("logprobs", 0) > 20:
        return f"Requested sample logprobs of {body['logprobs']}, which is greater than max allowed: 20"
    width = xargs.get("diffusion_canvas_length", info.canvas_length)
    if not 1 <= width <= info.canvas_length:
        return f"diffusion_canvas_length must be in [1, {info.canvas_length}], got {width}. (parameter=extra_args)"
    seed, pinned = xargs.get("diffusion_seed_canvas"), xargs.get("diffusion_pinned")
    if seed is not None and not all(0 <= token < info.noise.vocab_size for token in seed):
        return f"diffusion_seed_canvas ids must be in [0, {info.noise.vocab_size}). (parameter=extra_args)"
    if seed is not None and len(seed) != width:
        return f"diffusion_seed_canvas must hold exactly {width} ids, got {len(seed)}. (parameter=extra_args)"
    if pinned is not None and (seed is None or not all(0 <= at < width for at in pinned)):
        return f"diffusion_pinned must be positions in [0, {width}). (parameter=extra_args)"
    if xargs.get("diffusion_max_steps", 1) < 1:
        return "diffusion_max_steps must be at least 1. (parameter=extra_args)"
    if xargs.get("diffusion_read_only", 1) not in (0, 1):
        return "diffusion_read_only must be 0 or 1. (parameter=extra_args)"
    return ""


def completion(body: Any, fault: str = "") -> dict[str, Any]:
    """The toy model's answer, through our own loop."""
    model, xargs = toy().model, body["vllm_xargs"]
    seed, pinned = xargs["diffusion_seed_canvas"], set(xargs["diffusion_pinned"])
    generator = torch.Generator().manual_seed(len(seed))
    context = model.encode(body["prompt"])
    row = [token if at in pinned else None for at, token in enumerate(seed)]
    canvas = new_canvas([context], [row], model.info.noise, generator)
    canvas.ids = torch.tensor([seed])

    policies = published_policies(model.info.sampling, model.info.noise, in_turn())
    policies = replace(policies, max_steps=xargs["diffusion_max_steps"])
    first = logits_of(context, torch.tensor([seed]))
    if xargs["diffusion_max_steps"] > 1:
        drive(
            toy().model,
            denoise(canvas, policies, model.info.noise, generator, draft=lambda _: Draft(step=0, text="")),
        )
        # The model's own say where it is pinned, the canvas elsewhere.
        first = logits_of(context, canvas.best)
    said = first.log_softmax(dim=-1)
    ids = said.argmax(dim=-1).tolist()
    if xargs["diffusion_max_steps"] > 1:
        ids = [token if at in pinned else int(canvas.best[0, at]) for at, token in enumerate(ids)]
    values = [float(said[at, token]) for at, token in enumerate(ids)]
    ids = [*ids[:-1], 10**6] if fault == "wrong ids" else ids[:-1] if fault == "wrong length" else ids
    top = said.topk(body["logprobs"], dim=-1)
    named = [
        {f"token_id:{token}": value for token, value in zip(tokens, likely, strict=True)}
        for tokens, likely in zip(top.indices.tolist(), top.values.tolist(), strict=True)
    ]
    logprobs = {"token_logprobs": values, "tokens": [f"token_id:{token}" for token in ids], "top_logprobs": named}
    return {"choices": [{"index": 0, "token_ids": ids, "logprobs": logprobs, "finish_reason": "length", "text": ""}]}


@torch.inference_mode()
def logits_of(context: Any, canvas: Tensor) -> Tensor:
    """Raw logits [L, V] of all positions of one canvas [1, L], without self-conditioning."""
    rows = Rows(
        contexts=[context],
        canvas=canvas,
        lengths=[canvas.shape[1]],
        open=torch.ones_like(canvas, dtype=torch.bool),
        self_conditioning=None,
        conditioned=[False],
    )
    return toy().model.step(rows).whole()
