"""An engine's options and bounds. Imports nothing of the engine, so that starters are quick."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from engine.common.errors import BadInput
from engine.common.names import AUTO
from engine.models.checkpoints.working import ROWS

Seconds = Annotated[float, msgspec.Meta(ge=0.1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on the queue and on one forward pass."""

    jobs: int = 64
    jobs_per_client: int = 16
    rows: int = ROWS
    """Canvases in one forward pass, for which memory is planned; a single job may have more."""
    starved_after_s: float = 2.0
    """Background work that had no turn for so long gets one beside interactive work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Bounds on one client."""

    strangers: int = 32
    """Connections whose handshake is not done, over TCP with its proof; for one more, the oldest is dropped."""
    handshake_s: float = 10.0
    """For all of a handshake to come; a load may hold up the event loop for some of it."""
    handshake_nbytes: int = 64 * 1024
    """Of all messages of a handshake."""
    frame_s: float = 30.0
    """For the rest of a frame to come, once it has begun."""
    farewell_s: float = 0.5
    """For the last messages to be read."""
    unsent_nbytes: int = 32 * 1024 * 1024
    """A client that leaves more unread is dropped."""
    unsent_draft_nbytes: int = 256 * 1024
    """A client that leaves more unread gets no drafts; they are of passing interest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpBounds:
    """Bounds on clients by HTTP."""

    connections: int = 256
    requests: int = 128
    """At once; one more is told to come again."""
    header_s: float = 10.0
    """For a request's header to come."""
    body_nbytes: int = 8 * 1024 * 1024
    body_s: float = 30.0
    """For a body to come, and for a piece of an answer to be taken."""
    idle_s: int = 75
    """For the next request on a connection that is kept open: editors are slower than browsers."""


class EngineOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How an engine is run."""

    model: str = AUTO
    auto: bool = False
    """Whether the model is what "auto" chose; another engine may choose otherwise."""
    device: str = "auto"
    unload_after_s: Seconds = 600.0
    """Without a request, the weights are given back after this."""
    exit_after_s: Seconds = 1800.0
    """Without a client, the process ends after this."""
    stall_s: Seconds = 300.0
    """A round of the model that takes longer is taken for hung, at the latest; the process ends."""
    http: str = ""
    """HOST:PORT of the HTTP server; empty: there is none. As long as it listens, `exit_after_s` does not count."""
    http_token_file: str = ""
    """Holds what HTTP clients must prove to know; empty: only DG_LSP_HTTP_TOKEN may."""
    max_clients: int = 64
    limits: Limits = msgspec.field(default_factory=Limits)
    bounds: Bounds = msgspec.field(default_factory=Bounds)
    http_bounds: HttpBounds = msgspec.field(default_factory=HttpBounds)


def with_given(options: EngineOptions, **given: Any) -> EngineOptions:
    """The same with the given values; None: not given."""
    return msgspec.structs.replace(options, **{name: value for name, value in given.items() if value is not None})


def write_options(options: EngineOptions) -> str:
    """The inverse of `read_options`, in ASCII."""
    return json.dumps(msgspec.to_builtins(options))


def read_options(text: str) -> EngineOptions:
    """Options from a JSON object; what it leaves out has its default. Raises BadInput."""
    try:
        return msgspec.json.decode(text, type=EngineOptions)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BadInput(f"These are no options of an engine ({error}): `dg-lsp engine run --help` has them.") from None
