"""What is said where an engine runs otherwise than it would be started."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest
from msgspec.structs import replace

from dg_lsp.backend.client import EngineFailure
from dg_lsp.backend.connection import started
from dg_lsp.backend.launch import Launch, begin, difference
from dg_lsp.config.settings import EngineSettings, Settings, applied
from engine.server.settings import EngineOptions, read_options
from tests.engine.common.test_protocol import STATUS

RUNNING = replace(
    STATUS, model="bundled", device="cuda:0", requested_device="auto", unload_after_s=600.0, exit_after_s=1800.0
)


@pytest.mark.parametrize("model", ["a\0b", "a\udc80b", "/tmp/a\udc80b", "~a\udc80b", "no such model"])
@pytest.mark.asyncio
async def test_a_setting_that_no_engine_can_be_started_with_is_a_sentence(model, monkeypatch, tmp_path):
    monkeypatch.setenv("DG_LSP_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(EngineFailure, match=r"There is no model|no options of an engine"):
        await started(begin(Launch(model=model)))


@pytest.mark.parametrize(
    "wanted",
    [
        Launch(),
        Launch(model="bundled", device="auto", unload_after_s=600, exit_after_s=1800),
        Launch(device="cuda"),
    ],
    ids=["nothing", "the same", "what auto led to"],
)
def test_an_engine_that_runs_as_wanted_needs_no_word(wanted):
    assert difference(wanted, RUNNING) == ""


def test_a_device_that_nobody_knows_yet_needs_no_word():
    assert difference(Launch(device="cpu"), replace(RUNNING, device="auto")) == ""


@pytest.mark.parametrize(
    ("wanted", "runs", "options"),
    [
        (Launch(model="my model"), "model bundled", "--model 'my model'"),
        (Launch(model="/models/v2.0"), "model bundled", "--model /models/v2.0"),
        (Launch(model="bundled", device="cpu"), "device auto", "--device cpu"),
        (
            Launch(http="127.0.0.1:8012", http_token_file="/t"),
            "http none, http-token-file none",
            "--http 127.0.0.1:8012 --http-token-file /t",
        ),
        (
            Launch(unload_after_s=30, exit_after_s=60.5),
            "unload-after 600, exit-after 1800",
            "--unload-after 30 --exit-after 60.5",
        ),
        (Launch(exit_after_s=1234567.0), "exit-after 1800", "--exit-after 1234567"),
    ],
)
def test_an_engine_that_runs_otherwise_is_told_with_the_way_out(wanted, runs, options):
    told = difference(wanted, RUNNING)
    assert f"runs with {runs}, not" in told
    assert f"`dg-lsp engine restart {options}`" in told


def test_an_editor_can_ask_for_what_an_engine_knows():
    asked = Launch(model="a", device="b", unload_after_s=1, exit_after_s=2.5, http="c", http_token_file="d")
    given = asked.command()[-1]
    assert read_options(given) == EngineOptions(**json.loads(given))
    assert {field.name for field in fields(Launch)} - set(json.loads(given)) == {"starter"}


@pytest.mark.parametrize(("given", "found"), [("", ""), ("~/t", "t"), ("t", "t"), ("/etc/t", "/etc/t")])
def test_a_token_file_is_the_users_wherever_the_editor_stands(given, found):
    chosen = Launch().chosen(EngineSettings(http_token_file=given)).http_token_file
    assert chosen == (str(Path.home() / found) if found else "")


def test_the_door_is_the_users_own_and_its_token_is_found_at_home():
    chosen = Launch().chosen(EngineSettings(http="127.0.0.1:8012", http_token_file="~/token"))
    assert (chosen.options()["http"], chosen.http_token_file) == ("127.0.0.1:8012", str(Path.home() / "token"))
    _, problems = applied(Settings(), {"engine": {"http": "0.0.0.0:1"}}, by_project=True)
    assert problems == ["The setting 'engine' can't be set by a project; set it in the editor."]
