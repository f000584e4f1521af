"""The wire between the language server and the engine: every message, its version, its checks.

This is all of `engine` that `dg_lsp` may import; it never imports torch. A conversation: the client says `Hello`, the
engine `Welcome`; then each message with an `id` that the client chose gets exactly one `Answer`, `Surveyed`, `Report`,
`Done` or `Failed` with that id, `Drafted` ones before it where asked for. `Notice` comes unasked whenever the model's
state changes. A message the engine can't read is answered by `Failed` (with the id, if one could be read) and changes
nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from cattrs import Converter, transform_error

from engine.errors import BadInput
from engine.findings import Blank, BlankKind, Damage, Findings
from engine.frames import MAX_FRAME_NBYTES, BodyError, FrameError, FrameSplitter, frame, unframe
from engine.places import Address, TcpAddress, UnixAddress, find_engine
from engine.request import Candidate, Cell, Draft, Filled, FillRequest, Snippet, Task, Timings
from engine.resident.peers import Peer, is_own, kill, listener, peer_of

__all__ = [
    "MAX_FRAME_NBYTES",
    "OTHER_VERSION",
    "VERSION",
    "Address",
    "Answer",
    "BadInput",
    "Blank",
    "BlankKind",
    "BodyError",
    "Cancel",
    "Candidate",
    "Cell",
    "ClientMessage",
    "Damage",
    "Done",
    "Draft",
    "Drafted",
    "EngineMessage",
    "Failed",
    "FailureCode",
    "Fill",
    "FillRequest",
    "Filled",
    "Findings",
    "FrameError",
    "FrameSplitter",
    "Hello",
    "MalformedMessage",
    "Notice",
    "Peer",
    "Percentiles",
    "Priority",
    "Report",
    "Snippet",
    "State",
    "StateName",
    "Status",
    "StatusQuery",
    "Stop",
    "Survey",
    "Surveyed",
    "Task",
    "TcpAddress",
    "Timings",
    "UnixAddress",
    "VersionMismatch",
    "Warm",
    "Welcome",
    "find_engine",
    "is_own",
    "kill",
    "listener",
    "pack",
    "peer_of",
    "unpack_from_client",
    "unpack_from_engine",
]

VERSION = 3
"""Raised with every change of a message; both ends must have the same."""
OTHER_VERSION = "The engine that runs is of another version of dg-lsp."
"""What a client says of an engine that refuses it for its version; the engine's own words count from its end."""

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
    token: str = ""
    """The secret of the token file, over TCP."""


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
    """The engine's answer to `Hello`."""

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
    """A step of the model that takes longer counts as hung."""
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
    log: str
    """Folder of the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The answer to `StatusQuery`."""

    id: int
    status: Status


ClientMessage = Hello | Fill | Survey | Cancel | Warm | StatusQuery | Stop
EngineMessage = Welcome | Drafted | Answer | Surveyed | Done | Failed | Notice | Report


class MalformedMessage(Exception):
    """One message can't be read; its sender goes on. `id` is the request's, where one could be read."""

    def __init__(self, message: str, id: int | None = None) -> None:
        super().__init__(message)
        self.id = id


class VersionMismatch(Exception):
    """The other end speaks another version of the protocol."""


def pack(message: ClientMessage | EngineMessage) -> bytes:
    """A message as a frame. Raises BodyError where it is too large or holds what can't be sent."""
    return frame({"type": _TAGS[type(message)], **_converter.unstructure(message)})


def unpack_from_client(body: bytes) -> ClientMessage:
    """A frame's body as a message of a client. Raises MalformedMessage, VersionMismatch."""
    message = _unpack(body, _CLIENT_TYPES)
    if isinstance(message, Fill):
        _check_request(message)
    if isinstance(message, Survey) and not 0 <= message.cursor <= len(message.text):
        raise MalformedMessage("Bad message 'survey': cursor must be in 0..length of text.", message.id)
    return cast(ClientMessage, message)


def unpack_from_engine(body: bytes) -> EngineMessage:
    """A frame's body as a message of the engine. Raises MalformedMessage, VersionMismatch."""
    return cast(EngineMessage, _unpack(body, _ENGINE_TYPES))


def _unpack(body: bytes, types: dict[str, type[Any]]) -> Any:
    try:
        fields = unframe(body)
    except BodyError as error:
        raise MalformedMessage(str(error)) from None
    number = fields.get("id")
    number = number if type(number) is int else None
    tag = fields.pop("type", None)
    if not isinstance(tag, str) or tag not in types:
        raise MalformedMessage(f"Unknown message type {_cut(repr(tag))}.", number)
    # A greeting of another version may hold anything else, so its version is read first.
    if tag in ("hello", "welcome") and type(fields.get("version")) is int and fields["version"] != VERSION:
        raise VersionMismatch(f"The other end speaks protocol version {fields['version']}, this one {VERSION}.")
    try:
        return _converter.structure(fields, types[tag])
    except Exception as error:  # noqa: BLE001 cattrs wraps what any hook raises in groups of its own
        raise MalformedMessage(f"Bad message {tag!r}: {_reasons(error)}.", number) from None


def _check_request(fill: Fill) -> None:
    """Ranges; the types hold already."""
    request = fill.request
    deadline = request.deadline_ms
    checks = {
        "n must be in 1..32": 1 <= request.n <= 32,
        "max_tokens must be in 1..4096": 1 <= request.max_tokens <= 4096,
        "width must be in 1..4096": request.width is None or 1 <= request.width <= 4096,
        "deadline_ms must be above 0 and finite": deadline is None or 0 < deadline < math.inf,
        "seed must be in 0..2^63-1": 0 <= request.seed < 2**63,
        "strength must be in (0, 1]": 0 < request.strength <= 1,
        "keep must hold spans of old": all(0 <= start <= end <= len(request.old) for start, end in request.keep),
    }
    broken = [rule for rule, holds in checks.items() if not holds]
    if broken:
        raise MalformedMessage(f"Bad message 'fill': {'; '.join(broken)}.", fill.id)


def _reasons(error: Exception) -> str:
    # The first few, cut short: a message may quote the value, and values may be megabytes.
    return "; ".join(_cut(reason) for reason in transform_error(error)[:3])


def _cut(text: str) -> str:
    return text if len(text) <= 120 else text[:117] + "..."


def _strict(kind: type[Any], accepted: tuple[type[Any], ...]) -> Any:
    def structure(value: Any, _: Any) -> Any:
        # type() instead of isinstance: a bool is an int for isinstance.
        if type(value) not in accepted:
            raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
        return kind(value)

    return structure


def _strict_converter() -> Converter:
    converter = Converter(forbid_extra_keys=True)
    for kind, accepted in ((str, (str,)), (int, (int,)), (bool, (bool,)), (float, (float, int))):
        converter.register_structure_hook(kind, _strict(kind, accepted))
    return converter


_converter = _strict_converter()
_CLIENT_TYPES: dict[str, type[Any]] = {
    "hello": Hello,
    "fill": Fill,
    "survey": Survey,
    "cancel": Cancel,
    "warm": Warm,
    "status": StatusQuery,
    "stop": Stop,
}
_ENGINE_TYPES: dict[str, type[Any]] = {
    "welcome": Welcome,
    "drafted": Drafted,
    "answer": Answer,
    "surveyed": Surveyed,
    "done": Done,
    "failed": Failed,
    "notice": Notice,
    "report": Report,
}
_TAGS = {kind: tag for tag, kind in (*_CLIENT_TYPES.items(), *_ENGINE_TYPES.items())}
