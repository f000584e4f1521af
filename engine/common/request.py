"""Requests to the engine and its answers, as plain values."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from engine.common.wire import Wire

Syntax = Literal["ok", "repaired", "cut", "unchecked"]
Task = Literal["fill", "rewrite", "fix", "next", "chat"]
Speaker = Literal["system", "user", "assistant"]


class Snippet(Wire, frozen=True, kw_only=True):
    """Text from another file that may help, most stable first."""

    path: str
    text: str


class RecentEdit(Wire, frozen=True, kw_only=True):
    """A recent edit in this file or another: whole lines, without the last line break. Empty `old`: inserted lines;
    empty `new`: deleted lines."""

    path: str
    old: str
    new: str
    start: int | None = None
    """The offset of `new` in `prefix + suffix`; None in another file."""


class WorkspaceMatch(Wire, frozen=True, kw_only=True):
    """A workspace match: code from a similar place in the workspace, with its names adapted to the gap."""

    text: str
    origin: str
    """Path and line for the user, "src/shapes.py:12"."""
    likeness: Annotated[float, Meta(ge=0, le=1000)] = 0.0
    """Similarity of its surroundings to the gap's: the number of equal tokens before and after; an adapted name counts
    less."""


class ConversationMessage(Wire, frozen=True, kw_only=True):
    """What one side of a conversation says."""

    role: Speaker
    content: str


class FillRequest(Wire, frozen=True, kw_only=True):
    """One gap to fill. `prefix` and `suffix` are fixed and never change, byte for byte. The limits hold on the wire."""

    prefix: str
    suffix: str
    language: str = ""
    """LSP language identifier ("python"); empty: unknown."""
    task: Task = "fill"
    """"fill" starts from noise; "rewrite" starts from `old`, by `strength`; "fix" changes `old` only as needed to
    remove its syntax problems. A rewrite or fix is offered whole or not at all. "next" finds where else the newest of
    this file's `edits` belongs. "chat" answers `messages`, and looks at no file."""
    old: str = ""
    """The text in the gap, which is replaced."""
    guess: str = ""
    """A guess of the answer, such as the rest of a suggestion that typing diverged from. The first canvas starts from
    it; nothing is pinned."""
    snippets: tuple[Snippet, ...] = ()
    edits: tuple[RecentEdit, ...] = ()
    """Recent edits, oldest first, none at the gap."""
    instruction: str = ""
    n: Annotated[int, Meta(ge=1, le=32)] = 1
    """Most candidates to return."""
    max_tokens: Annotated[int, Meta(ge=1, le=4096)] = 96
    """Widest gap, in the model's tokens."""
    width: Annotated[int, Meta(ge=1, le=4096)] | None = None
    """The given width of the gap in tokens; None: the model's length strategy finds it."""
    deadline_ms: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    """Milliseconds after which the best canvas so far is the answer; None: no limit."""
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    strength: Annotated[float, Meta(gt=0, le=1)] = 1.0
    """Share of `old` that becomes noise in a rewrite, in (0, 1]; 1.0: all of it."""
    keep: tuple[tuple[int, int], ...] = ()
    """Spans of `old`, as offsets into it, that a rewrite keeps."""
    single_line: bool = False
    """Whether the answer may hold no line break."""
    may_swallow: bool = False
    """Whether the client can replace closers after the gap that the answer closes itself."""
    workspace_matches: Annotated[tuple[WorkspaceMatch, ...], Meta(max_length=3)] = ()
    """Workspace matches, best first. They compete with the model's own candidates, scored by the same model."""
    messages: Annotated[tuple[ConversationMessage, ...], Meta(max_length=256)] = ()
    """A conversation, oldest first, of which the model says what comes next."""
    stop: Annotated[tuple[str, ...], Meta(max_length=64)] = ()
    """The answer to `messages` ends with the first of these texts."""
    folder: str = ""
    """The absolute folder of the file: the adapter of it, or of a folder above it, is used; empty: no adapter."""


class Candidate(Wire, frozen=True, kw_only=True):
    text: str
    tokens: int
    confidence: float
    """In [0, 1]. For a model trained to find the end of a gap: the probability that the text is exactly right; else the
    geometric mean of `token_confidence`. A workspace match scores at least the accuracy that was measured at its
    similarity."""
    score: float
    """The log-probability that candidates are ranked by; higher is better."""
    syntax: Syntax = "unchecked"
    token_confidence: tuple[float, ...] = ()
    """The probability of each token of `text` when the canvas settled."""
    origin: str = ""
    """The origin of a workspace match; empty: the model wrote it."""
    token_ends: tuple[int, ...] = ()
    """The end of each of those tokens in `text`; in a longer gap, those of the last canvas."""
    swallowed: Annotated[int, Meta(ge=0)] = 0
    """Characters at the start of `suffix` that `text` replaces, since it closes them itself; they are on the gap's
    line."""
    replaces: tuple[int, int] | UnsetType = UNSET
    """The span of `prefix + suffix` that `text` replaces, where it is not the gap."""


class Timings(Wire, frozen=True, kw_only=True):
    """Milliseconds."""

    load: float = 0.0
    encode: float = 0.0
    denoise: float = 0.0
    total: float = 0.0


class Filled(Wire, frozen=True, kw_only=True):
    """The answer to a FillRequest: candidates, best first; may be empty."""

    model: str
    device: str
    candidates: tuple[Candidate, ...]
    width: int
    """Width in tokens of the first candidate's canvas."""
    steps: int
    """Denoising steps of the longest row."""
    forwards: int
    """Forward passes of the decoder; a batch counts once."""
    context_tokens: int = 0
    """Tokens of the context."""
    threshold: Annotated[float, Meta(ge=0, le=1)] | None = None
    """The fitted confidence threshold for automatic suggestions; None: not fitted."""
    adapter: str = ""
    """The folder of the adapter that answered; empty: none."""
    ms: Timings = field(default_factory=Timings)


CellState = Literal["noise", "accepted", "pinned"]


class Cell(Wire, frozen=True, kw_only=True):
    """One position of a canvas, for display."""

    text: str
    state: CellState


class Draft(Wire, frozen=True, kw_only=True):
    """The canvas of the best row after one step. `text`: the answer so far."""

    step: int
    text: str
    settled: int = 0
    """Leading characters that are accepted in every row."""
    cells: tuple[Cell, ...] = ()
