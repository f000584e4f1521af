"""Time limits of everything that has to do with the engine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Seconds."""

    settings_s: float = 2.0
    """For the editor's settings, which may say how an engine is started."""
    start_s: float = 90.0
    """For an engine to start and answer."""
    beat_s: float = 1.0
    """Silence while a request waits, before the engine is queried for a sign of life."""
    stopped_s: float = 0.5
    """For that sign, or for the handshake, while the engine's process is stopped (SIGSTOP, or Ctrl-Z)."""
    idle_s: float = 3.0
    """The same, while the process uses no processor time."""
    busy_s: float = 60.0
    """The same, in total: importing a model's libraries may block the whole process."""
    look_s: float = 0.5
    """Between checks of the process meanwhile."""
    fill_s: float = 120.0
    """For an answer, where the caller sets no limit."""
    grace_s: float = 2.0
    """How much later than its deadline an answer may come; then it is given up."""
    edit_s: float = 600.0
    """For an edit, which the user waits for and can cancel."""
    analyze_s: float = 1.5
    """For an analysis without the model, as the engine bounds it; a list of code actions is of no use later."""
    learn_s: float = 1.0
    """For the engine's status, where an answer waits for it."""
    load_s: float = 60.0
    """How long a requested suggestion waits for the model to load."""
    return_s: float = 1.0
    """Between checks whether a stopped engine was started again."""
    first_retry_s: float = 1.0
    last_retry_s: float = 60.0
    """After a failed start the next one waits, twice as long each time; also after the second engine in a row that
    ended by itself without an answer."""
