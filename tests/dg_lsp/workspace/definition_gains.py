"""`python -m tests.dg_lsp.workspace.definition_gains [development|reported] [MODEL] [HOLES] [CHARS]`: what definitions
of imported names are worth to a model.

Holes in the reserved packages whose text needs a name that another file of the package defines, which is not open;
filled without and with that definition and others in the context, and with imported names that nothing uses. One line
of JSON, as `gains` writes it.
"""

from __future__ import annotations

import json
import random
import sys
from collections import defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, cast

from dg_lsp.workspace.definitions import Definition, Definitions, as_snippets, chains, names_used, near, within
from dg_lsp.workspace.modules import bindings
from engine.common.request import Snippet
from engine.fill.loading import load
from engine.lab.eval.reserved.packages import Role, fetch, reserved_tasks
from engine.lab.eval.tasks import EvalTask, text_holes
from tests.dg_lsp.workspace import gains
from tests.dg_lsp.workspace.recall import as_workspace_matches, names_of

HOLES, CHARS = 200, 600
A_FILE = 4


def main() -> None:
    given = sys.argv[1:]
    split, name = [*given, *("development", "bundled")[len(given) :]][:2]
    count, chars = (int(given[at]) if len(given) > at else usual for at, usual in ((2, HOLES), (3, CHARS)))
    model = load(name, "cpu").model
    rows = dict[str, list[dict[str, Any]]]({way: [] for way in gains.WAYS})
    for task, snippets in holes(cast(Role, split), count, chars):
        told = {"snippets": snippets, "workspace_matches": as_workspace_matches(names_of(task))}
        for way, context in zip(gains.WAYS, ({}, told), strict=True):
            request = task.request(**context, single_line="\n" not in task.truth)
            rows[way].append(gains.row(task, *gains.timed(model, request)))
    sys.stdout.write(json.dumps({"split": split, **gains.paired(rows)}) + "\n")


def holes(split: Role, count: int, chars: int) -> list[tuple[EvalTask, tuple[Snippet, ...]]]:
    """The same each time, from all packages of the split in turn."""
    root = fetch()
    packages = sorted({task.name.partition("/")[0] for task in reserved_tasks(split)})
    found = {package: _of_package(root, package, chars) for package in packages}
    for own in found.values():
        random.Random(0).shuffle(own)
    chosen = list[tuple[EvalTask, tuple[Snippet, ...]]]()
    while len(chosen) < count and any(found.values()):
        chosen += [own.pop() for own in found.values() if own]
    return chosen[:count]


def _of_package(root: Path, package: str, chars: int) -> list[tuple[EvalTask, tuple[Snippet, ...]]]:
    texts = {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8", errors="ignore")
        for path in sorted((root / package).rglob("*.py"))
    }
    known = Definitions(texts.get, texts.__contains__)
    roots = list(dict.fromkeys(str(Path(name).parent) for name in texts))
    of_file = {
        name: known.of(name, bindings(text, "python"), "python", _above(name, roots)) for name, text in texts.items()
    }
    wanted = [(name, "python", texts[name]) for name, definitions in of_file.items() if definitions]
    chosen, counts = list[tuple[EvalTask, tuple[Snippet, ...]]](), defaultdict[str, int](int)
    for task in text_holes(wanted, 40 * len(wanted), seed=0) if wanted else ():
        file = task.name.rpartition(":")[0]
        imported = {each.name for each in bindings(task.prefix + task.suffix, "python")}
        names = {each.uses for each in of_file[file] if _is_of(each.uses, imported)}
        line = task.prefix.rpartition("\n")[2] + task.truth
        # A line of an import is where the name comes from; what a line can't hold none of these models fills.
        needs = bool(chains(task.truth) & names) and "import " not in line and "\n" not in task.truth
        if needs and counts[file] < A_FILE:
            counts[file] += 1
            chosen.append((task, _snippets(of_file[file], task, chars)))
    return chosen


def _is_of(name: str, imported: Collection[str]) -> bool:
    """Whether a name is one that is imported, or something of it."""
    return any(name == each or name.startswith(f"{each}.") for each in imported)


def _above(name: str, roots: list[str]) -> list[str]:
    return [each for each in sorted(roots, key=len, reverse=True) if name.startswith(f"{each}/")]


def _snippets(definitions: Sequence[Definition], task: EvalTask, chars: int) -> tuple[Snippet, ...]:
    text = task.prefix + task.suffix
    ordered = near(definitions, names_used(text), text, len(task.prefix))
    return tuple(as_snippets(within(ordered, chars)))


if __name__ == "__main__":
    main()
