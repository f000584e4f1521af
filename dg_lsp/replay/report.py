"""What a replay measured: figures, and the table in which people read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from dg_lsp.replay.player import ReplayOutcome
from engine.core.percentiles import percentile


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the language server and the engine took of the machine."""

    greeting_ms: float
    """From the server's start to its answer to `initialize`."""
    resident_mib: float
    """The server's memory at the end of the session."""
    server_ms: float
    """The server's processor time for each request, whatever else it did meanwhile included."""
    engine_ms: float
    """The same of the engine, other editors' work included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The figures of one replay. Times in milliseconds."""

    session: str
    client: str
    model: str
    device: str
    cost: Cost
    keys: int
    requests: int
    answers: int
    """Those that were still wanted when they came; the percentiles speak of them."""
    suggestions: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    max_ms: float | None
    without_model: int
    """Requests answered with the rest of an earlier suggestion."""
    without_model_share: float
    superseded: int
    """Requests whose answer was no longer wanted when it came, or that were cancelled."""
    cancelled_fills: int
    """Fills the server gave up under way."""
    stale: int
    errors: int
    accepted: int
    accepted_chars: int
    typed_instead: int
    forwards: int
    forwards_per_accepted_char: float | None


def report(
    title: str,
    client: str,
    cost: Cost,
    outcome: ReplayOutcome,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> Report:
    """Figures from what the editor saw and the server's own accounts around the session."""
    counts = {name: after["counts"][name] - before["counts"][name] for name in after["counts"]}
    forwards = after["engine"].get("forwards", 0) - before["engine"].get("forwards", 0)
    p50, p95, p99, longest = (_rounded(percentile(outcome.latencies_ms, percent)) for percent in (50, 95, 99, 100))
    return Report(
        session=title,
        client=client,
        model=after["engine"].get("model", ""),
        device=after["engine"].get("device", ""),
        cost=cost,
        keys=outcome.keys,
        requests=outcome.requests,
        answers=len(outcome.latencies_ms),
        suggestions=outcome.suggestions,
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        max_ms=longest,
        without_model=counts["without_model"],
        without_model_share=round(counts["without_model"] / outcome.requests, 4) if outcome.requests else 0.0,
        superseded=outcome.superseded,
        cancelled_fills=counts["superseded"],
        stale=outcome.stale,
        errors=outcome.errors,
        accepted=outcome.accepted,
        accepted_chars=outcome.accepted_chars,
        typed_instead=outcome.typed_instead,
        forwards=forwards,
        forwards_per_accepted_char=round(forwards / outcome.accepted_chars, 3) if outcome.accepted_chars else None,
    )


def fault(made: Report) -> str:
    """What must not happen in any session, as a sentence; empty where it did not."""
    if not made.stale and not made.errors:
        return ""
    return (
        f"The language server answered {made.requests} requests with {made.errors} errors and {made.stale} stale "
        "suggestions; there must be none. What it logged stands above."
    )


def _rounded(ms: float | None) -> float | None:
    return None if ms is None else round(ms, 2)


def table(made: Report) -> Table:
    """For people."""
    shown = Table(title=f"{made.session} ({made.client}, {made.model} on {made.device})", show_header=False)
    rows = {
        "server": f"greets in {made.cost.greeting_ms} ms, {made.cost.resident_mib} MiB at the end",
        "processor by request": f"server {made.cost.server_ms} ms, engine {made.cost.engine_ms} ms",
        "keys": made.keys,
        "answers still wanted": f"{made.answers} of {made.requests}, {made.suggestions} with a suggestion",
        "key to answer": f"p50 {made.p50_ms} ms, p95 {made.p95_ms} ms, p99 {made.p99_ms} ms, longest {made.max_ms} ms",
        "without the model": f"{made.without_model} ({made.without_model_share:.0%})",
        "no longer wanted": f"{made.superseded}, {made.cancelled_fills} fills given up",
        "stale": made.stale,
        "errors": made.errors,
        "accepted": f"{made.accepted} ({made.accepted_chars} characters), {made.typed_instead} hoped for in vain",
        "forward passes": f"{made.forwards}, {made.forwards_per_accepted_char} by accepted character",
    }
    for name, value in rows.items():
        shown.add_row(name, str(value))
    return shown
