"""(c) Both protocols and every file format fuzzed: `python -m tests.torture.fuzz`, a line of figures a target."""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from dataclasses import asdict

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from tests.torture import fuzz_formats, fuzz_protocols
from tests.torture.target import Analysis

TARGETS = {**fuzz_formats.TARGETS, **fuzz_protocols.TARGETS}
_START_S = 120.0
"""For a target's process beside its share of the time: imports, servers."""
_BATCH = 20


def main() -> int:
    """Run the targets one after the other, each for its share of the time."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="in all, starting the targets aside")
    parser.add_argument("--hour", action="store_const", dest="seconds", const=3600.0)
    parser.add_argument("--only", action="append", choices=sorted(TARGETS), help="a target; may be given again")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    told = parser.parse_args()
    names = told.only or list(TARGETS)
    if told.inside:
        print(json.dumps(asdict(run(names[0], told.seconds, told.seed))))
        return 0
    all_well = True
    for name in names:
        found = run_apart(name, told.seconds / len(names), told.seed)
        all_well &= found.well
        print(
            f"{name:<16} {found.examples:>8,} examples  {found.crashes} crashes  {found.hangs} hangs  "
            f"slowest {found.slowest_ms:,.0f} ms  seed {found.seed}",
            flush=True,
        )
        for each in found.told:
            print(f"    {each}", flush=True)
    return 0 if all_well else 1


def run_apart(name: str, seconds: float, seed: int) -> Analysis:
    """A target in a process of its own, whose death is a crash and whose silence is a hang."""
    command = [sys.executable, "-m", "tests.torture.fuzz", "--inside", "--only", name]
    command += ["--seconds", str(seconds), "--seed", str(seed)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + _START_S, check=False)
    except subprocess.TimeoutExpired:
        return Analysis(target=name, seed=seed, hangs=1, told=["the target did not end"])
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
        return Analysis(target=name, seed=seed, crashes=1, told=[f"ended with {done.returncode}: {last}"])
    return Analysis(**json.loads(done.stdout.splitlines()[-1]))


def run(name: str, seconds: float, seed: int) -> Analysis:
    """Examples until the time is up; the same seed draws the same ones in the same order."""
    found = Analysis(target=name, seed=seed)
    # Hypothesis draws the random numbers: it begins with simple ones, and keeps away from what it drew before.
    chance = random.Random()
    with TARGETS[name](chance) as example:
        ends = time.monotonic() + seconds
        batch = 0
        while time.monotonic() < ends:
            batch += 1

            @seeded(seed + batch)
            @settings(
                max_examples=_BATCH,
                database=None,
                deadline=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(st.integers(0, 2**64 - 1))
            def examples(drawn: int) -> None:
                if time.monotonic() < ends:
                    chance.seed(drawn)
                    example(found)

            examples()
    return found


if __name__ == "__main__":
    sys.exit(main())
