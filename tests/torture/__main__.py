"""`python -m tests.torture`: what a fast typist, a killer, hostile files and many HTTP clients do to real
processes, with figures.

One line of JSON a part; ends with 1 where a part did not pass.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import Any

from tests.torture.fuzz import TARGETS, run_apart
from tests.torture.hostile import hostile
from tests.torture.http import http
from tests.torture.keystrokes import keystrokes
from tests.torture.kills import kills


def main() -> int:
    """Run the parts that were asked for, all by default."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="keystrokes|kills|fuzz|hostile|http")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each part, at the most (default: 20)")
    parser.add_argument("--hour", action="store_const", dest="seconds", const=3600.0, help="an hour for each")
    parser.add_argument(
        "--full", action="store_true", help="100,000 keys, 100 kills, 10 stops, all documents, 10,000 requests"
    )
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    seconds = 3600.0 if told.full else told.seconds
    parts = {
        "keystrokes": lambda: keystrokes(100_000, seconds, told.seed),
        "kills": lambda: kills(100, 10, seconds, told.seed),
        "fuzz": lambda: fuzz(seconds, told.seed),
        "hostile": lambda: hostile(seconds, 20_000, told.seed),
        "http": lambda: http(10_000, 50, seconds, told.seed),
    }
    if unknown := set(told.parts) - set(parts):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    passed = True
    for name in told.parts or parts:
        figures = asyncio.run(parts[name]())
        print(json.dumps(figures), flush=True)
        passed &= figures["passed"]
    return 0 if passed else 1


async def fuzz(seconds: float, seed: int) -> dict[str, Any]:
    """Every target of the fuzzer for its share of the time."""
    found = [run_apart(name, seconds / len(TARGETS), seed) for name in TARGETS]
    return {
        "part": "fuzz",
        "examples": {each.target: each.examples for each in found},
        "crashes": sum(each.crashes for each in found),
        "hangs": sum(each.hangs for each in found),
        "slowest_ms": round(max(each.slowest_ms for each in found)),
        "told": [line for each in found for line in each.told][:5],
        "passed": all(each.well for each in found),
    }


if __name__ == "__main__":
    sys.exit(main())
