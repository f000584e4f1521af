"""Gaps in reserved sources: 300 to report on, and 300 in other packages to choose thresholds and widths on.

The places are kept beside this file, without any text; the text is fetched (`engine.eval.reserved.packages`).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.core.errors import BadInput
from engine.eval.reserved.packages import Role, fetch
from engine.eval.tasks import Task

HoleKind = Literal["whole_line", "line", "rest_of_line", "arguments", "block"]
HOLES = Path(__file__).parent / "holes.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedHole:
    """A gap `text[start:end]` of a release's file; offsets count characters."""

    split: Role
    package: str
    version: str
    path: str
    start: int
    end: int
    kind: HoleKind
    sha: str
    """Of the gap's text, see `truth_sha`."""


def reserved_tasks(split: Role, folder: Path | None = None) -> list[Task]:
    """The gaps of one split, their text read from `folder` (the user's cache) and fetched where it is missing.

    Raises BadInput when no package registry is reached, or where a text is not the one that was cut.
    """
    root = fetch(folder)
    return [_task(hole, root) for hole in reserved_holes() if hole.split == split]


def reserved_holes() -> list[ReservedHole]:
    return [ReservedHole(**json.loads(line)) for line in HOLES.read_text(encoding="utf-8").splitlines()]


def truth_sha(text: str) -> str:
    """Sixteen hexadecimal digits that tell a text from any other."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _task(hole: ReservedHole, root: Path) -> Task:
    file = f"{hole.path} of {hole.package} {hole.version}"
    try:
        text = (root / f"{hole.package}-{hole.version}" / hole.path).read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        raise BadInput(f"{file} is not in {root}: delete that folder to fetch it again.") from None
    truth = text[hole.start : hole.end]
    if truth_sha(truth) != hole.sha:
        raise BadInput(f"{file} is not as it was: delete {root} to fetch it again.")
    return Task(
        name=f"{hole.package}-{hole.version}/{hole.path}:{hole.start}-{hole.end}",
        kind=hole.kind,
        language="python",
        prefix=text[: hole.start],
        suffix=text[hole.end :],
        truth=truth,
    )
