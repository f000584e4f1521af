"""Shared by all tests."""

import os
import re
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

# Read once, when torch is imported; its threads would take the processor from what runs beside.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A loaded machine is slow without being wrong. The same examples each time: what fails, fails by what was changed;
# `make explore` draws others, and more of them.
settings.register_profile("dg", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("dg")

_SLOW = re.compile(
    r"\] / \"models\""
    r"|^ *(?:from|import) (?:torch|transformers|engine import load"
    r"|tests\.(?:e2e|torture|engine\.(?:hub|processes|server\.http\.asking))"
    r"|engine\.(?:models|decoding|infill|edit|loader|server\.(?:server|worker|checker)|baselines|bench|eval|train|tune)\b)",
    re.MULTILINE,
)
"""What brings torch, which takes seconds by itself, a model of the tests, or processes of ours."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="leave out files that need torch or start processes of ours")
    parser.addoption("--all-gaps", action="store_true", help="cut 20,000 gaps, not a fifth of them (a minute or two)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "processor_s(most): fails where the test takes more of the processor's seconds")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """By the clock on the wall nothing is bounded but what hangs: a busy machine is slow without being wrong."""
    began = time.process_time()
    result = yield
    bound = item.get_closest_marker("processor_s")
    assert bound is None or time.process_time() - began < bound.args[0], "It took too much of the processor's time."
    return result


@pytest.fixture(autouse=True, scope="session")
def folders_of_the_tests_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test meets the user's engine, or that of a test that runs beside."""
    folder = tmp_path_factory.mktemp("dg")
    os.environ |= {f"DG_LSP_{name}_DIR": str(folder / name.lower()) for name in ("RUNTIME", "STATE")}


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: an eighth of the time a test waits for processes of ours."""
    return min(1 + (os.cpu_count() or 1), 4)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not config.getoption("--fast") or collection_path.suffix != ".py":
        return None
    # None: whatever else pytest goes by.
    return True if _SLOW.search(collection_path.read_text(encoding="utf-8")) else None
