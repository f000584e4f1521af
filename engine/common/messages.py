"""The messages between language server and engine; see engine.common.protocol and frames for their transport.

A conversation: the client says `Hello`, the engine `Welcome`; over TCP a `Challenge` and a `Proof` stand between them,
see engine.common.challenge. Then each message with an `id` that the client chose gets exactly one `FillReply`,
`AnalyzeReply`, `StatusReply`, `Done` or `Failed` with that id, `Drafted` ones before it if requested. `Notice` is sent
whenever the model's state changes.
"""

from __future__ import annotations

from typing import Literal

from msgspec import field

from engine.common.analysis import Analysis
from engine.common.request import Draft, Filled, FillRequest
from engine.common.sizes import binary_bytes
from engine.common.wire import Wire

Priority = Literal["interactive", "background"]
FailureCode = Literal[
    "busy",  # the queue is full; try again later
    "superseded",  # a newer request for the same document came
    "cancelled",  # the client cancelled it
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
    """A message; the field `type` names its class."""


class Numbered(Message, frozen=True, kw_only=True):
    """A message with a number chosen by the client."""

    id: int


class EngineState(Wire, frozen=True, kw_only=True):
    """The engine's state. Clients add "off" (stopped) and "starting"."""

    name: StateName
    percent: float | None = None
    """Progress of loading, in [0, 100]; None: unknown."""
    message: str = ""
    """A sentence for the user; may be empty."""


class Hello(Message, frozen=True, kw_only=True):
    version: int
    client: str = ""
    """The client's name, for the log and the status ("nvim 0.12")."""
    package: str = ""
    """The version of dg-lsp of an editor window; empty: not a window. An engine ends for windows of another version."""
    nonce: bytes = b""
    """A random number, over TCP."""


class Challenge(Message, frozen=True, kw_only=True):
    """The engine's answer to `Hello` over TCP."""

    nonce: bytes
    proof: bytes


class Proof(Message, frozen=True, kw_only=True):
    """The client's answer to `Challenge`."""

    proof: bytes


class Fill(Numbered, frozen=True, kw_only=True):
    """Fill a gap. A newer fill of the same client with the same non-empty `document` supersedes it."""

    request: FillRequest
    document: str = ""
    """An opaque key; work that must not supersede each other has different keys."""
    priority: Priority = "interactive"
    """Background work pauses between two steps while there is interactive work."""
    drafts: bool = False
    """Send the canvas after each step."""

    def __post_init__(self) -> None:
        old = self.request.old
        if not all(0 <= start <= end <= len(old) for start, end in self.request.keep):
            raise ValueError("`request.keep` must hold spans of `old`")


class Analyze(Numbered, frozen=True, kw_only=True):
    """Analyse a text at a cursor, without the model; answered by `AnalyzeReply`."""

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
    """Cancel the fill `id`, which fails as "cancelled"; unknown ids are ignored. It has no answer."""


class Warm(Numbered, frozen=True, kw_only=True):
    """Load the model; answered by `Done` once it is loaded."""


class StatusQuery(Numbered, frozen=True, kw_only=True):
    """Request a `StatusReply`."""


class Stop(Numbered, frozen=True, kw_only=True):
    """End the engine; answered by `Done`, then all connections close."""


class Welcome(Message, frozen=True, kw_only=True):
    """The end of the handshake: the client may send requests from now on."""

    version: int
    engine: str
    """Version of the package."""
    pid: int
    model: str
    """The model that the engine was started with."""
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
    """The request was fulfilled."""


class Failed(Message, frozen=True, kw_only=True):
    id: int | None
    """None: the message's id could not be read."""
    code: FailureCode
    message: str
    """One sentence, for users."""


class Notice(Message, frozen=True, kw_only=True):
    state: EngineState
    advice: str = ""
    """A sentence that an editor window shows its user once; may be empty."""


class Percentiles(Wire, frozen=True, kw_only=True):
    """Milliseconds over the latest few hundred fills; None before the first."""

    p50: float | None = None
    p95: float | None = None


class AdapterUse(Wire, frozen=True, kw_only=True):
    """An adapter that a request came for."""

    folder: str
    """The folder that it was trained on."""
    trouble: str = ""
    """A sentence: why it is not used; empty: it is in use."""


class MemoryPlan(Wire, frozen=True, kw_only=True):
    """The planned memory of a device, in bytes."""

    weights: int
    contexts: int
    """Keys and values of one context of the planned length; caching more contexts takes what is left."""
    canvases: int
    """Keys and values of the tokens of one pass."""
    workspace: int
    """Temporary memory of the layers and the sampler."""
    library: int
    """Memory kept by a GPU's libraries."""

    @property
    def beside(self) -> int:
        """Everything but the weights."""
        return self.contexts + self.canvases + self.workspace + self.library

    @property
    def total(self) -> int:
        return self.weights + self.beside

    def summary(self) -> str:
        """The total and its parts, as a clause."""
        names = {"weights": self.weights, "contexts": self.contexts, "canvases": self.canvases}
        names |= {"workspace": self.workspace, "CUDA's own": self.library}
        parts = [f"{name} {binary_bytes(nbytes)}" for name, nbytes in names.items() if nbytes]
        return f"{binary_bytes(self.total)} planned ({', '.join(parts)})"


class EngineStatus(Wire, frozen=True, kw_only=True):
    pid: int
    engine: str
    protocol: int
    model: str
    auto: bool = False
    """Whether the model was chosen, not named."""
    device: str
    """The device of the weights; `requested_device` where there are none."""
    instructions: bool | None = None
    """Whether the model follows instructions; None: its weights are not loaded."""
    parameters: int | None = None
    context_limit: int | None = None
    """Tokens of context that the model can use; None: its weights are not loaded."""
    requested_device: str
    unload_after_s: float
    """Seconds without a request after which the model is unloaded."""
    exit_after_s: float
    """Seconds without a client after which the engine ends."""
    http: str = ""
    """HOST:PORT of the HTTP server; empty: none. While it serves, the engine does not end by itself."""
    http_token_file: str = ""
    """The file with the token of HTTP clients."""
    stall_after_s: float
    """A longer step of the model counts as hung; a step that is slow for this model and device counts earlier."""
    state: EngineState
    up_s: float
    """Seconds since the engine started."""
    loaded_s: float | None = None
    """Seconds since the weights were loaded; None: they are not loaded."""
    rss_nbytes: int
    device_nbytes: int
    """Memory in use on the accelerator; 0 on a CPU."""
    device_total_nbytes: int = 0
    """Memory of the accelerator; 0 on a CPU."""
    memory: MemoryPlan | None = None
    """The planned memory of the model; None: its weights are not loaded, or it has none."""
    adapters: tuple[AdapterUse, ...] = ()
    """The adapters that requests came for since the weights were loaded."""
    clients: tuple[str, ...]
    queued: int
    """Fills waiting for their first forward pass."""
    running: int
    served: int
    """Fills answered since the start."""
    failed: dict[str, int] = field(default_factory=dict[str, int])
    """Failed fills since the start, by code."""
    encode_ms: Percentiles = Percentiles()
    step_ms: Percentiles = Percentiles()
    total_ms: Percentiles = Percentiles()
    """From a request's arrival to its answer."""
    forwards: int = 0
    """Forward passes of the decoder; a batch counts once."""
    shared_forwards: int = 0
    """Forward passes that served several requests."""
    tokens_per_forward: float | None = None
    cached_tokens: int = 0
    """Context tokens found in the cache."""
    context_tokens: int = 0
    """Context tokens of all fills; both since the weights were loaded."""
    checker_restarts: int = 0
    """How often the syntax checker's process had to be restarted."""
    set_aside: int = 0
    """Documents that are not checked for a while, since the checker's process ended over them."""
    log: str
    """The folder of the log, or why there is none."""


class StatusReply(Numbered, frozen=True, kw_only=True):
    status: EngineStatus


ClientMessage = Hello | Proof | Fill | Analyze | Cancel | Warm | StatusQuery | Stop
EngineMessage = Challenge | Welcome | Drafted | FillReply | AnalyzeReply | Done | Failed | Notice | StatusReply
