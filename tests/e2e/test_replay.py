"""`dg-lsp replay` plays sessions against a real server and an engine of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.cli import run
from dg_lsp.replay import stage
from dg_lsp.replay.player import ReplayOutcome
from dg_lsp.replay.report import report
from dg_lsp.replay.session import Accept, Delete, Move, Open, Session, Type, Undo, read_session, write_session
from dg_lsp.replay.stage import settled_texts
from tests.dg_lsp.replay.repository import commit
from tests.engine.processes import WAIT_S, wait_until

SESSIONS = Path(__file__).parents[1] / "cases" / "sessions"
TEXT = "def area(width, height):\n    return width * height\n"


def replay(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dg_lsp", "replay", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S * 3, check=False)


def figures(played: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert (played.returncode, played.stderr) == (0, "")
    return json.loads(played.stdout.splitlines()[-1])


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """Types, slips, undoes, jumps, accepts."""
    # After the first key there is time for an answer, so that typing along can be served.
    keys = [Type(at=100 * at + 5000 * (at > 0), text=character) for at, character in enumerate("def area(")]
    events = (
        Open(at=0, path="a.py", language="python", text="# Areas.\n", cursor=9),
        *keys,
        Type(at=6100, text="x"),
        Delete(at=6200),
        Type(at=6300, text="w"),
        Undo(at=6400),
        Accept(at=6600, text="width, height):\n    return width * height\n"),
        Move(at=7500, cursor=0),
        Accept(at=7600, text="#"),
        Move(at=7700, cursor=10),
    )
    path = tmp_path / "s.jsonl"
    write_session(Session(title="Areas", events=events), path)
    return path


def test_a_session_is_measured(session):
    played = replay(session, "--oracle", "--client", "neovim", "--speed", 2)
    made = figures(played)
    assert made["session"] == "Areas"
    assert made["client"] == "neovim"
    assert made["keys"] == made["requests"] >= 17
    assert made["answers"] + made["superseded"] == made["requests"]
    assert (made["stale"], made["errors"]) == (0, 0)
    # On a loaded machine a suggestion may come too late to be taken; then it is typed.
    assert made["accepted"] + made["typed_instead"] == 2
    assert made["accepted"] >= 1
    assert made["accepted_chars"] >= 1
    assert made["p50_ms"] <= made["p95_ms"] <= made["p99_ms"] <= made["max_ms"]
    assert made["cost"]["initialize_ms"] > 0
    assert made["cost"]["resident_mib"] > 1
    assert made["cost"]["server_ms"] > 0
    assert made["cost"]["engine_ms"] > 0
    assert made["without_model"] >= 1
    assert made["forwards"] >= 1
    assert made["forwards_per_accepted_char"] == round(made["forwards"] / made["accepted_chars"], 3)
    assert "key to answer" in played.stdout


@pytest.mark.parametrize(("name", "client"), [("change", "vscode"), ("write", "emacs")])
def test_a_session_of_the_repository_is_played_without_a_stale_answer(name, client):
    made = figures(replay(SESSIONS / f"{name}.jsonl", "--oracle", "--client", client, "--speed", 200))
    assert (made["stale"], made["errors"]) == (0, 0)
    # So fast, most of what is asked is not wanted any more when it could be answered.
    assert made["superseded"] > 0
    assert made["cancelled_fills"] > 0
    assert made["answers"] + made["superseded"] == made["requests"]


def test_a_history_is_typed_again(tmp_path):
    for text in ("x = 1\n", "x = 1\ny = 2\n"):
        commit(tmp_path, {"a.py": text})
    written = tmp_path / "s.jsonl"
    made = replay("--from-git", tmp_path, "--commits", 1, "--out", written)
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
    assert [text for text, _ in settled_texts(read_session(written))][-1] == "x = 1\ny = 2\n"
    made = figures(replay("--from-git", tmp_path, "--commits", 1, "--oracle", "--speed", 10))
    assert made["session"] == f"1 commits of {tmp_path.name}"
    assert made["keys"] >= 1


@pytest.mark.parametrize(
    ("number", "ignored"),
    [(signal.SIGINT, False), (signal.SIGINT, True), (signal.SIGTERM, True)],
    ids=["Ctrl-C", "SIGINT, in a script's background", "SIGTERM"],
)
def test_a_signal_leaves_no_engine_and_no_folder_behind(session, number, ignored):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)
    try:
        end_a_replay(session, number)
    finally:
        signal.signal(signal.SIGINT, before)


def end_a_replay(session, number):
    with tempfile.TemporaryDirectory(prefix="dg-") as folder:
        command = [sys.executable, "-m", "dg_lsp", "replay", str(session), "--oracle"]
        environment = {**os.environ, "TMPDIR": folder}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            wait_until(lambda: list(Path(folder).glob("*/run/engine.sock")), "the engine")
            process.send_signal(number)
            process.communicate(timeout=WAIT_S)
        assert process.returncode != 0
        assert list(Path(folder).iterdir()) == []


@pytest.mark.parametrize(("stale", "errors"), [(1, 0), (0, 1)])
def test_a_stale_answer_or_an_error_is_told_by_the_exit_code(session, monkeypatch, capsys, stale, errors):
    cost = {"initialize_ms": 1, "resident_mib": 1, "server_ms": 1, "engine_ms": 1}
    account = {"counts": {"without_model": 0, "superseded": 0}, "engine": {}}
    outcome = ReplayOutcome(requests=3, stale=stale, errors=errors)

    async def play(*_: object, **__: object) -> dict[str, Any]:
        return report("Areas", "vscode", cost, outcome, account, account)

    monkeypatch.setattr(stage, "play", play)
    assert run(["replay", str(session)]) == 1
    told = capsys.readouterr()
    assert json.loads(told.out.splitlines()[-1])["stale"] == stale
    assert f"{errors} errors and {stale} stale" in told.err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "give a SESSION.jsonl or --from-git REPO"),
        (["a.jsonl", "--from-git", "."], "give a SESSION.jsonl or --from-git REPO"),
        (["a.jsonl", "--oracle", "--model", "bundled"], "--oracle is a model of its own: leave out --model"),
        (["a.jsonl", "--client", "ed"], "'ed' is not one of 'vscode', 'neovim', 'emacs'"),
        (["/nowhere/a.jsonl"], "/nowhere/a.jsonl can't be read"),
    ],
)
def test_what_can_not_be_played_is_a_sentence(arguments, problem):
    played = replay(*arguments)
    assert played.returncode == 2
    assert problem in played.stderr
    assert played.stderr.count("\n") == 1


def test_a_model_that_is_not_there_is_a_sentence(session):
    played = replay(session, "--model", "oracle:/nowhere.json")
    assert played.returncode == 2
    assert "/nowhere.json" in played.stderr.splitlines()[-1]
