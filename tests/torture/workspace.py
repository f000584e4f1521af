"""`python -m tests.torture.workspace DIR`: a workspace of 10,000 files, taken into the index of a language server.

Generates the files in DIR, where they are not there yet, from the sources of Python's own library, with names changed
so that no two are alike. One line of JSON: seconds of idle time, megabytes that the process grew by, and milliseconds
of a look-up, of the thread that looks up; ends with 1 where one is over its bound.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import sysconfig
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import psutil
from lsprotocol.types import TextDocumentItem

from dg_lsp.documents.documents import Documents
from dg_lsp.documents.gap import gap_at
from dg_lsp.workspace import index as module
from dg_lsp.workspace.index import WorkspaceIndex

FILES = 10_000
FILES_IN_FOLDER = 100
MOST_CHARS = 10_000
MOST_S, MOST_MB, MOST_MS = 60.0, 100.0, 1.0
LOOK_UPS = 2000
_NAME = re.compile(r"\b[a-z_]{4,}\b")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture.workspace", description=__doc__)
    parser.add_argument("folder", metavar="DIR", type=Path)
    parser.add_argument("--files", type=int, default=FILES)
    told = parser.parse_args()
    generate(told.folder, told.files)
    figures = asyncio.run(measure(told.folder.resolve(), told.files))
    print(json.dumps(figures))
    return 0 if figures["passed"] else 1


def generate(folder: Path, count: int) -> None:
    """Bring the number of files up to `count`; each is always the same."""
    sources = [text for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")) if (text := _text(path))]
    for number in range(count):
        path = folder / f"part{number // FILES_IN_FOLDER}" / f"module{number}.py"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_renamed(sources[number % len(sources)], number), encoding="utf-8")


async def measure(folder: Path, count: int) -> dict[str, object]:
    process = psutil.Process()
    documents = Documents()
    index = WorkspaceIndex(documents, lambda: [folder])
    paths = sorted(folder.rglob("*.py"))[:count]
    before = process.memory_info().rss
    module.IDLE_S = 0.0
    began_s, began_cpu_s = time.monotonic(), process.cpu_times().user + process.cpu_times().system
    opened = documents.open(_item(paths[0]))
    index.opened(opened.uri)
    while not index.is_complete:
        await asyncio.sleep(0.1)
    wall_s = time.monotonic() - began_s
    cpu_s = process.cpu_times().user + process.cpu_times().system - began_cpu_s
    grown_mb = (process.memory_info().rss - before) / 1e6
    took_ms = sorted(_look_ups(index, documents, paths))
    p50, p99 = (took_ms[int(len(took_ms) * share)] for share in (0.5, 0.99))
    index.close()
    return {
        "files": index.files,
        "idle_s": round(wall_s, 1),
        "processor_s": round(cpu_s, 1),
        "megabytes": round(grown_mb, 1),
        "look_up_ms": {"p50": round(p50, 2), "p99": round(p99, 2), "max": round(took_ms[-1], 2)},
        "passed": cpu_s <= MOST_S and grown_mb <= MOST_MB and p99 <= MOST_MS,
    }


def _look_ups(index: WorkspaceIndex, documents: Documents, paths: list[Path]) -> Iterator[float]:
    rng = random.Random(0)
    for _ in range(LOOK_UPS):
        snapshot = documents.open(_item(rng.choice(paths)))
        gap = gap_at(snapshot, rng.randrange(len(snapshot.text)))
        began_s = time.thread_time()
        index.found(gap)
        yield (time.thread_time() - began_s) * 1000
        documents.close(snapshot.uri)


def _item(path: Path) -> TextDocumentItem:
    return TextDocumentItem(uri=path.as_uri(), language_id="python", version=1, text=path.read_text(encoding="utf-8"))


def _text(path: Path) -> str:
    text = path.read_text(encoding="utf-8", errors="ignore")
    return text[: text.rfind("\n", 0, MOST_CHARS) + 1]


def _renamed(text: str, number: int) -> str:
    """Every fifth name gets another one, in each file another fifth."""

    def other(found: re.Match[str]) -> str:
        name = found.group()
        return f"{name}_{number}" if zlib.crc32(f"{name} {number}".encode()) % 5 == 0 else name

    return _NAME.sub(other, text)


if __name__ == "__main__":
    sys.exit(main())
