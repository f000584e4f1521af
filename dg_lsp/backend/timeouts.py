"""How long whatever has to do with the engine may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Seconds."""

    start_s: float = 90.0
    """For an engine to start and answer."""
    beat_s: float = 1.0
    """Of silence, while somebody waits, before the engine is asked for a sign of life."""
    stopped_s: float = 0.5
    """For that sign, or for a welcome, while its process is stopped (SIGSTOP, or a terminal's Ctrl-Z)."""
    idle_s: float = 3.0
    """The same, while its process does nothing, either; an answer would cost it some work."""
    busy_s: float = 60.0
    """The same, in all: to import what a model needs may hold up the whole process."""
    look_s: float = 0.5
    """Between looks at its process meanwhile."""
    fill_s: float = 120.0
    """For an answer, when the caller names no bound."""
    grace_s: float = 2.0
    """An answer may come so much later than its deadline; then it is no longer waited for."""
    edit_s: float = 600.0
    """For an edit that somebody waits for and can cancel."""
    analyze_s: float = 1.5
    """For what needs no model; a list of actions is of no use later."""
    learn_s: float = 1.0
    """For the engine to say what it is, where an answer waits for that."""
    load_s: float = 60.0
    """How long somebody who asked for suggestions waits for the model."""
    return_s: float = 1.0
    """Between looks for an engine that was stopped and may be started again."""
    first_retry_s: float = 1.0
    last_retry_s: float = 60.0
    """After a failed start the next one waits, twice as long each time; so it does after engines that ended unasked and
    answered nothing, from the second on."""
