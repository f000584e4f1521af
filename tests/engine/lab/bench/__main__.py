"""`python -m tests.engine.lab.bench`: what of the benchmark is no model's. Start and memory of both processes, what
lies between a request and the model, what the syntax check costs at a keystroke in a large file."""

from dataclasses import asdict

from rich import print_json

from engine.lab.bench.timing import Stopwatch
from tests.engine.lab.bench.processes import first_suggestion, overhead, starts
from tests.engine.lab.bench.syntax_keystroke import syntax_keystroke

if __name__ == "__main__":
    watch = Stopwatch(repetitions=20, limit_s=20)
    first = [[first_suggestion(repetitions=5)]]
    for parts in (first, starts("bundled", "cpu", repetitions=3), overhead(watch), syntax_keystroke(watch)):
        for part in parts:
            print_json(data=[asdict(each) for each in part])
