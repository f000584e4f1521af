"""`make gpu-proof`: everything that waits for a GPU, in twenty minutes: the tests that need one, then the released
shape in 4 bit with random weights. Ends in a table for docs/benchmarks.md and one line of JSON."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import torch

from engine.common.errors import ModelError
from engine.lab.bench.families import random_model
from engine.lab.bench.timing import Stopwatch
from engine.server.memory import give_back
from tests.gpu.proof import ProofSize, Proved, prove, table

NO_GPU = "make gpu-proof needs a GPU, but torch finds none: run it where there is one, with a build of torch for it."
LIMIT_S = 20 * 60.0
TESTS_S = 8 * 60.0
SHAPES = ("released-nvfp4", "released-int4")


def main() -> int:
    if not torch.cuda.is_available():
        print(NO_GPU)
        return 1
    began = time.monotonic()
    tests = run_tests(Path(__file__).parent, TESTS_S)
    watch = Stopwatch(repetitions=20, limit_s=4.0, device="cuda")
    models = {shape: lambda shape=shape: random_model(shape, "cuda") for shape in SHAPES}
    proved, left_out = prove_all(models, watch, ProofSize(compiled=True), began + LIMIT_S)
    told = {"tests": tests, "left_out": left_out, "seconds": round(time.monotonic() - began)}
    return end(told, proved)


def end(told: Mapping[str, Any], proved: list[Proved]) -> int:
    """Print the table and the line; 0 where all tests passed and a model was measured."""
    print(table(proved))
    print(json.dumps({**told, "torch": torch.__version__, "proved": [asdict(each) for each in proved]}))
    tests = told["tests"]
    well = tests["passed"] > 0 and not tests["failed"] and not tests["cut_off"]
    return 0 if well and proved and not told["left_out"] else 1


def prove_all(
    models: Mapping[str, Callable[[], Any]], watch: Stopwatch, size: ProofSize, until: float
) -> tuple[list[Proved], dict[str, str]]:
    """Of each model that fits what it came to, and of the others why not; none is begun after `until`, monotonic."""
    proved: list[Proved] = []
    left_out: dict[str, str] = {}
    for name, make in models.items():
        if time.monotonic() > until:
            left_out[name] = "no time left"
            continue
        try:
            print(f"{name}: making weights", file=sys.stderr)
            proved.append(prove(make(), watch, size, lambda part, of=name: print(f"{of}: {part}", file=sys.stderr)))
        except ModelError as error:
            left_out[name] = str(error)
        except Exception as error:  # noqa: BLE001 what else was measured is worth having
            traceback.print_exc()
            left_out[name] = f"{type(error).__name__}: {error}"
        give_back()
    return proved, left_out


def run_tests(folder: Path, limit_s: float) -> dict[str, Any]:
    """How many tests of a folder passed and were skipped, which failed, and whether they were cut off."""
    with tempfile.TemporaryDirectory() as temporary:
        report = Path(temporary) / "report.xml"
        command = [sys.executable, "-m", "pytest", str(folder), "-q", f"--junitxml={report}"]
        try:
            subprocess.run(command, timeout=limit_s, stdout=sys.stderr, check=False)
        except subprocess.TimeoutExpired:
            return {"passed": 0, "skipped": 0, "failed": [], "cut_off": True}
        cases = list(ElementTree.parse(report).iter("testcase"))
    failed = [case for case in cases if any(case.find(kind) is not None for kind in ("failure", "error"))]
    skipped = [case for case in cases if case.find("skipped") is not None]
    return {
        "passed": len(cases) - len(failed) - len(skipped),
        "skipped": len(skipped),
        "failed": [f"{case.get('classname')}.{case.get('name')}" for case in failed],
        "cut_off": False,
    }


if __name__ == "__main__":
    sys.exit(main())
