"""Less of everything than what gives figures that are worth something."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from engine.lab.bench import benchmark, steps, workload


@pytest.fixture(autouse=True)
def less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload, "json", SimpleNamespace(decoder=json.scanner))
    monkeypatch.setattr(workload, "_TEXT_TOKENS", 400)
    monkeypatch.setattr(steps, "CONTEXT", 64)
    monkeypatch.setattr(benchmark, "QUICK", replace(benchmark.QUICK, repetitions=1, limit_s=0.1, gaps=(4,)))
