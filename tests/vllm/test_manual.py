"""What docs/team.md says of the server, held against the server."""

from __future__ import annotations

import os
import re
import subprocess
import urllib.request
from pathlib import Path

from tests.vllm.server import VllmServer

MANUAL = Path(__file__).parents[2].joinpath("docs", "team.md").read_text(encoding="utf-8")


def test_it_has_every_option_that_is_named():
    blocks = re.findall(
        r"^```(?:console|yaml)\n(.*?)^```$", MANUAL.partition("## The editors")[0], re.MULTILINE | re.DOTALL
    )
    named = {option for block in blocks for option in re.findall(r"--[a-z][a-z-]+", block)}
    program = Path(os.environ["VLLM_VENV"], "bin", "python")
    command = [program, "-m", "vllm.entrypoints.openai.api_server", "--help"]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    missing = {option for option in named if not re.search(rf"{option}\b(?!-)", told)}
    assert len(named) > 10
    assert missing == set()


def test_it_has_every_metric_that_is_to_be_watched(server: VllmServer):
    watched = re.findall(
        r"^\| `([a-z0-9_]+)`(?: / `([a-z0-9_]+)`)? \|", MANUAL.partition("## What to watch")[2], re.MULTILINE
    )
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=10) as answer:
        told = answer.read().decode()
    names = [name for row in watched for name in row if name]
    assert len(names) > 5
    assert [name for name in names if f"\nvllm:{name}" not in told] == []
