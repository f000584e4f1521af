"""Walks folders for files that may be shown to the model."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from dg_lsp.config.exclusion import Exclusions, Seen

MAX_ENTRIES = 200_000
"""Limit of directory entries in one walk."""


def files_below(folders: Sequence[Path], exclusions: Exclusions, wanted: Callable[[str], bool]) -> Iterator[Path]:
    """Files with `wanted` names, each once, without links, hidden folders and excluded folders. Whether a file itself
    is excluded is not checked."""
    roots = dict.fromkeys(map(str, folders))  # One of them may lie in another.
    left, entries, seen = [*reversed(roots)], 0, Seen()
    while left and entries < MAX_ENTRIES:
        inner = list[str]()
        with contextlib.suppress(OSError), os.scandir(left.pop()) as found:
            for entry in sorted(islice(found, MAX_ENTRIES - entries), key=lambda entry: entry.name):
                entries += 1
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    uri = Path(entry.path).as_uri()
                    if entry.path not in roots and not exclusions.reason(uri, folders, is_folder=True, seen=seen):
                        inner.append(entry.path)
                elif wanted(entry.name) and entry.is_file(follow_symlinks=False):
                    yield Path(entry.path)
        left += reversed(inner)
