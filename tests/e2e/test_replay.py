"""`dg-lsp replay` plays sessions against a real server and an engine of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dg_lsp.replay.session import Accept, Delete, Move, Open, Session, Type, Undo, write_session
from tests.engine.processes import WAIT_S

TEXT = "def area(width, height):\n    return width * height\n"


def replay(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dg_lsp", "replay", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S * 3, check=False)


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
    assert played.returncode == 0, played.stderr
    assert played.stderr == ""
    report: dict[str, Any] = json.loads(played.stdout.splitlines()[-1])
    assert report["session"] == "Areas"
    assert report["client"] == "neovim"
    assert report["keys"] == report["requests"] >= 17
    assert report["answers"] + report["superseded"] == report["requests"]
    assert (report["stale"], report["errors"]) == (0, 0)
    # On a loaded machine a suggestion may come too late to be taken; then it is typed.
    assert report["accepted"] + report["typed_instead"] == 2
    assert report["accepted"] >= 1
    assert report["accepted_chars"] >= 1
    assert report["p50_ms"] <= report["p95_ms"] <= report["p99_ms"] <= report["max_ms"]
    assert report["cost"]["greeting_ms"] > 0
    assert report["cost"]["resident_mib"] > 1
    assert report["cost"]["server_ms"] > 0
    assert report["cost"]["engine_ms"] > 0
    assert report["without_model"] >= 1
    assert report["forwards"] >= 1
    assert report["forwards_per_accepted_char"] == round(report["forwards"] / report["accepted_chars"], 3)
    assert "key to answer" in played.stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "give a SESSION.jsonl or --from-git REPO"),
        (["a.jsonl", "--from-git", "."], "give a SESSION.jsonl or --from-git REPO"),
        (["a.jsonl", "--client", "ed"], "--client is one of vscode, neovim, emacs"),
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
