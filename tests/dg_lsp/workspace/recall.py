"""`python -m tests.dg_lsp.workspace.recall`: how often the text of a gap is among its workspace matches.

On the development holes of the reserved packages, the rest of each package being the workspace. One line of JSON: of
each kind of gap how many, how many had it first and how many among those that a request takes; milliseconds of a
look-up, of the thread that looks up, with nothing unpacked before.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from dg_lsp.workspace import text_index
from dg_lsp.workspace.cursor_line import CursorLine
from dg_lsp.workspace.definitions import names_used
from dg_lsp.workspace.index import MOST, likeness
from dg_lsp.workspace.matches import Occurrence, likeliest, look_up
from dg_lsp.workspace.missing_imports import found_imports, import_texts, missing_names
from dg_lsp.workspace.modules import bindings
from dg_lsp.workspace.text_index import TextIndex
from dg_lsp.workspace.unused_names import name_texts, unused_of
from engine.common.request import WorkspaceMatch
from engine.lab.eval.reserved.packages import Role, fetch, reserved_tasks
from engine.lab.eval.tasks import EvalTask


def main() -> None:
    root, holes = fetch(), by_package("development")
    first, among, tasks, took_ms = Counter[str](), Counter[str](), Counter[str](), list[float]()
    for package, its_tasks in holes.items():
        index = indexed(root, package)
        for task in its_tasks:
            workspace_matches, ms = workspace_matches_of(index, root, task)
            found = [each.text.strip() == task.truth.strip() for each in workspace_matches]
            tasks[task.kind] += 1
            first[task.kind] += found[:1] == [True]
            among[task.kind] += any(found)
            took_ms.append(ms)
    took_ms.sort()
    figures = {
        "kinds": {kind: {"gaps": tasks[kind], "first": first[kind], "among": among[kind]} for kind in tasks},
        "gaps": tasks.total(),
        "first": first.total(),
        "among": among.total(),
        "look_up_ms": {f"p{share}": round(took_ms[len(took_ms) * share // 100], 2) for share in (50, 99)},
    }
    sys.stdout.write(json.dumps(figures) + "\n")


def by_package(split: Role) -> dict[str, list[EvalTask]]:
    holes = defaultdict[str, list[EvalTask]](list)
    for task in reserved_tasks(split):
        holes[task.name.partition("/")[0]].append(task)
    return holes


def indexed(root: Path, package: str) -> TextIndex:
    index = TextIndex(bucket_bits=12)
    for path in sorted((root / package).rglob("*.py")):
        index.add(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8", errors="ignore"))
    return index


def workspace_matches_of(index: TextIndex, root: Path, task: EvalTask) -> tuple[tuple[WorkspaceMatch, ...], float]:
    """Of a gap whose document is in the index as it is without what is missing, and the milliseconds."""
    name = task.name.rpartition(":")[0]
    index.add(name, task.prefix + task.suffix)
    text_index.unpacked.cache_clear()
    began_s = time.thread_time()
    found = look_up([index], name, task.prefix, task.suffix, number=task.prefix.count("\n") + 1)
    took_ms = (time.thread_time() - began_s) * 1000
    index.add(name, (root / name).read_text(encoding="utf-8"))
    return as_workspace_matches([*found, *names_of(task), *imports_of(index, task)]), took_ms


def names_of(task: EvalTask) -> list[Occurrence]:
    """Names that a gap's document imports and does not use."""
    text = task.prefix + task.suffix
    unused = unused_of(bindings(text, "python"), names_used(text))
    return name_texts(unused, task.name.rpartition(":")[0], CursorLine.of(text, len(task.prefix)))


def imports_of(index: TextIndex, task: EvalTask) -> list[Occurrence]:
    """What a gap's document does not import, and other texts do."""
    name, text = task.name.rpartition(":")[0], task.prefix + task.suffix
    missing = found_imports(missing_names(text), name, index.names(), index.text)
    return import_texts(missing, name, CursorLine.of(text, len(task.prefix)))


def as_workspace_matches(found: Sequence[Occurrence]) -> tuple[WorkspaceMatch, ...]:
    """As a request takes them."""
    return tuple(
        WorkspaceMatch(text=each.text, origin=f"{each.name}:{each.number}", likeness=likeness(each.score))
        for each in likeliest(found)[:MOST]
    )


if __name__ == "__main__":
    main()
