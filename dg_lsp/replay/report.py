"""The figures of a replay, as JSON values and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from dg_lsp.replay.player import ReplayOutcome
from engine.common.percentiles import percentile


def report(
    title: str,
    client: str,
    cost: Mapping[str, float],
    outcome: ReplayOutcome,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> dict[str, Any]:
    """The figures of one replay, from the editor and from the server's status before and after it.

    `answers`: those that were still current; the percentiles, in milliseconds, are theirs. `without_model`: requests
    answered with the rest of an earlier suggestion. `cancelled_fills`: fills that the server cancelled.
    """
    figures = asdict(outcome)
    latencies_ms = figures.pop("latencies_ms")
    counts = {name: after["counts"][name] - before["counts"][name] for name in after["counts"]}
    forwards = after["engine"].get("forwards", 0) - before["engine"].get("forwards", 0)
    times = {"p50_ms": 50, "p95_ms": 95, "p99_ms": 99, "max_ms": 100}
    return {
        "session": title,
        "client": client,
        "model": after["engine"].get("model", ""),
        "device": after["engine"].get("device", ""),
        "cost": cost,
        **figures,
        "answers": len(latencies_ms),
        **{name: percentile(latencies_ms, percent, digits=2) for name, percent in times.items()},
        "without_model": counts["without_model"],
        "without_model_share": round(counts["without_model"] / outcome.requests, 4) if outcome.requests else 0.0,
        "cancelled_fills": counts["superseded"],
        "forwards": forwards,
        "forwards_per_accepted_char": round(forwards / outcome.accepted_chars, 3) if outcome.accepted_chars else None,
    }


def fault(made: Mapping[str, Any]) -> str:
    """A sentence about errors and stale suggestions, which no session may have; else empty."""
    if not made["stale"] and not made["errors"]:
        return ""
    return (
        f"The language server answered {made['requests']} requests with {made['errors']} errors and {made['stale']} "
        "stale suggestions; there must be none. Its log is above."
    )


def table(made: Mapping[str, Any]) -> Table:
    shown = Table(title=Text("{session} ({client}, {model} on {device})".format_map(made)), show_header=False)
    rows = {
        "server": "answers initialize in {cost[initialize_ms]} ms, {cost[resident_mib]} MiB at the end",
        "processor by request": "server {cost[server_ms]} ms, engine {cost[engine_ms]} ms",
        "keys": "{keys}",
        "answers still wanted": "{answers} of {requests}, {suggestions} with a suggestion",
        "key to answer": "p50 {p50_ms} ms, p95 {p95_ms} ms, p99 {p99_ms} ms, longest {max_ms} ms",
        "without the model": "{without_model} ({without_model_share:.0%})",
        "no longer wanted": "{superseded}, {cancelled_fills} fills given up",
        "stale": "{stale}",
        "errors": "{errors}",
        "accepted": "{accepted} ({accepted_chars} characters), {typed_instead} hoped for in vain",
        "forward passes": "{forwards}, {forwards_per_accepted_char} by accepted character",
    }
    for name, value in rows.items():
        shown.add_row(name, value.format_map(made))
    return shown
