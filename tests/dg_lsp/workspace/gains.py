"""`python -m tests.dg_lsp.workspace.gains [development|reported] [MODEL] [ROWS]`: what workspace matches are worth to a
model.

The holes of the reserved packages, the rest of each package being the workspace, filled without and with what stands
elsewhere. One line of JSON: of each way how many are exact, how many add no syntax problem, how many say nothing, how
many would be shown unasked, and how many of these are exact; the least threshold at which half of what is shown is
exact, and the share it shows; the exact ones that only one way has; forward passes and median milliseconds. ROWS is a
file that each fill is added to; a run that was cut off goes on from it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from statistics import fmean, median
from typing import Any, cast

from engine.common.request import Filled, FillRequest
from engine.fill.loading import load
from engine.fill.pipeline import fill
from engine.lab.eval.evaluation import is_clean
from engine.lab.eval.reserved.packages import Role, fetch
from engine.lab.eval.tasks import EvalTask
from engine.learn.fills import fitted_threshold
from tests.dg_lsp.workspace.recall import by_package, indexed, workspace_matches_of

THRESHOLD = 0.4
"""Of what is shown unasked, where none was fitted for the weights."""
WAYS = ("without", "with")


def main() -> None:
    split, name, out = [*sys.argv[1:], *("development", "bundled", os.devnull)[len(sys.argv) - 1 :]]
    model, root = load(name, "cpu").model, fetch()
    Path(out).touch()
    kept = {(each["hole"], each["way"]): each for each in map(json.loads, Path(out).read_text().splitlines())}
    rows = dict[str, list[dict[str, Any]]]({way: [] for way in WAYS})
    for package, its_tasks in by_package(cast(Role, split)).items():
        index = indexed(root, package)
        for task in its_tasks:
            workspace_matches, _ = workspace_matches_of(index, root, task)
            for way, given in zip(WAYS, ((), workspace_matches), strict=True):
                if (each := kept.get((task.name, way))) is None:
                    request = task.request(workspace_matches=given, single_line="\n" not in task.truth)
                    each = {"hole": task.name, "way": way, **row(task, *timed(model, request))}
                    with Path(out).open("a") as file:
                        file.write(json.dumps(each) + "\n")
                rows[way].append(each)
    sys.stdout.write(json.dumps({"split": split, **paired(rows)}) + "\n")


def paired(rows: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Of both ways over the same holes."""
    pairs = list(zip(*(rows[way] for way in WAYS), strict=True))
    return {
        "holes": len(pairs),
        **{way: _figures(own) for way, own in rows.items()},
        "exact in one way only": [
            sum(one["exact"] and not other["exact"] for one, other in pairs),
            sum(other["exact"] and not one["exact"] for one, other in pairs),
        ],
    }


def timed(model: Any, request: FillRequest) -> tuple[Filled, float]:
    began = time.perf_counter()
    filled = fill(model, request)
    return filled, (time.perf_counter() - began) * 1000


def row(task: EvalTask, filled: Filled, ms: float) -> dict[str, Any]:
    best = filled.candidates[0] if filled.candidates else None
    threshold = THRESHOLD if filled.threshold is None else filled.threshold
    return {
        "exact": best is not None and best.text == task.truth,
        "clean": best is None or is_clean(task, best.text) is not False,
        "silent": best is None,
        "sure": -1.0 if best is None else round(best.confidence, 3),
        "shown": best is not None and best.confidence >= threshold,
        "elsewhere": best is not None and bool(best.origin),
        "forwards": filled.forwards,
        "ms": ms,
    }


def _figures(rows: list[dict[str, Any]]) -> dict[str, Any]:
    shown = [row for row in rows if row["shown"]]
    counts = {key: sum(row[key] for row in rows) for key in ("exact", "clean", "silent", "shown", "elsewhere")}
    return counts | {
        "exact of shown": sum(row["exact"] for row in shown),
        "half exact from": fitted_threshold([(row["sure"], row["exact"]) for row in rows]),
        "forwards": round(fmean(row["forwards"] for row in rows), 1),
        "ms": round(median(row["ms"] for row in rows)),
    }


if __name__ == "__main__":
    main()
