"""What the language server and the engine say to each other; how it travels: engine.common.protocol and frames.

A conversation: the client says `Hello`, the engine `Welcome`; over TCP a `Challenge` and a `Proof` stand between them,
see engine.common.challenge. Then each message with an `id` that the client chose gets exactly one `FillReply`,
`AnalyzeReply`, `StatusReply`, `Done` or `Failed` with that id, `Drafted` ones before it where asked for. `Notice` comes
unasked whenever the model's state changes.
"""

from __future__ import annotations

from typing import Literal

from msgspec import field

from engine.common.adapter_use import AdapterUse
from engine.common.analysis import Analysis
from engine.common.memory_plan import MemoryPlan
from engine.common.request import Draft, Filled, FillRequest
from engine.common.wire import Wire

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
StateName = Literal["off", "starting", "unloaded", "loading", "ready", "error", "stopping"]


class Message(Wire, frozen=True, tag=str.lower):
    """Its class is named by the field `type`."""


class Numbered(Message, frozen=True, kw_only=True):
    """The client chooses the number."""

    id: int


class EngineState(Wire, frozen=True, kw_only=True):
    """What the engine is doing; a client's own account of it has "off" (stopped) and "starting", too."""

    name: StateName
    percent: float | None = None
    """How far loading has come, in [0, 100]; None: unknown."""
    message: str = ""
    """A sentence for the user, where there is something to say."""


class Hello(Message, frozen=True, kw_only=True):
    version: int
    client: str = ""
    """Who it is, for the log and the status ("nvim 0.12")."""
    package: str = ""
    """Version of dg-lsp, if it is a window that stays; an engine gives way to windows of another one."""
    nonce: bytes = b""
    """Random, over TCP."""


class Challenge(Message, frozen=True, kw_only=True):
    """The engine's answer to `Hello` over TCP."""

    nonce: bytes
    proof: bytes


class Proof(Message, frozen=True, kw_only=True):
    """The client's answer to `Challenge`."""

    proof: bytes


class Fill(Numbered, frozen=True, kw_only=True):
    """Fill a gap. A newer one of this client with the same non-empty `document` takes its place."""

    request: FillRequest
    document: str = ""
    """Opaque; kinds of work that should not supersede each other take different keys."""
    priority: Priority = "interactive"
    """Background work pauses between two denoising steps while interactive work is there."""
    drafts: bool = False
    """Send the canvas after each step."""

    def __post_init__(self) -> None:
        old = self.request.old
        if not all(0 <= start <= end <= len(old) for start, end in self.request.keep):
            raise ValueError("`request.keep` must hold spans of `old`")


class Analyze(Numbered, frozen=True, kw_only=True):
    """Ask what a text offers at a place, without the model; answered by `AnalyzeReply`."""

    text: str
    cursor: int
    start: int | None = None
    """Where the selection begins that ends at the cursor; None: nothing is selected."""
    language: str
    """LSP language identifier."""

    def __post_init__(self) -> None:
        if not 0 <= (self.cursor if self.start is None else self.start) <= self.cursor <= len(self.text):
            raise ValueError("`start` and `cursor` must be offsets into `text`, in order")


class Cancel(Numbered, frozen=True, kw_only=True):
    """Give up the fill `id`, which then fails as "cancelled"; an unknown id is ignored. Has no answer of its own."""


class Warm(Numbered, frozen=True, kw_only=True):
    """Load the model now; answered by `Done` when it is there."""


class StatusQuery(Numbered, frozen=True, kw_only=True):
    """Ask for a `StatusReply`."""


class Stop(Numbered, frozen=True, kw_only=True):
    """End the engine; answered by `Done`, then all connections close."""


class Welcome(Message, frozen=True, kw_only=True):
    """The end of the handshake: from now on the engine is at the client's service."""

    version: int
    engine: str
    """Version of the package."""
    pid: int
    model: str
    """The model as it was asked for when the engine was started."""
    device: str
    state: EngineState


class Drafted(Numbered, frozen=True, kw_only=True):
    """The canvas of a running fill after one step."""

    draft: Draft


class FillReply(Numbered, frozen=True, kw_only=True):
    filled: Filled


class AnalyzeReply(Numbered, frozen=True, kw_only=True):
    analysis: Analysis


class Done(Numbered, frozen=True, kw_only=True):
    """What was asked for has happened."""


class Failed(Message, frozen=True, kw_only=True):
    id: int | None
    """None: the message was too broken to tell."""
    code: FailureCode
    message: str
    """One sentence, for users."""


class Notice(Message, frozen=True, kw_only=True):
    state: EngineState


class Percentiles(Wire, frozen=True, kw_only=True):
    """Milliseconds over the latest few hundred; None before the first."""

    p50: float | None = None
    p95: float | None = None


class EngineStatus(Wire, frozen=True, kw_only=True):
    pid: int
    engine: str
    protocol: int
    model: str
    device: str
    """Where the weights are; where there are none, `device_asked`."""
    instructions: bool | None = None
    """Whether the model follows instructions; None: its weights are not loaded."""
    parameters: int | None = None
    context_limit: int | None = None
    """Tokens of context that the model can use; None, as above: its weights are not loaded."""
    device_asked: str
    unload_after_s: float
    """Without a request, the weights are given back after this."""
    exit_after_s: float
    """Without a client, the process ends after this."""
    http: str = ""
    """HOST:PORT of the HTTP door; empty: there is none, and else the process does not end for want of clients."""
    http_token_file: str = ""
    """Holds what HTTP clients must prove to know."""
    stall_after_s: float
    """A step of the model that takes longer counts as hung; one that is slow for this model and device, earlier."""
    state: EngineState
    up_s: float
    """Seconds since the engine started."""
    loaded_s: float | None = None
    """Seconds since the weights were loaded; None: they are not."""
    rss_nbytes: int
    device_nbytes: int
    """Memory held on the accelerator; 0 on a CPU."""
    device_total_nbytes: int = 0
    """Memory that the accelerator has; 0 on a CPU."""
    memory: MemoryPlan | None = None
    """What the model was planned to take; None: its weights are not loaded, or it has none."""
    adapters: tuple[AdapterUse, ...] = ()
    """Of those that requests came for since the weights were loaded."""
    clients: tuple[str, ...]
    queued: int
    """Fills that wait for their first forward pass."""
    running: int
    served: int
    """Fills answered since the start."""
    failed: dict[str, int] = field(default_factory=dict[str, int])
    """Fills that were not, by failure code."""
    encode_ms: Percentiles = Percentiles()
    step_ms: Percentiles = Percentiles()
    total_ms: Percentiles = Percentiles()
    """From a request's arrival to its answer."""
    forwards: int = 0
    """Forward passes of the decoder, a batch counted once."""
    shared_forwards: int = 0
    """Those that served several requests at once."""
    tokens_per_forward: float | None = None
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


class StatusReply(Numbered, frozen=True, kw_only=True):
    status: EngineStatus


ClientMessage = Hello | Proof | Fill | Analyze | Cancel | Warm | StatusQuery | Stop
EngineMessage = Challenge | Welcome | Drafted | FillReply | AnalyzeReply | Done | Failed | Notice | StatusReply
