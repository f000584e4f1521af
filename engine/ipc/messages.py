"""What the language server and the engine say to each other; how it travels: engine.ipc.protocol.

A conversation: the client says `Hello`, the engine `Welcome`; over TCP a `Challenge` and a `Proof` stand between them,
see engine.ipc.challenge. Then each message with an `id` that the client chose gets exactly one `Answer`, `Surveyed`,
`Report`, `Done` or `Failed` with that id, `Drafted` ones before it where asked for.
`Notice` comes unasked whenever the model's state changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from engine.core.findings import Findings
from engine.core.request import Draft, Filled, FillRequest

Priority = Literal["interactive", "background"]
FailureCode = Literal[
    "busy",  # the queue is full; try again later
    "superseded",  # a newer request for the same document came
    "cancelled",  # the client asked for it
    "late",  # the deadline passed before the model was free
    "bad_request",  # the request itself can't be served
    "out_of_memory",  # the device is too small for it
    "model",  # the model can't be loaded
    "protocol",  # the message can't be read
    "version",  # the two ends speak different versions
    "stopping",  # the engine is shutting down
    "internal",  # a defect; the log has it
]
StateName = Literal["unloaded", "loading", "ready", "error", "stopping"]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the model is doing."""

    name: StateName
    percent: float | None = None
    """How far loading has come, in [0, 100]; None: unknown."""
    message: str = ""
    """A sentence for the user, where there is something to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """The first message of a client."""

    version: int
    client: str = ""
    """Who it is, for the log and the status ("nvim 0.12")."""
    package: str = ""
    """Version of dg-lsp, if it is a window that stays; an engine gives way to windows of another one."""
    nonce: bytes = b""
    """Random, over TCP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """The engine's answer to `Hello` over TCP."""

    nonce: bytes
    proof: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The client's answer to `Challenge`."""

    proof: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """Fill a gap. A newer one of this client with the same non-empty `document` takes its place."""

    id: int
    request: FillRequest
    document: str = ""
    """Opaque; kinds of work that should not supersede each other take different keys."""
    priority: Priority = "interactive"
    """Background work pauses between two denoising steps while interactive work is there."""
    drafts: bool = False
    """Send the canvas after each step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Ask what a text offers at a place, without the model; answered by `Surveyed`."""

    id: int
    text: str
    cursor: int
    """Offset into `text`."""
    language: str
    """LSP language identifier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """Give up the fill `id`, which then fails as "cancelled"; an unknown id is ignored. Has no answer of its own."""

    id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Warm:
    """Load the model now; answered by `Done` when it is there."""

    id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusQuery:
    """Ask for a `Report`."""

    id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """End the engine; answered by `Done`, then all connections close."""

    id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """The end of the greeting: from now on the engine is at the client's service."""

    version: int
    engine: str
    """Version of the package."""
    pid: int
    model: str
    """The model as it was asked for when the engine was started."""
    device: str
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    """The canvas of a running fill after one step."""

    id: int
    draft: Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A fill came to its end."""

    id: int
    filled: Filled


@dataclass(frozen=True, slots=True, kw_only=True)
class Surveyed:
    """The answer to `Survey`."""

    id: int
    findings: Findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What was asked for has happened."""

    id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """What was asked for did not happen."""

    id: int | None
    """None: the message was too broken to tell."""
    code: FailureCode
    message: str
    """One sentence, for users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """The model's state changed."""

    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles:
    """Milliseconds over the latest few hundred; None before the first."""

    p50: float | None = None
    p95: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How the engine is."""

    pid: int
    engine: str
    protocol: int
    model: str
    device: str
    """Where the weights are; where there are none, `device_asked`."""
    instructions: bool | None = None
    """Whether the model follows instructions; None: its weights are not loaded."""
    device_asked: str
    unload_after_s: float
    """Without a request, the weights are given back after this."""
    exit_after_s: float
    """Without a client, the process ends after this."""
    stall_after_s: float
    """A step of the model that takes longer counts as hung; one that is slow for this model and device, earlier."""
    state: State
    up_s: float
    """Seconds since the engine started."""
    loaded_s: float | None = None
    """Seconds since the weights were loaded; None: they are not."""
    rss_nbytes: int
    """Memory of the process."""
    device_nbytes: int
    """Memory held on the accelerator; 0 on a CPU."""
    clients: tuple[str, ...]
    queued: int
    """Fills that wait for their first forward pass."""
    running: int
    served: int
    """Fills answered since the start."""
    failed: dict[str, int] = field(default_factory=dict[str, int])
    """Fills that were not, by failure code."""
    encode_ms: Percentiles = field(default_factory=Percentiles)
    step_ms: Percentiles = field(default_factory=Percentiles)
    total_ms: Percentiles = field(default_factory=Percentiles)
    """From a request's arrival to its answer."""
    forwards: int = 0
    """Forward passes of the decoder, a batch counted once."""
    shared_forwards: int = 0
    """Those that served several requests at once."""
    tokens_per_forward: float | None = None
    """Tokens answered by forward pass."""
    cached_tokens: int = 0
    """Context tokens that were found in a cache instead of being encoded."""
    context_tokens: int = 0
    """Context tokens of all fills, both since the weights were loaded."""
    checker_restarts: int = 0
    """How often the process that checks syntax ended, and another took its place."""
    set_aside: int = 0
    """Documents whose syntax is not checked for a while: that process ended over them."""
    log: str
    """Folder of the log, or why there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The answer to `StatusQuery`."""

    id: int
    status: Status


ClientMessage = Hello | Proof | Fill | Survey | Cancel | Warm | StatusQuery | Stop
EngineMessage = Challenge | Welcome | Drafted | Answer | Surveyed | Done | Failed | Notice | Report
