"""Nothing that lies in a home, a project or a working directory is run with a process of ours, and one that is to yield
does."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.common.processes import python_module
from tests.engine.processes import WAIT_S, home

ROOT = Path(__file__).parents[3]
STARTERS = {"engine/common/processes.py": "-m", "dg_lsp/config/git.py": "git"}
"""The one place that may name each of them in a command line."""


@pytest.fixture
def trap(tmp_path):
    """A folder with modules of names that ours have, too, and the standard library's; running one leaves a mark."""
    mark = f"import pathlib; pathlib.Path({str(tmp_path / 'mark')!r}).touch()\n"
    for name in ("uuid", "psutil", "logging"):
        (tmp_path / f"{name}.py").write_text(mark + "raise SystemExit(3)\n")
    for package in ("engine", "dg_lsp"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(mark)
        (tmp_path / package / "__main__.py").write_text(mark)
    yield tmp_path
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("python_path", [None, ""], ids=["no PYTHONPATH", "an empty one"])
def test_a_detached_engine_runs_nothing_of_the_home_it_is_started_in(trap, python_path):
    with home(HOME=str(trap), **({} if python_path is None else {"PYTHONPATH": python_path})) as place:
        # As the command line is, whose own folder Python looks into: this is about what it starts.
        started = subprocess.run(
            [*python_module("engine"), "run", "--detach"],
            env=place.environment,
            cwd="/",
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        assert started.returncode == 0, started
        assert place.answers()


@pytest.mark.parametrize("module", ["engine", "dg_lsp"])
def test_a_module_of_ours_is_not_looked_for_in_the_working_directory(trap, module):
    shown = subprocess.run(
        [*python_module(module), "--help"], cwd=trap, capture_output=True, timeout=WAIT_S, check=True
    )
    assert b"Usage" in shown.stdout


@pytest.mark.parametrize("word", STARTERS.values())
def test_one_place_starts_python_and_one_starts_git(word):
    def names_it(file: Path) -> bool:
        nodes = ast.walk(ast.parse(file.read_text()))
        lists = (node.elts for node in nodes if isinstance(node, ast.List | ast.Tuple))
        return any(isinstance(each, ast.Constant) and each.value == word for elements in lists for each in elements)

    files = [file for package in ("engine", "dg_lsp") for file in (ROOT / package).rglob("*.py")]
    assert {str(file.relative_to(ROOT)) for file in files if names_it(file)} <= set(STARTERS)


AUTOGROUP = Path("/proc/self/autogroup")
IDLING = """
import json, os
from pathlib import Path
from engine.common.processes import idle
idle()
said = {"leads": os.getsid(0) == os.getpid(), "policy": os.sched_getscheduler(0)}
print(json.dumps(said | {"weight": Path("/proc/self/autogroup").read_text().split()[-1]}))
"""
linux_with_autogroups = pytest.mark.skipif(not AUTOGROUP.exists(), reason="a kernel that weighs sessions")


def idling(command: list[str], terminal: int | None = None) -> dict[str, object]:
    """What is said by the process that yields, in a session of its own, with `terminal` or none."""
    said = subprocess.run(
        command, start_new_session=True, stdin=terminal, stdout=subprocess.PIPE, timeout=WAIT_S, check=True
    )
    return json.loads(said.stdout.splitlines()[-1])


@linux_with_autogroups
@pytest.mark.parametrize("starter", [(), ("sh", "-c", '"$@"; :', "sh")], ids=["leads a session", "in another's"])
def test_what_is_to_yield_yields_to_other_sessions_too(starter):
    said = idling([*starter, sys.executable, "-c", IDLING])
    assert said == {"leads": True, "policy": os.SCHED_IDLE, "weight": "19"}


@linux_with_autogroups
def test_what_is_to_yield_keeps_the_terminal_that_may_interrupt_it():
    near, far = os.openpty()
    # The first terminal that a session's leader opens is the session's.
    takes = "import os, subprocess, sys; os.open(os.ttyname(0), os.O_RDWR); subprocess.run(sys.argv[1:], check=True)"
    try:
        said = idling([sys.executable, "-c", takes, sys.executable, "-c", IDLING], far)
    finally:
        os.close(near)
        os.close(far)
    assert said == {"leads": False, "policy": os.SCHED_IDLE, "weight": "0"}
