"""One word for how things stand."""

from __future__ import annotations

import pytest

from dg_lsp.backend.status import Status, StatusBoard
from engine.common.messages import EngineState


def board() -> tuple[StatusBoard, list[Status]]:
    told = list[Status]()
    return StatusBoard(told.append), told


@pytest.mark.parametrize(
    ("engine", "shown"),
    [
        (EngineState(name="starting"), Status(state="starting")),
        (
            EngineState(name="loading", percent=40, message="Downloading"),
            Status(state="loading", percent=40, message="Downloading"),
        ),
        (EngineState(name="ready"), Status(state="ready")),
        (
            EngineState(name="unloaded"),
            Status(state="ready", message="The model is not in memory; the next request loads it."),
        ),
        (EngineState(name="error", message="No model."), Status(state="error", message="No model.")),
        (EngineState(name="off", message="Stopped."), Status(state="off", message="Stopped.")),
        (
            EngineState(name="off"),
            Status(
                state="off",
                message="The engine is not running: the next request starts it, or run `dg-lsp engine run --detach`.",
            ),
        ),
    ],
)
def test_the_engine_s_state_shows(engine, shown):
    held, _ = board()
    held.engine(engine)
    assert held.current == shown


def test_only_changes_are_told_and_in_order():
    held, told = board()
    for name in ("starting", "loading", "loading", "ready", "ready"):
        held.engine(EngineState(name=name))
    held.busy(True)
    held.busy(True)
    held.busy(False)
    assert [status.state for status in told] == ["loading", "ready", "busy", "ready"]


def test_trouble_shows_until_it_is_over_or_the_model_is_ready_anew():
    held, _ = board()
    held.engine(EngineState(name="ready"))
    held.trouble("The device ran out of memory.")
    assert held.current == Status(state="error", message="The device ran out of memory.")
    held.trouble("")
    assert held.current.state == "ready"
    held.trouble("Again.")
    held.engine(EngineState(name="loading"))
    held.engine(EngineState(name="ready"))
    assert held.current.state == "ready"


def test_a_model_that_was_asked_to_load_is_loading_before_the_engine_says_so():
    held, _ = board()
    held.engine(EngineState(name="unloaded"))
    held.warming(True)
    assert held.current.state == "loading"
    held.warming(False)
    assert held.current.state == "ready"


def test_off_outweighs_everything():
    held, _ = board()
    held.off("Suggestions are switched off.")
    held.engine(EngineState(name="error", message="No model."))
    assert held.current == Status(state="off", message="Suggestions are switched off.")
    held.off("")
    assert held.current.state == "error"


def test_a_status_that_is_ready_tells_why_nothing_was_shown():
    held, told = board()
    held.engine(EngineState(name="ready"))
    held.shown("Not sure enough.", "")
    held.shown("Not sure enough.", "")
    assert held.current == Status(state="ready", silence="Not sure enough.")
    held.shown("", "from a.py:1")
    assert held.current == Status(state="ready", origin="from a.py:1")
    assert [status.silence for status in told] == ["", "Not sure enough.", ""]


def test_a_status_that_is_ready_tells_what_was_learnt():
    held, told = board()
    held.engine(EngineState(name="ready"))
    held.learnt("/w/app")
    held.learnt("/w/app")
    held.learnt("")
    assert [status.adapter for status in told] == ["", "/w/app", ""]


def test_it_says_where_text_goes_however_things_stand():
    told: list[Status] = []
    held = StatusBoard(told.append)
    held.engine(EngineState(name="ready"), "https://gpu.example:8000")
    held.trouble("The server can't be reached.")
    held.off("Suggestions are switched off.")
    assert [status.server for status in told] == ["https://gpu.example:8000"] * 3
    held.engine(EngineState(name="ready"))
    assert held.current.server == ""
