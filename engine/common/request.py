"""What is asked of the engine and what it answers: plain values, no tensors, no offsets into files."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from engine.common.wire import Wire

Syntax = Literal["ok", "repaired", "cut", "unchecked"]
Task = Literal["fill", "rewrite", "fix", "next"]


class Snippet(Wire, frozen=True, kw_only=True):
    """Text from another file that may help, most stable first."""

    path: str
    text: str


class RecentEdit(Wire, frozen=True, kw_only=True):
    """What somebody changed lately in this file or another: whole lines, without the last line break. Empty `old`:
    lines that are new; empty `new`: lines that are gone."""

    path: str
    old: str
    new: str
    start: int | None = None
    """Where `new` begins in `prefix + suffix`, for what has to know; None in another file."""


class Precedent(Wire, frozen=True, kw_only=True):
    """What stands elsewhere between surroundings like the gap's, with the names that it would have in the gap."""

    text: str
    origin: str
    """For a person: path and line, "src/shapes.py:12"."""
    likeness: Annotated[float, Meta(ge=0, le=1000)] = 0.0
    """Of its surroundings to the gap's: tokens before and behind that are the same, a name that stands for another one
    counting less."""


class FillRequest(Wire, frozen=True, kw_only=True):
    """One gap to fill. `prefix` and `suffix` are fixed and never change, byte for byte. The limits hold on the wire."""

    prefix: str
    suffix: str
    language: str = ""
    """LSP language identifier ("python"); empty: unknown."""
    task: Task = "fill"
    """"fill" starts from noise; "rewrite" from `old`, by `strength`; "fix" changes of `old` what it takes to remove its
    syntax problems. What is rewritten or fixed is offered whole, or not at all. "next" looks where else the newest of
    this file's `edits` belongs."""
    old: str = ""
    """The text that stands in the gap now; it is replaced."""
    guess: str = ""
    """What is likely to stand in the gap, such as the rest of a suggestion that typing diverged from; a first canvas is
    conditioned on it, nothing is pinned."""
    snippets: tuple[Snippet, ...] = ()
    edits: tuple[RecentEdit, ...] = ()
    """Oldest first, none at the gap itself."""
    instruction: str = ""
    n: Annotated[int, Meta(ge=1, le=32)] = 1
    """Candidates wanted at most."""
    max_tokens: Annotated[int, Meta(ge=1, le=4096)] = 96
    """Longest gap, in tokens of the model."""
    width: Annotated[int, Meta(ge=1, le=4096)] | None = None
    """Fixes the gap's width in tokens; None lets the model's length strategy find it."""
    deadline_ms: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    """Milliseconds after which the best canvas so far is the answer; None waits for the canvas to settle."""
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    strength: Annotated[float, Meta(gt=0, le=1)] = 1.0
    """Share of `old` that a rewrite re-noises, in (0, 1]; 1.0 starts from noise alone."""
    keep: tuple[tuple[int, int], ...] = ()
    """Spans of `old` (offsets into it) that a rewrite leaves as they are."""
    single_line: bool = False
    """No line break may enter the gap."""
    may_swallow: bool = False
    """Whether who asks can put an answer in the place of closers after the gap that it closes itself."""
    precedents: Annotated[tuple[Precedent, ...], Meta(max_length=3)] = ()
    """Best first. They are candidates as what the model writes is, judged by the same reading."""
    folder: str = ""
    """Where the text's file lies, absolute: what was learnt of the folder, or of one above it, serves it; empty: the
    model alone does."""


class Candidate(Wire, frozen=True, kw_only=True):
    text: str
    tokens: int
    confidence: float
    """In [0, 1]. Of a fill by a model that has learnt where gaps end, how likely it is to be the gap's very text; else
    the geometric mean of `token_confidence`. What stands elsewhere is at least as likely as what stood in places so
    much alike was right."""
    score: float
    """Log-probability that candidates are ranked by; higher is better."""
    syntax: Syntax = "unchecked"
    token_confidence: tuple[float, ...] = ()
    """Probability that the model gave each token of `text` when the canvas settled."""
    origin: str = ""
    """Of the precedent that it is; empty: the model wrote it."""
    token_ends: tuple[int, ...] = ()
    """Where each of those tokens ends in `text`; a longer gap's tokens are those of its last canvas."""
    swallowed: Annotated[int, Meta(ge=0)] = 0
    """Characters at the beginning of `suffix` that `text` takes the place of, as it closes them itself; they are in the
    gap's line."""
    replaces: tuple[int, int] | UnsetType = UNSET
    """Span of `prefix + suffix` that `text` takes the place of, where that is not the gap."""


class Timings(Wire, frozen=True, kw_only=True):
    """Milliseconds."""

    load: float = 0.0
    encode: float = 0.0
    denoise: float = 0.0
    total: float = 0.0


class Filled(Wire, frozen=True, kw_only=True):
    """The answer to a FillRequest: candidates best first; none is a valid answer."""

    model: str
    device: str
    candidates: tuple[Candidate, ...]
    width: int
    """Gap width in tokens of the first candidate's canvas."""
    steps: int
    """Denoising steps, the longest row's."""
    forwards: int
    """Forward passes of the decoder, rows of one batch counted once."""
    context_tokens: int = 0
    """Tokens of what was read around the gap."""
    threshold: Annotated[float, Meta(ge=0, le=1)] | None = None
    """How sure these weights have to be of what is shown unasked; None: nobody fitted it."""
    adapter: str = ""
    """The folder that was learnt by what answered; empty: the model alone did."""
    ms: Timings = field(default_factory=Timings)


CellState = Literal["noise", "accepted", "pinned"]


class Cell(Wire, frozen=True, kw_only=True):
    """One position of a canvas as a person may watch it."""

    text: str
    state: CellState


class Draft(Wire, frozen=True, kw_only=True):
    """The canvas of the best row after one step. `text` is what would be answered now."""

    step: int
    text: str
    settled: int = 0
    """Characters from its left that stand on accepted tokens, and with which every other row begins, too."""
    cells: tuple[Cell, ...] = ()
